package shards

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// Quick are walks of some seconds, in which whatever is amiss shows soonest: two members between which shards
// go back and forth, or one whose manager is closed, and opened again.
func Quick() []walktest.Options {
	both := []string{"two, a whim, a lost message", "two, a whim, a whim, a whim, a message twice",
		"two, forming, a resignation, a return, a lost message"}
	return append(walktest.Plan(false, append(both, "two, forming, a pause, a message twice")...),
		walktest.Plan(true, both...)...)
}

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without
// leases. They take about half a minute of one core, the quick ones included.
func Normal() []walktest.Options {
	both := []string{"forming, a lost message", "three, forming, a late message",
		"three, forming, a message twice", "a leave", "three, a leave, a lost message",
		"three, a leave, a late message", "three, a leave, a message twice", "three, a crash, a leave", "a crash, a removal",
		"three, a cut", "a cut", "three, a pause", "two, a pause, another coordinator", "a resignation", "an end", "another coordinator, a lost message",
		"another coordinator, a late message", "another coordinator, a message twice", "two, a leave, another coordinator, a lost message", "three, a newcomer, a crash",
		"three, an end, a leave", "a newcomer, two shards", "three, two shards, a leave", "three, two shards, a crash",
		"three, a resignation, a return", "three, a whim, a whim, a message twice", "three, a whim, a crash", "three, a whim, a leave", "three, two shards, a whim"}
	leases := []string{"a stranger, a leave", "a stranger, a crash", "a stranger, a lost lease",
		"a lost lease, another coordinator", "a lost lease, a slow end",
		"three, a lost lease, a leave", "three, a lost lease, a crash", "an end, a lost lease", "a silent store, a leave", "three, a crash, a late message",
		"three, a whim, a lost lease", "a whim, a silent store"}
	return append(walktest.Plan(false, append(both, "three, a leave, another coordinator")...),
		walktest.Plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an
// end.
func Thorough() []walktest.Options {
	both := []string{"a leave, a slow end", "a leave, a lost message", "a leave, a late message",
		"forming, a crash", "three, a cut, a lost message", "three, a cut, another coordinator",
		"three, a pause, a slow end", "three, a crash, another coordinator", "three, a crash, a lost message", "two, a leave, another coordinator, a late message",
		"two, a leave, another coordinator, a message twice", "two, forming, a resignation, a return, a late message", "two, forming, a resignation, a return, a message twice",
		"three, a resignation, a return, a lost message", "three, a resignation, a return, a message twice", "three, a whim, another coordinator, a message twice",
		"three, a whim, a cut", "three, a whim, a pause", "two, a whim, a pause, a late message"}
	leases := []string{"three, a leave, another coordinator", "a lost lease, a leave", "three, a lost lease, a lost lease, a leave", "three, a lost lease, a cut", "three, a lost lease, a pause",
		"three, a lost lease, a slow end, another coordinator", "a lost lease, a stranger, a late message", "two shards, a lost lease, a lost lease", "a silent store, a crash"}
	return append(walktest.Plan(false, both...),
		walktest.Plan(true, append(both, append(leases, "two, forming, a pause, a message twice")...)...)...)
}

// walker is the model that is walked.
type walker struct {
	walktest.Walker[*message.Message, state]
	alloc *adversarialAllocator
}

// never is later than any walk: nobody audits. What comes after the horizon is all the same.
const (
	never   = 1000 * time.Hour
	horizon = time.Hour
)

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled.
func Walk(ctx context.Context, o walktest.Options) walktest.Report {
	a, err := allocation.New("walk", []string{"x", "y"}[:o.Shards], allocation.DefaultConfig())
	if err != nil {
		panic(err)
	}
	w := &walker{alloc: &adversarialAllocator{Allocator: a}}
	w.Options, w.Canon = o, walktest.Canon{Horizon: horizon, Unserved: o.Resigns > 0}
	w.Patience = time.Duration(o.NumberOfRetries) * o.HandOverRetryInterval
	w.Init(w)
	return w.Search.Run(ctx)
}

func (w *walker) hostConfig(i int) host.Config {
	return host.Config{Rules: w.Own(i), Shards: w.Shards, Digest: 1}
}

func (w *walker) coordinatorConfig(i int, term uint64) coordinator.Config {
	return coordinator.Config{Rules: w.Own(i), Term: term, Allocator: w.alloc, Digest: 1, AuditInterval: never}
}

// First is the state in which the members that are there from the beginning know each other: not armed yet
// or, where they are formed, with all shards running.
func (w *walker) First(s *state) {
	*s = state{}
	s.coordinators = [2]coordination{{at: nobody}, {at: nobody}}
	for n := range s.owners {
		s.owners[n], s.wishes[n] = nobody, nobody
	}
	for i := range w.Members {
		s.hosts[i] = host.New(w.hostConfig(i), 0)
	}
	w.Begin(s)
	if w.Formed {
		w.form(s)
	}
	s.Endanger()
}

// form lets a cluster find itself, until time brings nothing new.
func (w *walker) form(s *state) {
	for seen := map[string]bool{}; ; {
		mv, more := w.Fair(s)
		if !more {
			k := string(w.AppendKey(nil, s))
			if seen[k] || w.Idle(s) {
				return
			}
			seen[k], mv = true, walktest.Move{Kind: walktest.Waits}
		}
		w.Do(s, mv)
	}
}

// Well reports whether each shard is active on one member, or on none where nobody may run it, and nobody
// else has to do with it.
func (w *walker) Well(s *state) bool {
	may := 0
	for i := range w.Members {
		if w.mayCoordinate(s, i) && !s.Members[i].Resigns {
			may = 1
		}
	}
	for n := range w.Shards {
		runs := 0
		for i := range w.Members {
			if w.Active(s, i, n) {
				runs++
			}
		}
		if runs != may {
			return false
		}
	}
	for i := range w.Members {
		for n := range w.Shards {
			if p, _ := s.hosts[i].Shard(n); s.Live(i) && p != slot.Idle && p != slot.Active {
				return false
			}
		}
	}
	return true
}

// Standing says what the members do.
func (w *walker) Standing(s *state) (text string) {
	for i := range w.Members {
		if !s.Live(i) {
			continue
		}
		for n := range w.Shards {
			if p, _ := s.hosts[i].Shard(n); p != slot.Idle {
				text += fmt.Sprintf("%s is %v with shard %d, ", name(i), p, n)
			}
		}
	}
	for k := range s.coordinators {
		if c := &s.coordinators[k]; c.m != nil {
			st := c.m.Status()
			text += fmt.Sprintf("%s coordinates under term %d (silent: %v)", name(int(c.at)), c.term, st.Silent)
			for _, x := range st.Shards {
				text += fmt.Sprintf(" %s is %v, to %q", x.Shard, x.State, x.To)
			}
			text += ", "
		}
	}
	return text + fmt.Sprintf("%d packets are under way", s.Packets.Len())
}

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

package shards

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// walker is the model that is walked.
type walker struct {
	Options
	search *walk.Search[state]
	alloc  *adversarialAllocator
	canon  walk.Canon
	// inside is what comes at once.
	inside   []packet
	flushing bool
}

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled. The error is that of Options.Validate.
func Walk(ctx context.Context, o Options) (walk.Report, error) {
	if err := o.Validate(); err != nil {
		return walk.Report{}, err
	}
	o.Notice = o.Host.Margin / 2
	a, err := o.allocator()
	if err != nil {
		panic(err) // Validate has looked at it
	}
	w := &walker{Options: o, alloc: &adversarialAllocator{Allocator: a}, canon: walk.Canon{Horizon: horizon, Unserved: o.Resigns > 0}}
	w.search = walk.NewSearch(w, o.Limit, nil)
	return w.search.Run(ctx), nil
}

// First is the state in which the members that are there from the beginning know each other: not armed yet or, where they are formed, with all shards running.
func (w *walker) First(s *state) {
	*s = state{}
	s.Cluster = walk.NewCluster(&w.Options.Options)
	s.coordinators = [2]coordination{{at: nobody}, {at: nobody}}
	for n := range s.leases {
		s.leases[n].holder, s.owners[n], s.wishes[n] = nobody, nobody, nobody
	}
	for i := range w.Members {
		s.hosts[i].m = newHost(w.Options.host(i), 0)
		s.Members[i].Sure = -w.Host.Trust
	}
	application{w, s}.Everyone()
	if w.Formed {
		w.form(s)
	}
	s.Endanger()
	s.changes, s.strangers, s.whims = int8(w.Changes), int8(w.Strangers), int8(w.Whims)
}

// Copy makes to a copy of from: what they share is never changed in place.
func (w *walker) Copy(to, from *state) { *to = *from }

// form lets a cluster find itself, until time brings nothing new.
func (w *walker) form(s *state) {
	for seen := map[string]bool{}; ; {
		mv, more := w.Fair(s)
		if !more {
			k := string(w.AppendKey(nil, s))
			if seen[k] || s.Next(application{w, s}, false) == 0 {
				return
			}
			seen[k], mv = true, walk.Move{Kind: walk.Waits}
		}
		w.Do(s, mv)
	}
}

// Moves appends what can happen next.
func (w *walker) Moves(to []walk.Move, s *state) []walk.Move {
	to = s.World.Moves(to, application{w, s}, packetKey)
	if n := len(to); n == 0 || to[n-1].Kind == walk.Waits {
		w.search.Settle(s, w.Fair, w.Bound)
	}
	return to
}

// Fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
func (w *walker) Fair(s *state) (mv walk.Move, ok bool) {
	return s.World.Fair(application{w, s}, packetKey, func() bool { return w.asItShouldBe(s) })
}

// Pass is how long it takes until something more can happen. Zero: nothing will.
func (w *walker) Pass(s *state) time.Duration {
	p := application{w, s}
	return s.Next(p, s.Anything(p))
}

// asItShouldBe reports whether each shard is active on one member, or on none where nobody may run it, and nobody else has to do with it.
func (w *walker) asItShouldBe(s *state) bool {
	may := 0
	for i := range w.Members {
		if w.mayCoordinate(s, i) && !s.Members[i].Resigns {
			may = 1
		}
	}
	for n := range w.Shards {
		runs := 0
		for i := range w.Members {
			if w.active(s, i, n) {
				runs++
			}
		}
		if runs != may {
			return false
		}
	}
	for i := range w.Members {
		if s.Live(i) && slices.ContainsFunc(s.hosts[i].m.Status(), func(x host.ShardStatus) bool { return x.Phase != slot.Active }) {
			return false
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
		for _, x := range s.hosts[i].m.Status() {
			text += fmt.Sprintf("%s is %v with shard %d, ", name(i), x.Phase, x.Shard)
		}
	}
	for k := range s.coordinators {
		if c := &s.coordinators[k]; c.m != nil {
			st := c.m.Status()
			text += fmt.Sprintf("%s coordinates under term %d (silent: %v)", name(int(c.at)), c.term, st.Silent)
			for _, x := range st.Shards {
				text += fmt.Sprintf(" %s is %v on %q", x.Shard, x.State, x.Owner)
			}
			text += ", "
		}
	}
	return text + fmt.Sprintf("%d packets are under way", s.Packets.Len())
}

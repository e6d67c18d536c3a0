package shards

import (
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// Moves appends what can happen next.
func (w *walker) Moves(to []walk.Move, s *state) []walk.Move {
	to = s.World.Moves(to, passenger{w, s}, letterKey)
	if n := len(to); n == 0 || to[n-1].Kind == walk.Waits {
		w.search.Settle(s, w.Fair, w.Bound)
	}
	return to
}

// Fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
func (w *walker) Fair(s *state) (mv walk.Move, ok bool) {
	return s.World.Fair(passenger{w, s}, letterKey, func() bool { return w.asItShouldBe(s) })
}

// Pass is how long it takes until something more can happen. Zero: nothing will.
func (w *walker) Pass(s *state) time.Duration {
	p := passenger{w, s}
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
	for k := range s.chiefs {
		if c := &s.chiefs[k]; c.m != nil {
			st := c.m.Status()
			text += fmt.Sprintf("%s coordinates under term %d (silent: %v)", name(int(c.at)), c.term, st.Silent)
			for _, x := range st.Shards {
				text += fmt.Sprintf(" %s is %v on %q", x.Shard, x.State, x.Owner)
			}
			text += ", "
		}
	}
	return text + fmt.Sprintf("%d letters are under way", s.Mail.Len())
}

package shards

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/walk"
)

// Fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
func (w *walker) Fair(s *state) (mv walk.Move, ok bool) {
	for _, k := range s.mail.Sorted(letterKey) {
		if s.Live(int(s.mail.At(k).To)) {
			return walk.Move{Kind: walk.Delivers, At: uint8(k)}, true
		}
	}
	for _, mv := range w.duties(nil, s) {
		return mv, true
	}
	if mv, ok := s.Cluster.Fair(); ok {
		return mv, true
	}
	for _, mv := range w.ofLeases(nil, s) {
		return mv, true
	}
	if s.Hopeless() || !w.asItShouldBe(s) {
		return walk.Move{Kind: walk.Waits}, true
	}
	return walk.Move{}, false
}

// Stuck reports whether waiting changes nothing.
func (w *walker) Stuck(s *state) bool { return w.next(s, w.anything(s)) == 0 }

// Now is the time.
func (w *walker) Now(s *state) time.Duration { return s.Now }

// asItShouldBe reports whether each shard is active on one member, or on none where nobody may run it.
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
	return text + fmt.Sprintf("%d letters are under way", s.mail.Len())
}

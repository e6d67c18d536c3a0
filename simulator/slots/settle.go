package slots

import (
	"fmt"
	"time"
)

// settle follows the fair way from a state: faults are over, everything that is due happens, late things come. It notes how long it takes until one run is
// active and nothing more happens.
func (w *walker) settle(from *state) {
	type visited struct {
		key key
		now time.Duration
	}
	var way []visited
	s := *from
	w.settling++
	defer func() { w.settling-- }()
	var rest time.Duration
	for {
		k := w.keyOf(&s)
		if d, ok := w.settled[k]; ok {
			rest = d
			break
		}
		way = append(way, visited{key: k, now: s.now})
		mv, ok := w.fair(&s)
		if !ok {
			rest = 0
			break
		}
		if s.now-from.now > w.Bound || mv.kind == waits && w.next(&s, w.anything(&s)) == 0 {
			w.broken(from, "C", fmt.Sprintf("%v after all faults are over there is still no single active run: %s", w.Bound, w.describe(&s)))
			return
		}
		w.do(&s, mv)
	}
	end := s.now + rest
	for _, v := range way {
		w.settled[v.key] = end - v.now
	}
	took := end - from.now
	w.sizes.Slowest = max(w.sizes.Slowest, took)
	if took > w.Bound {
		w.broken(from, "C", fmt.Sprintf("one run is active only %v after all faults are over", took))
	}
}

// fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
func (w *walker) fair(s *state) (mv move, ok bool) {
	for _, k := range s.sorted() {
		if s.live(int(s.letters[k].to)) {
			return move{delivers, uint8(k)}, true
		}
	}
	for _, from := range []func([]move, *state) []move{w.duties, w.mends, w.views} {
		for _, mv := range from(nil, s) {
			if mv.kind != decides || w.hopeless(s) {
				return mv, true
			}
		}
	}
	if w.hopeless(s) || !w.asItShouldBe(s) {
		return move{kind: waits}, true
	}
	return move{}, false
}

// mends are what ends faults.
func (w *walker) mends(to []move, s *state) []move {
	for i := range w.Members {
		if s.members[i].up && s.members[i].paused {
			to = append(to, move{resumes, uint8(i)})
		}
	}
	for _, mv := range w.cutting(nil, s) {
		if mv.kind == heals {
			to = append(to, mv)
		}
	}
	return to
}

// hopeless reports whether a verdict is needed: somebody will never answer again.
func (w *walker) hopeless(s *state) bool {
	for i := range w.Members {
		if !s.members[i].up && !s.losers.has(i) && w.counts(s, i) {
			return true
		}
	}
	return false
}

// asItShouldBe reports whether exactly one run is active, or none where nobody may run.
func (w *walker) asItShouldBe(s *state) bool {
	runs, may := 0, 0
	for i := range w.Members {
		m := &s.members[i]
		if w.active(s, i) {
			runs++
		}
		if s.live(i) && m.armed && !s.losers.has(i) && !m.m.Status().Resigned && !s.leaving.has(i) {
			may++
		}
	}
	return runs == min(may, 1)
}

// describe says what the members do.
func (w *walker) describe(s *state) (text string) {
	for i := range w.Members {
		if s.live(i) {
			text += fmt.Sprintf("%s is %v, ", name(i), s.members[i].m.Phase())
		}
	}
	return text + fmt.Sprintf("%d letters are under way", len(s.letters))
}

package explore

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// wrong is a broken promise.
type wrong struct{ promise, text string }

// or returns the first of the two that is not nil.
func (x *wrong) or(y *wrong) *wrong {
	if x != nil {
		return x
	}
	return y
}

// wrongLocal looks at one member alone.
func (w *walker) wrongLocal(i int, l *walkLocal) *wrong {
	v := l.r.Verdict()
	seen, _ := seenBy(l.r, i)
	if v.Standing(walkID(i), seen) == sbr.Out && l.r.State() != sbr.StateDown {
		return &wrong{"S2", fmt.Sprintf("%s goes on although it knows that verdict %d leaves it out",
			walkName(i), v.Token)}
	}
	if !w.lease {
		return nil
	}
	for j := range w.n {
		of, _ := seenBy(l.r, j)
		if l.out>>j&1 != 0 && w.side[i] != w.side[j] && v.Standing(walkID(j), of) != sbr.Out {
			return &wrong{"S4", fmt.Sprintf("%s keeps %s out although no verdict that it knows does", walkName(i),
				walkName(j))}
		}
	}
	return nil
}

// wrongAcquire looks at a member that asks for the lease.
func (w *walker) wrongAcquire(i int, r *sbr.Resolver) *wrong {
	if r.Suspects() > 0 {
		return nil
	}
	return &wrong{"L3", walkName(i) + " asks for the lease although nobody is unreachable"}
}

// wrongTick looks at a member whose deadline has just passed: the next one must lie ahead.
func (w *walker) wrongTick(i int, l *walkLocal, to uint32) *wrong {
	if to == 0 || l.due > 0 {
		return nil
	}
	return &wrong{"F1", walkName(i) + "'s deadline stands still"}
}

// checkMember looks at a member after each of its steps, together with the others and the store.
func (w *walker) checkMember(s *walkState, i int) {
	l := &w.members[i].locals[s.local[i]]
	if l.wrong != nil {
		w.broken(s, l.wrong)
	}
	switch v := l.verdict; {
	case s.knows(v): // the store may have forgotten it since
	case v.token > s.record.verdict.token:
		w.broken(s, &wrong{"S4", fmt.Sprintf("%s believes in verdict %d, which was never written",
			walkName(i), v.token)})
	case v.token == s.record.verdict.token && !v.partial && v != s.record.verdict:
		w.broken(s, &wrong{"S4", fmt.Sprintf("%s believes in another verdict %d than stands in the lease",
			walkName(i), v.token)})
	}
	for j := range w.n {
		if l.out>>j&1 == 0 || w.side[i] == w.side[j] || !s.up(j) {
			continue
		}
		// Once the store has forgotten, a second verdict may stand in the place of the first until its
		// members have heard of it: checkRest looks at what they do then.
		if w.members[j].locals[s.local[j]].out>>i&1 != 0 && w.Forgets == s.Forgets {
			w.broken(s, &wrong{"S1", fmt.Sprintf("%s and %s are up, and each has decided that the other is out",
				walkName(i), walkName(j))})
		}
	}
}

// checkWrite looks at a verdict that is being written.
func (w *walker) checkWrite(s *walkState, i int, v walkVerdict) {
	last := s.record.verdict.verdict()
	if !last.MayWrite(walkID(i), uint64(s.seen[i])) {
		w.broken(s, &wrong{"chain", fmt.Sprintf("%s writes verdict %d although the last one leaves it out",
			walkName(i), v.token)})
	}
	if last.Token > 0 && v.survivors == s.record.verdict.survivors {
		w.broken(s, &wrong{"chain", fmt.Sprintf("%s writes verdict %d, which removes nobody",
			walkName(i), v.token)})
	}
	for _, id := range walkIDs(v.survivors) {
		if !last.Eligible(id, uint64(s.seen[walkIndex(id)])) {
			w.broken(s, &wrong{"chain", fmt.Sprintf("verdict %d brings %s back", v.token, id)})
		}
	}
}

// checkRest looks at a state in which nothing more happens by itself.
func (w *walker) checkRest(s *walkState) {
	if s.excepted {
		w.search.Excepted++
		return
	}
	last := s.record.verdict.verdict()
	up, sides := 0, uint8(0)
	for i := range w.n {
		if !s.up(i) {
			continue
		}
		up++
		sides |= 1 << w.side[i]
		if w.lease && w.members[i].locals[s.local[i]].busy {
			w.broken(s, &wrong{"L1", walkName(i) + " waits for ever"})
		}
		if last.Standing(walkID(i), uint64(s.seen[i])) == sbr.Out {
			w.broken(s, &wrong{"S2", fmt.Sprintf("%s is up although the last verdict leaves it out", walkName(i))})
		}
	}
	if bits.OnesCount8(sides) > 1 {
		w.broken(s, &wrong{"S1", fmt.Sprintf("members of %d sides are up", bits.OnesCount8(sides))})
	}
	keeps := w.Forgets == s.Forgets // L1 is about a store that keeps what it was given
	if up == 0 && w.lease && !w.excused(s) && keeps {
		w.broken(s, &wrong{"L1", "nobody is up"})
	}
}

// excused reports whether faults explain that nobody is up: of the survivors of the last verdict (before one
// was written: of all), those that reach the store crashed; or there was only one, because others of its side
// never reach the store, and it could not hear that it had won before they gave the side up.
func (w *walker) excused(s *walkState) bool {
	able := w.access & (1<<w.first - 1) // a late starter is not promised anything
	if s.record.verdict.token > 0 {
		able &= s.record.verdict.survivors
	}
	unheard := w.Lost > s.Lost && len(w.NoStore) > 0 && bits.OnesCount8(able) == 1
	return able&^s.crashed == 0 || unheard
}

func (w *walker) broken(s *walkState, x *wrong) { w.search.Broken(s, x.promise, x.text) }

// Standing says which members are up and what the store holds.
func (w *walker) Standing(s *walkState) string {
	var up []string
	for i := range w.n {
		if s.up(i) {
			up = append(up, walkName(i))
		}
	}
	if len(up) == 0 {
		up = []string{"nobody"}
	}
	text := strings.Join(up, " ") + " up"
	if w.lease {
		text += "; the store holds " + s.record.String()
	}
	return text
}

package explore

import (
	"math/bits"
	"time"
)

// walkLooks are the moments of a walk in which it mattered to a resolver in which order the members that it reached stand, and among
// them were members of other sides: those of a side that has not noticed the cut yet. A resolver looks at that order to know
// when it is its turn (to decide, to remove, to pass a verdict on), and whether it is one of the first three, who tell their side.
type walkLooks struct {
	turn [MaxMembers][256]bool // by member, and what it reached
	tell [MaxMembers][256]bool
}

// ends notes a member that goes down.
func (k *walkLooks) ends(w *walker, s *walkState, i int) {
	if l := &w.members[i].locals[s.local[i]]; l.reach&^w.mates[i] != 0 {
		k.tell[i][l.reach] = true
	}
}

// waits notes the members whose turn may come while time passes. One that knows of no verdict, has removed nobody and does not race
// has no turn before its view has been stable for long enough.
func (k *walkLooks) waits(w *walker, s *walkState, by time.Duration) {
	for i := range w.n {
		if !s.up(i) {
			continue
		}
		l := &w.members[i].locals[s.local[i]]
		if l.reach&^w.mates[i] == 0 {
			continue
		}
		undecided := l.out == 0 && l.verdict.token == 0 && !l.racing
		switch {
		case undecided && !l.suspect:
		case undecided && l.unrest.on && l.unrest.last+by < w.Resolver.StableAfter:
		default:
			k.turn[i][l.reach] = true
		}
	}
}

// sameFor reports whether the order looks the same after the members were renamed.
func (k *walkLooks) sameFor(to []int) bool {
	for i := range to {
		for reach := range 256 {
			if k.turn[i][reach] && !inOrder(to, reach|1<<i) || k.tell[i][reach] && !sameTellers(to, i, reach) {
				return false
			}
		}
	}
	return true
}

// inOrder reports whether the members keep their order.
func inOrder(to []int, mask int) bool {
	last := -1
	for i, renamed := range to {
		if mask>>i&1 != 0 {
			if renamed < last {
				return false
			}
			last = renamed
		}
	}
	return true
}

// walkTellers is how many of the first members of a side tell it that it is out.
const walkTellers = 3

func sameTellers(to []int, i, reach int) bool {
	before, after := bits.OnesCount(uint(reach)&(1<<i-1)), 0
	for j, renamed := range to {
		if reach>>j&1 != 0 && renamed < to[i] {
			after++
		}
	}
	return before < walkTellers == (after < walkTellers)
}

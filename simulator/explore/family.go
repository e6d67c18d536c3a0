package explore

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Family is a number of walks that are the same but for the names of the members. One of them is enough when
// the strategy cannot tell the names apart.
type Family struct {
	// Form says what the walks have in common: the sizes of the sides in the order in which they decide ("3>2
	// 2s" is three, then two, 2s later; "+" is at the same moment). Partition is that of the first. Sizes are
	// those of the sides alone, the largest first.
	Form, Partition, Sizes string
	Walks                  []Walk
}

// FamilyResult is what the walks of a family found.
type FamilyResult struct {
	WalkCounts
	// Walked are the walks that were made, Covered the walks that another walk covers.
	Walked, Covered int
	// Complete says that every walk was made or covered, and searched everything.
	Complete bool
	// Broken are the first violations, with the partition in which they were found. After the first walk that
	// finds any there are no more.
	Broken []Violation
}

// Run makes the walks that are needed. It looks at ctx now and then.
func (f Family) Run(ctx context.Context) FamilyResult {
	var (
		result FamilyResult
		made   []*Walk
		notes  []*walkNotes
	)
next:
	for k := range f.Walks {
		o := f.Walks[k]
		for i := range made {
			if notes[i].covers(made[i], &o) {
				result.Covered++
				continue next
			}
		}
		asked := newWalkNotes(o.Strategy)
		o.Strategy = asked
		w := newWalker(o)
		asked.looks = &w.looks
		r := w.search.Run(ctx)
		result.Walked++
		result.WalkCounts = result.Add(r.Counts)
		for _, v := range r.Broken {
			v.Cluster = Partition(o.Sides).String()
			result.Broken = append(result.Broken, v)
		}
		if len(r.Broken) > 0 || !r.Complete {
			return result
		}
		made, notes = append(made, &f.Walks[k]), append(notes, asked)
	}
	result.Complete = true
	return result
}

// A walk need not be made when another one of the same form was: when some renaming of the members turns one
// into the other, keeps their order inside each side, gets the same answer from the strategy in every view in
// which it was asked, and keeps the order of the members that a resolver reached wherever it looked at that
// (walkLooks). The resolver itself sees no more of an address than that; everything else it does with names
// is to look for them in lists. So the other walk would go the same way, step by step. Where members notice
// the cut one by one (Walk.LateCut), or start anew, nothing is taken for alike.

// walkNotes is a strategy that notes what it was asked, and what else was looked at.
type walkNotes struct {
	sbr.Strategy
	asked map[walkView]walkChoice
	looks *walkLooks
}

// walkView is what a member saw when it asked: four bits for each member, zero for a member that it does not
// know.
type walkView struct {
	self   uint8
	digits uint32
}

// walkChoice is an answer, without words.
type walkChoice struct {
	kind     sbr.Kind
	delay    time.Duration
	minority bool
}

func newWalkNotes(s sbr.Strategy) *walkNotes {
	return &walkNotes{Strategy: s, asked: make(map[walkView]walkChoice)}
}

// NeedsLease is that of the strategy.
func (n *walkNotes) NeedsLease() bool { return sbr.NeedsLease(n.Strategy) }

// Decide asks the strategy.
func (n *walkNotes) Decide(v *sbr.View) sbr.Choice {
	c := n.Strategy.Decide(v)
	key := walkView{self: uint8(walkIndex(v.Self))}
	for k := range v.Members {
		m := &v.Members[k]
		digit := uint32(m.Status)<<1 + 1
		if m.Unreachable {
			digit++
		}
		key.digits |= digit << (4 * walkIndex(m.ID))
	}
	n.asked[key] = walkChoice{c.Kind, c.Delay, c.Minority}
	return c
}

// view is what was seen, after the members were renamed.
func (k walkView) view(n int, to []int) sbr.View {
	var members []sbr.Member
	for i := range n {
		digit := k.digits >> (4 * i) & 15
		if digit == 0 {
			continue
		}
		m := walkNode(to[i])
		m.Status, m.Unreachable = sbr.Status((digit-1)>>1), (digit-1)&1 == 1
		members = append(members, m)
	}
	return sbr.NewView(walkID(to[k.self]), members, nil, nil)
}

// sameFor reports whether the strategy answers the same to the renamed members.
func (n *walkNotes) sameFor(members int, to []int) bool {
	for k, c := range n.asked {
		v := k.view(members, to)
		if d := n.Strategy.Decide(&v); c != (walkChoice{d.Kind, d.Delay, d.Minority}) {
			return false
		}
	}
	return true
}

// covers reports whether a walk, in which the strategy was asked what n notes, has shown what another walk
// would show.
func (n *walkNotes) covers(walked, other *Walk) bool {
	if walked.LateCut || walked.Restarts > 0 {
		return false
	}
	members := 0
	for _, s := range walked.Sides {
		members += len(s)
	}
	return n.match(walked, other, make([]int, members), 0, make([]bool, len(other.Sides)))
}

// match tries every way to send the sides of the walk walked, from the g-th on, to the free sides of other.
func (n *walkNotes) match(walked, other *Walk, to []int, g int, taken []bool) bool {
	if g == len(walked.Sides) {
		return n.looks.sameFor(to) && n.sameFor(len(to), to)
	}
	for h, s := range other.Sides {
		if taken[h] || len(s) != len(walked.Sides[g]) || walked.noticedAt(g) != other.noticedAt(h) {
			continue
		}
		same := true
		for k, i := range walked.Sides[g] {
			to[i] = s[k]
			same = same && slices.Contains(walked.NoStore, i) == slices.Contains(other.NoStore, s[k])
		}
		if !same {
			continue
		}
		taken[h] = true
		if n.match(walked, other, to, g+1, taken) {
			return true
		}
		taken[h] = false
	}
	return false
}

// noticedAt is when a side notices the cut.
func (o *Walk) noticedAt(side int) time.Duration {
	if len(o.Noticed) == 0 {
		return 0
	}
	return o.Noticed[side]
}

// walkLooks are the moments of a walk in which the order of the members that a resolver reached mattered to
// it, and some of these were of other sides: its side has not noticed the cut yet. A resolver looks at that
// order to know when it is its turn (to decide, to remove, to pass a verdict on), and whether it is one of
// the first three, who tell their side.
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

// waits notes the members whose turn may come while time passes. A member that knows of no verdict, has
// removed nobody and does not race has no turn before its view has been stable for long enough, unless a
// lease decides: then the first of a side reads it until then.
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
		case undecided && !w.lease && l.unrest.on && l.unrest.last+by < w.Resolver.StableAfter:
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

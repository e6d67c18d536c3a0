package explore

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A walk need not be made when another one of the same form was: when some renaming of the members turns one into the other,
// keeps their order inside each side, gets the same answer from the strategy in every view in which it was asked, and keeps the order
// of the members that a resolver reached wherever it looked at that (walkLooks). The resolver itself sees no more of an address than
// that; everything else it does with names is to look for them in lists. So the other walk would go the same way, step by step.
// Where members notice the cut one by one (Walk.LateCut), or start anew, nothing is taken for alike.

// walkNotes is a strategy that notes what it was asked, and what else was looked at.
type walkNotes struct {
	sbr.Strategy
	asked map[walkView]walkChoice
	looks *walkLooks
}

// walkView is what a member saw when it asked: a digit of four bits for each member, zero for one that it does not know.
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

// NeedsLease says what the strategy says.
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

// covers reports whether a walk, in which the strategy was asked what n says, has shown what another one would.
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

// match tries every way to send the sides of the one walk, from the g-th on, to those of the other that are free.
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

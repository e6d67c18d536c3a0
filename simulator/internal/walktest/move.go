package walktest

import (
	"fmt"
	"math/bits"
	"slices"
	"time"
)

// The kinds of moves of a cluster and of its messages. Those of a model begin at Own.
const (
	// Delivers, Copies, Delays and Drops are about a message: see Packets.
	Delivers Kind = iota + 1
	Copies
	Delays
	Drops
	arms
	learns
	joins
	cuts
	heals
	crashes
	pauses
	resumes
	decides
	seesDown
	seesGone
	notices
	hearsDown
	resigns
	leaves
	withdraws
	returns
	departs
	// What happens to runs and their leases: see Runs. At is a member and, times MaxMembers, which one runs.
	ends
	endsForGood
	grants
	expires
	loses
	doubts
	strangerTakes
	strangerReleases
	// Own is the first kind of a model.
	Own
)

// Duties are what happens before time passes. finished says whether nothing runs on a member, nor will.
func (c *Cluster) Duties(to []Move, finished func(i int) bool) []Move {
	whole, n := c.Whole(), c.Options.Members
	for i := range n {
		m, at := &c.Members[i], uint8(i)
		if !c.Live(i) {
			continue
		}
		for j := range n {
			if c.Members[j].Joined && c.Members[j].Up && !m.Knows.Has(j) && j != i && !c.Losers.Has(j) &&
				c.Cut.Has(i) == c.Cut.Has(j) {
				to = append(to, Move{Kind: learns, At: uint8(i<<4 | j)})
			}
		}
		switch {
		case m.Told || !whole || !finished(i):
		case c.Leaving.Has(i):
			to = append(to, Move{Kind: departs, At: at})
		case !m.Closed:
			to = append(to, Move{Kind: withdraws, At: at})
		}
		if !m.Armed && i < n-c.Joins && c.known(i) {
			to = append(to, Move{Kind: arms, At: at})
		}
	}
	return to
}

// Views are what members may notice at this moment, or later, and the sides that may win.
func (c *Cluster) Views(to []Move) []Move {
	for i := range c.Options.Members {
		m, at := &c.Members[i], uint8(i)
		if !c.Live(i) {
			continue
		}
		if c.unaware(i) {
			to = append(to, Move{Kind: notices, At: at})
		}
		if c.Losers.Has(i) && !m.Told {
			to = append(to, Move{Kind: hearsDown, At: at})
		}
		if !c.Losers.Has(i) && c.outside(i) != 0 {
			to = append(to, Move{Kind: seesDown, At: at})
		}
		if m.Down&^m.Gone != 0 && c.Budget.Removals > 0 {
			to = append(to, Move{Kind: seesGone, At: at})
		}
		if !m.Armed && i >= c.Options.Members-c.Joins && c.known(i) {
			to = append(to, Move{Kind: arms, At: at})
		}
	}
	return c.verdicts(to)
}

// verdicts are the sides that may win.
func (c *Cluster) verdicts(to []Move) []Move {
	if c.Now < c.Changed+c.StableAfter {
		return to
	}
	for side := range 2 {
		var stay Set
		ready, amiss, armed := true, false, false
		for i := range c.Options.Members {
			if !c.Live(i) || c.Losers.Has(i) || c.Cut.Has(i) != (side == 1) {
				continue
			}
			stay |= One(i)
			ready = ready && !c.unaware(i)
			amiss = amiss || c.Members[i].Unreachable&^c.Losers != 0
			armed = armed || c.Members[i].Armed // the others do not decide
		}
		if armed && ready && amiss {
			to = append(to, Move{Kind: decides, At: uint8(stay)})
		}
	}
	return to
}

// Faults are what may happen to members and the network as long as there is a budget.
func (c *Cluster) Faults(to []Move) []Move {
	whole := c.Whole()
	for i := range c.Options.Members {
		m, at := &c.Members[i], uint8(i)
		if m.Up && m.Joined && m.Paused {
			to = append(to, Move{Kind: resumes, At: at})
		}
		if whole && !m.Joined {
			to = append(to, Move{Kind: joins, At: at})
			break // in their order
		}
		if !c.Live(i) {
			continue
		}
		if c.Budget.Crashes > 0 {
			to = append(to, Move{Kind: crashes, At: at})
		}
		if c.Budget.Pauses > 0 {
			to = append(to, Move{Kind: pauses, At: at})
		}
		if c.Budget.Resigns > 0 && m.Armed && !m.Resigns {
			to = append(to, Move{Kind: resigns, At: at})
		}
		if c.Budget.Returns > 0 && m.Closed && !c.Leaving.Has(i) && !c.Losers.Has(i) {
			to = append(to, Move{Kind: returns, At: at})
		}
		if c.Budget.Leaves > 0 && whole && m.Armed && !m.Resigns && !c.Losers.Has(i) {
			to = append(to, Move{Kind: leaves, At: at})
		}
	}
	return c.cutting(to)
}

// cutting are the ways to cut the cluster, and to heal it.
func (c *Cluster) cutting(to []Move) []Move {
	var all Set
	for i := range c.Options.Members {
		if c.Members[i].Joined && c.Members[i].Up {
			all |= One(i)
		}
	}
	if c.Cut != 0 && c.Losers&all == 0 {
		to = append(to, Move{Kind: heals, At: 0})
	}
	if c.Budget.Cuts == 0 || c.Cut != 0 {
		return to
	}
	first := One(bits.TrailingZeros8(uint8(all)))
	for side := Set(1); side < One(c.Options.Members); side++ {
		if side&^all == 0 && side&first == 0 {
			to = append(to, Move{Kind: cuts, At: uint8(side)})
		}
	}
	return to
}

// mends are what ends faults.
func (c *Cluster) mends(to []Move) []Move {
	for i := range c.Options.Members {
		if c.Members[i].Up && c.Members[i].Paused {
			to = append(to, Move{Kind: resumes, At: uint8(i)})
		}
	}
	for _, mv := range c.cutting(nil) {
		if mv.Kind == heals {
			to = append(to, mv)
		}
	}
	return to
}

// Fair is what the cluster does next where nothing goes wrong: what ends faults, and what members notice. A
// verdict comes only where there is no other way.
func (c *Cluster) Fair() (mv Move, ok bool) {
	for _, mv := range c.Views(c.mends(nil)) {
		if mv.Kind != decides || c.Hopeless() {
			return mv, true
		}
	}
	return Move{}, false
}

// Application is what runs on the members, of which the cluster's moves make something.
type Application interface {
	// Shown: a member's view has changed. Everyone: all views have.
	Shown(i int)
	Everyone()
	// Resumed: a member goes on after its pause.
	Resumed(i int)
	// Ended: a member is away, with all that ran there.
	Ended(i int)
	// Split: the network was cut.
	Split()
	// Downed: a member hears that it is down. Resigned: its manager is stopped. Returned: it has a new one.
	Downed(i int)
	Resigned(i int)
	Returned(i int)
}

// Do lets a move of the cluster happen.
func (c *Cluster) Do(mv Move, on Application) {
	switch mv.Kind {
	case crashes, pauses, resumes, cuts, heals:
		c.doFault(mv, on)
	case decides, learns, arms, notices, seesDown, seesGone, hearsDown:
		c.doView(mv, on)
	default:
		c.doMember(mv, on)
	}
}

func (c *Cluster) doFault(mv Move, on Application) {
	i := int(mv.At)
	m := &c.Members[i&(MaxMembers-1)]
	c.Changed = c.Now
	switch mv.Kind {
	case crashes:
		c.Budget.Crashes--
		c.End(i, on)
	case pauses:
		c.Budget.Pauses--
		m.Paused, m.Doubts, m.Stood = true, true, c.Now
	case resumes:
		m.Paused = false
		on.Resumed(i)
	case cuts:
		c.Budget.Cuts--
		c.Cut = Set(mv.At)
		on.Split()
	case heals:
		c.Cut = 0
	}
}

// End takes a member away: it crashed, or is down and done.
func (c *Cluster) End(i int, on Application) {
	c.Members[i].Up, c.Members[i].Paused = false, false
	on.Ended(i)
}

func (c *Cluster) doView(mv Move, on Application) {
	i := int(mv.At)
	switch mv.Kind {
	case decides:
		c.Verdict++
		c.Decided = c.Now
		for j := range c.Options.Members {
			if m := &c.Members[j]; m.Joined && !m.Left && !Set(mv.At).Has(j) {
				c.Losers |= One(j)
			}
		}
		return
	case learns:
		i = int(mv.At >> 4)
		c.Members[i].Knows |= One(int(mv.At & 15))
	case arms:
		c.Members[i].Armed = true
	case notices:
		m := &c.Members[i]
		m.Unreachable = c.Target(i)
		m.Doubts = m.Doubts && c.Losers.Has(i)
	case seesDown:
		m := &c.Members[i]
		m.Down |= c.outside(i)
		m.Unreachable &^= m.Down
		m.Verdict = c.Verdict
	case seesGone:
		c.Budget.Removals--
		c.Members[i].Gone = c.Members[i].Down
	case hearsDown:
		c.Members[i].Told = true
		on.Downed(i)
		return
	}
	on.Shown(i)
}

func (c *Cluster) doMember(mv Move, on Application) {
	i := int(mv.At)
	m := &c.Members[i]
	switch mv.Kind {
	case joins:
		c.join(i)
		on.Shown(i)
	case resigns:
		c.Budget.Resigns--
		m.Resigns = true
		on.Resigned(i)
	case leaves:
		c.Budget.Leaves--
		m.Resigns = true
		c.Leaving |= One(i)
		on.Everyone()
	case withdraws:
		m.Closed = true
		on.Everyone()
	case returns:
		c.Budget.Returns--
		m.Closed, m.Resigns = false, false
		on.Returned(i)
		on.Everyone()
	case departs:
		m.Left = true
		c.End(i, on)
		for j := range c.Options.Members {
			c.Members[j].Knows &^= One(i)
		}
		on.Everyone()
	}
}

// join lets a member join the members that are left. It knows whom they know, as does a member that has not
// heard of the newest verdict yet.
func (c *Cluster) join(i int) {
	m := &c.Members[i]
	m.Joined, m.Up, m.Verdict = true, true, c.Verdict
	for j := range c.Options.Members {
		if o := &c.Members[j]; o.Up && o.Joined && !c.Losers.Has(j) {
			m.Knows |= One(j) | o.Knows&^o.Down
			m.Verdict = min(m.Verdict, o.Verdict)
		}
	}
	if c.Cut != 0 { // it joins the side that is left
		c.Cut &^= One(i)
		if first := slices.IndexFunc(c.Members[:], func(o Member) bool {
			return o.Up && o.Joined && !o.Told
		}); c.Cut.Has(first) {
			c.Cut |= One(i)
		}
	}
}

var texts = map[Kind]string{arms: "%s is armed", joins: "%s joins", crashes: "%s CRASHES",
	pauses: "%s is PAUSED", resumes: "%s goes on after its pause",
	seesDown: "%s sees the losers as down", seesGone: "%s sees the losers removed",
	notices: "%s notices whom it reaches", hearsDown: "%s hears that it is DOWN",
	resigns: "%s RESIGNS", leaves: "%s LEAVES", withdraws: "%s has no manager any more",
	returns: "%s has a manager AGAIN", departs: "%s is gone in good order"}

// Describe says what a move of the cluster is, in a line.
func (c *Cluster) Describe(mv Move) string {
	switch mv.Kind {
	case learns:
		return fmt.Sprintf("%s learns of %s", Name(int(mv.At>>4)), Name(int(mv.At&15)))
	case cuts:
		return "the network is CUT: " + Set(mv.At).String() + " from the others"
	case heals:
		return "the network HEALS"
	case decides:
		return "a VERDICT: " + Set(mv.At).String() + " stay"
	default:
		return fmt.Sprintf(texts[mv.Kind], Name(int(mv.At)))
	}
}

// Pass is how much time passes: a step while anything may happen at any moment, else until the next of these
// moments. Zero: nothing will come.
func (c *Cluster) Pass(anything bool, deadlines ...time.Duration) time.Duration {
	for k, at := range deadlines {
		deadlines[k] = max(at, c.Now+c.Step)
	}
	by := c.Until(deadlines...)
	if by > 0 && anything {
		return c.Step
	}
	return by
}

package walktest

import (
	"encoding/binary"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// Set is a set of members, a bit each.
type Set uint8

// Has reports whether a member is in it.
func (s Set) Has(i int) bool { return s>>i&1 != 0 }

// One is the set of one member.
func One(i int) Set { return 1 << i }

// String names the members.
func (s Set) String() (text string) {
	for i := range MaxMembers {
		if s.Has(i) {
			text += string(Name(i))
		}
	}
	return text
}

// Member is what the cluster knows of a member, and what that member knows of the others.
type Member struct {
	Up, Paused, Joined, Armed bool
	// Closed: the manager is over, Doubts: it was paused and does not know its fate yet, Told: it has heard
	// that it is down.
	Closed, Doubts, Told bool
	Left                 bool          // out of the cluster, in good order
	Resigns              bool          // its manager was stopped, or it leaves
	Sure, Stood          time.Duration // when it was last sure, and was paused
	// The members that it knows, does not reach, sees as down, as removed.
	Knows, Unreachable, Down, Gone Set
	// Verdict is the newest that it knows.
	Verdict uint64
}

// Cluster is an abstract cluster without what runs on top of it: which members are there and know each other,
// cuts and verdicts. It is a value.
type Cluster struct {
	*Options
	// Budget is what may still happen.
	Budget  Budget
	Now     time.Duration
	Members [MaxMembers]Member
	// Cut is one side of a cut, Changed when reachability has last changed. Losers are out by the verdicts,
	// the last of which came at Decided.
	Cut              Set
	Changed, Decided time.Duration
	Verdict          uint64
	Losers           Set
	Leaving          Set
}

// NewCluster returns one whose members know each other, and are not armed yet; nothing may happen to it. It
// keeps o.
func NewCluster(o *Options) (c Cluster) {
	c.Options = o
	c.Changed, c.Decided = -o.StableAfter, -o.StableAfter
	there := o.Members - o.Joins
	for i := range there {
		c.Members[i] = Member{Up: true, Joined: true, Knows: One(there) - 1}
	}
	return c
}

// Endanger allows what the options allow.
func (c *Cluster) Endanger() { c.Budget = c.Options.Budget }

// Born is a member's birth.
func (o *Options) Born(i int) int64 {
	if o.Skewed && i >= o.Members-o.Joins {
		return int64(1 + i)
	}
	return int64(100 + i)
}

// Age is how long ago something was, cut at what matters.
func (c *Cluster) Age(t, most time.Duration) time.Duration { return min(c.Now-t, most) }

// AppendKey appends what distinguishes the cluster from others. trust is for how long it matters when a
// member was last sure, stood for how long when it was paused.
func (c *Cluster) AppendKey(b []byte, trust, stood time.Duration) []byte {
	for i := range c.Options.Members {
		m := &c.Members[i]
		var flags uint16
		for k, f := range [...]bool{m.Up, m.Paused, m.Joined, m.Armed, m.Closed, m.Doubts, m.Told, m.Left,
			m.Resigns} {
			if f {
				flags |= 1 << k
			}
		}
		b = append(b, byte(flags), byte(flags>>8))
		if !m.Up {
			continue
		}
		b = append(b, byte(m.Knows), byte(m.Unreachable), byte(m.Down), byte(m.Gone), byte(m.Verdict))
		b = binary.AppendVarint(b, int64(c.Age(m.Sure, trust)))
		if m.Paused { // its machines count from when it stood still
			b = binary.AppendVarint(b, int64(c.Age(m.Stood, stood)))
		}
	}
	b = append(b, byte(c.Cut), byte(c.Losers), byte(c.Leaving))
	b = binary.AppendUvarint(b, c.Verdict)
	b = binary.AppendVarint(b, int64(c.Age(c.Changed, max(c.StableAfter, c.Notice))))
	b = binary.AppendVarint(b, int64(c.Age(c.Decided, c.Notice)))
	return c.Budget.appendKey(b)
}

// Live reports whether a member does anything.
func (c *Cluster) Live(i int) bool {
	m := &c.Members[i]
	return m.Up && m.Joined && !m.Paused
}

// Talk reports whether what one member says can reach another, now or once the other one goes on.
func (c *Cluster) Talk(from, to int) bool {
	a, b := &c.Members[from], &c.Members[to]
	return a.Up && b.Up && a.Joined && b.Joined && !b.Left && c.Cut.Has(from) == c.Cut.Has(to)
}

// Target are the members that a member will find that it does not reach.
func (c *Cluster) Target(i int) (t Set) {
	m := &c.Members[i]
	for j := range c.Options.Members {
		o := &c.Members[j]
		if j != i && m.Knows.Has(j) && !m.Down.Has(j) && (!o.Up || o.Paused || c.Cut.Has(i) != c.Cut.Has(j)) {
			t |= One(j)
		}
	}
	return t
}

// counts reports whether a member is part of the cluster: it is there, or was and others know it.
func (c *Cluster) counts(i int) bool {
	m := &c.Members[i]
	if !m.Joined || m.Left {
		return false
	}
	known := m.Up
	for j := range c.Options.Members {
		known = known || c.Live(j) && c.Members[j].Knows.Has(i)
	}
	return known
}

// Whole reports whether all that are left can talk, and know it.
func (c *Cluster) Whole() bool {
	side := -1
	for i := range c.Options.Members {
		m := &c.Members[i]
		if c.Losers.Has(i) || !c.counts(i) {
			continue
		}
		if !c.Live(i) || c.Target(i) != 0 || m.Unreachable != 0 || m.Doubts {
			return false
		}
		here := 0
		if c.Cut.Has(i) {
			here = 1
		}
		if side >= 0 && here != side {
			return false
		}
		side = here
	}
	return true
}

// Hopeless reports whether a verdict is needed: a member will never answer again.
func (c *Cluster) Hopeless() bool {
	for i := range c.Options.Members {
		if !c.Members[i].Up && !c.Losers.Has(i) && c.counts(i) {
			return true
		}
	}
	return false
}

// outside are the members that a member has yet to see as down.
func (c *Cluster) outside(i int) Set { return c.Losers & c.Members[i].Knows &^ c.Members[i].Down }

// unaware reports whether a member has yet to notice a change of the members that it reaches.
func (c *Cluster) unaware(i int) bool {
	m := &c.Members[i]
	return m.Unreachable != c.Target(i) || m.Doubts && !c.Losers.Has(i)
}

// known reports whether all members know a member.
func (c *Cluster) known(i int) bool {
	for j := range c.Options.Members {
		if o := &c.Members[j]; j != i && o.Up && o.Joined && !c.Losers.Has(j) &&
			(!o.Knows.Has(i) || !c.Members[i].Knows.Has(j)) {
			return false
		}
	}
	return true
}

// Overdue reports whether a member has to notice something before more time passes.
func (c *Cluster) Overdue() bool {
	for i := range c.Options.Members {
		if !c.Live(i) {
			continue
		}
		if c.unaware(i) && c.Now >= c.Changed+c.Notice || !c.Losers.Has(i) && c.outside(i) != 0 &&
			c.Now >= c.Decided+c.Notice {
			return true
		}
	}
	return false
}

// Until is how long it takes until one of these moments, or one of the cluster's own. Zero: none comes.
func (c *Cluster) Until(moments ...time.Duration) (by time.Duration) {
	for _, t := range append(moments, c.Changed+c.Notice, c.Changed+c.StableAfter, c.Decided+c.Notice) {
		if t > c.Now && (by == 0 || t-c.Now < by) {
			by = t - c.Now
		}
	}
	return by
}

// Look has a member look around: it may be sure of its place.
func (c *Cluster) Look(i int) {
	if m := &c.Members[i]; m.Armed && m.Unreachable == 0 && !m.Doubts {
		m.Sure = c.Now
	}
}

// View is how a member sees all that it knows.
func (c *Cluster) View(i int) (list []slot.Peer) {
	m := &c.Members[i]
	for j := range c.Options.Members {
		if m.Knows.Has(j) && !m.Gone.Has(j) {
			list = append(list, slot.Peer{
				ID: Name(j), Name: string(Name(j)), Born: c.Born(j),
				Candidate: !c.Members[j].Closed, Leaving: c.Leaving.Has(j), Down: m.Down.Has(j),
				Unreachable: m.Unreachable.Has(j) && !m.Down.Has(j),
			})
		}
	}
	return list
}

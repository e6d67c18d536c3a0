package host

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// Clone returns an independent copy, for model checkers that try several continuations of one state.
func (m *Machine) Clone() *Machine {
	c := *m
	c.Base = m.Base.Clone()
	c.shards = slices.Clone(m.shards)
	c.held = slices.Clone(m.held)
	c.asks = slices.Clone(m.asks)
	c.duties = slices.Clone(m.duties)
	c.begs = slices.Clone(m.begs)
	c.news = slices.Clone(m.news)
	c.going = slices.Clone(m.going)
	return &c
}

// AppendState writes everything that decides how the machine will behave. Times are relative to the last
// call. The numbers of runs and attempts are left out.
func (m *Machine) AppendState(c message.Writer) {
	c.Flags(m.down, m.leaving, m.resigned, m.foreign, m.floor > 0)
	c.Uint(m.known.Term)
	c.Text(string(m.known.Coordinator))
	c.Due(m.patience, m.Now)
	c.Due(m.bidAt, m.Now)
	for s := range m.shards {
		m.shards[s].appendState(c, s, m)
		c.Order(s, m.floor) // it is compared with those
	}
	for _, a := range m.asks {
		c.Uint(uint64(a.of))
		c.Due(a.at, m.Now)
	}
	c.Text("|")
	for _, d := range m.duties {
		c.Question(m.self, d.number)
		for _, o := range d.orders {
			c.Order(o.Shard, o.Number)
		}
		c.Text(";")
	}
	c.Text("|")
	for _, g := range m.begs {
		c.Text(string(g.from))
		for _, t := range g.takes {
			c.Order(t.Shard, t.Number)
		}
		c.Due(g.at, m.Now)
	}
	c.Text("|")
	for _, s := range m.news {
		c.Uint(uint64(s))
		c.Seq(m.self, m.shards[s].toldIn)
	}
	c.Due(m.newsAt, m.Now)
	for _, g := range m.Departed {
		c.Text(string(g.ID))
		c.Due(g.Until, m.Now)
	}
	c.Text("|")
	for _, g := range m.going {
		c.Text(string(g.id))
		c.Flags(g.done)
	}
	c.Uint(uint64(m.Now - m.View.Sure))
	c.View(&m.View)
}

func (sl *shard) appendState(c message.Writer, s int, m *Machine) {
	c.Uint(uint64(sl.Phase))
	c.Flags(sl.again, sl.InFlight, sl.Held, sl.Lost)
	for _, n := range []uint64{sl.seen, sl.number, sl.given} {
		c.Order(s, n)
	}
	switch {
	case sl.Phase != slot.Active && sl.Phase != slot.Resting:
	case m.cfg.UseLease:
		c.Token(s, sl.Token)
	default:
		c.Order(s, sl.Token)
	}
	c.Uint(uint64(sl.from))
	c.Text(string(sl.handed))
	c.Text(string(sl.handedBy))
	if m.cfg.UseLease && len(sl.handed)+len(sl.left) > 0 {
		c.Token(s, sl.Token)
		c.Token(s, sl.handedToken)
	}
	c.Text(string(sl.left))
	at, _ := sl.Slot.Due()
	c.Due(at, m.Now)
}

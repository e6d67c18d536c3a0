package handover

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Clone returns an independent copy, for model checkers that try several continuations of one state.
func (m *Machine) Clone() *Machine {
	c := *m
	c.Base = m.Base.Clone()
	c.heard = slices.Clone(m.heard) // a question that is kept never changes
	c.waiting = slices.Clone(m.waiting)
	return &c
}

// AppendState writes everything that decides how the machine will behave. Times are relative to the last
// call. The numbers of rounds, attempts and questions are left out, and how often a member was asked where
// that only says when something is explained; tokens are not.
func (m *Machine) AppendState(c slot.Writer) {
	c.Uint(uint64(m.slot.Phase))
	c.Flags(m.resigned, m.down, m.slot.InFlight, m.slot.Held, m.slot.Lost, m.bound)
	due, _ := m.slot.Due()
	for _, t := range []time.Duration{m.patience, m.askAt, m.notBefore, m.waitUntil, due} {
		c.Due(t, m.Now)
	}
	for i := range m.heard {
		if o := &m.heard[i]; *o != (other{id: o.id}) {
			o.appendState(c, m.Now, m.cfg.NumberOfRetries)
		}
	}
	c.Text("|")
	for _, g := range m.Departed {
		c.Text(string(g.ID))
		c.Due(g.Until, m.Now)
	}
	c.Text("|")
	for _, w := range m.waiting {
		c.Text(string(w.from))
		from := m.known(w.from)
		c.Uint(from.since(w.round))
	}
	c.Text("|")
	if m.notBefore > m.Now {
		c.Text(string(m.gaveWay))
	}
	c.Text("|")
	for _, n := range []uint64{m.slot.Token, m.maxToken, m.estate.token} {
		c.Uint(n)
	}
	for _, s := range []string{string(m.estate.state), string(m.estate.from), string(m.lent)} {
		c.Text(s)
	}
	if !m.cfg.UseLease {
		c.Uint(uint64(max(m.View.Sure+m.cfg.Trust-m.Now, 0))) // never, or too long ago, is the same
	}
	c.View(&m.View)
}

func (o *other) appendState(c slot.Writer, now time.Duration, retries int) {
	kept := o.kept != nil && now <= o.keptUntil
	c.Text(string(o.id))
	c.Flags(o.asks, o.goes, o.done, kept, o.goes && now < o.late)
	c.Uint(uint64(o.answer))
	c.Uint(uint64(min(o.tries, retries+1)))
	if o.goes && now < o.late {
		c.Uint(o.since(o.went))
		c.Due(o.late, now)
	}
	if kept {
		c.Uint(o.since(o.kept.Message.Round))
		c.Due(o.keptUntil, now)
	}
}

// since returns how many rounds a member's request is older than its newest one.
func (o *other) since(round uint64) uint64 {
	if !o.asks {
		return 0
	}
	return o.asked - round
}

// Status is what a machine waits for, for people.
type Status struct {
	// Asked are the members whose consent is missing, in order.
	Asked []sbr.ID
	// Until is when the last known margin is over, on the driver's clock; zero: there is none.
	Until time.Duration
	// Resigned: the slot is never run here again.
	Resigned bool
}

// Status returns what the machine waits for. It shares nothing with the machine.
func (m *Machine) Status() Status {
	s := Status{Resigned: m.over()}
	if m.slot.Phase != slot.Taking {
		return s
	}
	for _, o := range m.heard {
		if o.tries > 0 && o.answer != Clear {
			s.Asked = append(s.Asked, o.id)
		}
	}
	if d := m.margins(); d > 0 {
		s.Until = m.Now + d
	}
	return s
}

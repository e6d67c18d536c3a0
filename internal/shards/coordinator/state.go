package coordinator

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
)

// Clone returns an independent copy, for model checkers that try several continuations of one state. The
// allocator is shared: it does not change.
func (m *Machine) Clone() *Machine {
	c := *m
	c.Base = m.Base.Clone()
	c.members = slices.Clone(m.members)
	c.shards = slices.Clone(m.shards)
	for i := range c.shards {
		c.shards[i].claims = slices.Clone(c.shards[i].claims)
	}
	c.fresh = slices.Clone(m.fresh)
	return &c
}

// AppendState writes everything that decides how the machine will behave. Times are relative to the last
// call.
func (m *Machine) AppendState(c message.Writer) {
	c.Flags(m.over, m.recovered, m.dirty)
	for _, t := range []time.Duration{m.waitUntil, m.planAt, m.repeatAt, m.auditAt} {
		c.Due(t, m.Now)
	}
	for i := range m.members {
		m.members[i].appendState(c, m.Now, m.cfg.NumberOfRetries)
	}
	for s := range m.shards {
		m.shards[s].appendState(c, s, m)
	}
	c.View(&m.View)
}

func (w *member) appendState(c message.Writer, now time.Duration, retries int) {
	c.Text(string(w.peer.ID))
	c.Flags(w.known, w.serves, w.foreign, w.leaving, w.passed, w.peer.Candidate, w.peer.Leaving, w.silent > 1)
	c.Uint(uint64(max(w.silent, 1)-1) % uint64(retries))
	c.Uint(uint64(w.cursor))
	c.Question(w.key, w.heard)
	c.Seq(w.key, w.seq)
	c.Due(w.until, now)
	c.Due(w.askAt, now)
	c.Due(w.unableUntil, now)
}

func (h *shard) appendState(c message.Writer, s int, m *Machine) {
	for i := range h.claims {
		x := &h.claims[i]
		c.Text(string(x.id))
		c.Uint(uint64(x.phase))
		c.Order(s, x.number)
		c.Order(s, x.ordered)
	}
	c.Text("|")
	o := &h.order
	c.Order(s, o.number)
	if o.number == 0 {
		return
	}
	c.Text(string(o.from))
	c.Text(string(o.origin))
	c.Text(string(o.to))
	c.Flags(o.loud)
	interval := m.cfg.HandOverRetryInterval
	c.Due(o.since+interval, m.Now)
	c.Due(o.since+time.Duration(m.cfg.NumberOfRetries)*interval, m.Now)
	if o.loud {
		c.Uint(uint64((m.Now - o.since) % (5 * interval))) // it is repeated less often
	}
}

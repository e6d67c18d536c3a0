package coordinator

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Clone returns an independent copy, for model checkers that try several continuations of one state. The allocator is shared: it does not change.
func (m *Machine) Clone() *Machine {
	c := *m
	c.members = slices.Clone(m.members)
	c.shards = slices.Clone(m.shards)
	for i := range c.shards {
		c.shards[i].claims = slices.Clone(c.shards[i].claims)
	}
	c.fresh = slices.Clone(m.fresh)
	c.out = nil
	return &c
}

// AppendState appends a canonical encoding of everything that decides how the machine will behave, and returns the extended slice. Times are relative to
// the last call. The numbers of questions and reports are left out; those of orders are not.
func (m *Machine) AppendState(b []byte) []byte {
	due := func(t time.Duration) { b = binary.AppendVarint(b, int64(max(t-m.now, -1))) }
	b = append(b, bits(m.over, m.recovered, m.dirty))
	for _, t := range []time.Duration{m.waitUntil, m.planAt, m.repeatAt, m.auditAt, m.tellAt} {
		due(t)
	}
	b = binary.AppendUvarint(b, uint64(m.telling))
	for i := range m.members {
		w := &m.members[i]
		b = append(appendText(b, w.peer.ID), bits(w.known, w.serves, w.foreign, w.leaving, w.passed))
		b = binary.AppendUvarint(b, uint64(w.silent))
		b = binary.AppendUvarint(b, uint64(w.cursor))
		due(w.until)
		due(w.askAt)
		due(w.unableUntil)
	}
	for s := range m.shards {
		h := &m.shards[s]
		b = append(b, '|')
		for _, c := range h.claims {
			b = append(appendText(b, c.id), byte(c.phase))
			b = binary.AppendUvarint(b, c.number)
			b = binary.AppendUvarint(b, c.ordered)
		}
		b = binary.AppendUvarint(b, h.order.number)
		b = appendText(b, h.order.from)
		b = appendText(b, h.order.origin)
		b = append(appendText(b, h.order.to), bits(h.order.loud))
		due(h.order.since + m.cfg.HandOverRetryInterval)
		due(h.order.since + time.Duration(m.cfg.NumberOfRetries)*m.cfg.HandOverRetryInterval)
	}
	return m.view.AppendState(b, m.now)
}

func bits(all ...bool) (b byte) {
	for i, set := range all {
		if set {
			b |= 1 << i
		}
	}
	return b
}

func appendText(b []byte, s sbr.ID) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

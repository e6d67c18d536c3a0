package coordinator

import (
	"cmp"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// asked handles a host's own request.
func (m *Machine) asked(e slot.Asked[message.Message]) {
	w := m.member(e.From)
	if w == nil || w.gone() {
		return
	}
	switch q := &e.Message; q.Kind {
	case message.State:
		overtaken := q.Seq < w.seq
		m.reported(w, q)
		if !m.over && !overtaken && q.Term == m.cfg.Term {
			noted := message.Message{Kind: message.Noted, Digest: m.cfg.Digest, Term: m.cfg.Term, Seq: q.Seq}
			m.Emit(slot.Answer[message.Message]{Ref: e.Ref, Message: noted})
		}
	case message.Resigned:
		if q.Digest == m.cfg.Digest && q.Seq > w.seq {
			w.seq = q.Seq
			m.unserved(w)
		}
	}
}

// answered handles the answer to a request of this machine.
func (m *Machine) answered(e slot.Answered[message.Message]) {
	w := m.member(e.From)
	if w == nil || w.gone() {
		return
	}
	switch {
	case e.Unserved && message.TermOf(e.Message.Number) == m.cfg.Term && e.Message.Number > w.heard:
		w.heard = e.Message.Number
		m.unserved(w)
	case !e.Unserved && e.Message.Kind == message.State:
		m.reported(w, &e.Message)
	}
}

// unserved notes that a member has no manager: a manager is closed only once nothing of it runs.
func (m *Machine) unserved(w *member) {
	if !w.known || w.serves {
		m.dirty = true
	}
	w.known, w.serves, w.leaving, w.passed, w.silent, w.cursor = true, false, false, false, 0, 0
	m.disown(w.peer.ID)
}

// reported handles a report of a member's shards.
func (m *Machine) reported(w *member, a *message.Message) {
	switch {
	case a.Refused || a.Term > m.cfg.Term:
		m.resign(max(a.Term, m.cfg.Term), "the member "+string(w.peer.ID)+" follows another coordinator")
		return
	case a.Term < m.cfg.Term || a.Seq <= w.seq:
		return // overtaken
	}
	w.seq, w.heard = a.Seq, max(w.heard, a.Number)
	if w.passed || w.leaving != a.Leaving {
		m.dirty = true
	}
	w.silent, w.passed, w.leaving = 0, false, a.Leaving
	if a.Digest != m.cfg.Digest {
		m.stranger(w, a)
		return
	}
	if w.foreign {
		w.foreign = false
		m.ExplainShard(TopicMember, -1, "%s has the same list of shards now", w.peer.ID)
	}
	if !w.known {
		m.waitUntil = max(m.waitUntil, m.Now+a.Wait)
	}
	m.take(w, a)
}

// take records the shards of a report.
func (m *Machine) take(w *member, a *message.Message) {
	next := a.First // the member has no shard between the entries of a full report
	for _, e := range a.Entries {
		if e.Shard >= len(m.shards) {
			return
		}
		if a.Full {
			m.absent(w, next, e.Shard)
			next = e.Shard + 1
		}
		m.note(e.Shard, w.peer.ID, e)
	}
	if !a.Full || a.First != w.cursor {
		return
	}
	m.absent(w, next, min(a.Next, len(m.shards)))
	if a.Next < len(m.shards) {
		w.cursor = a.Next
		m.askFrom(w)
		return
	}
	w.cursor = 0
	if !w.known || !w.serves {
		w.known, w.serves, m.dirty = true, true, true
	}
}

func (m *Machine) absent(w *member, from, to int) {
	for s := from; s < to; s++ {
		if m.shards[s].claim(w.peer.ID) != nil {
			m.note(s, w.peer.ID, message.Entry{Shard: s})
		}
	}
}

// stranger handles a member with another list of shards. The member has to stop its runs: shards of both
// lists may have the same names.
func (m *Machine) stranger(w *member, a *message.Message) {
	if !w.foreign {
		w.foreign = true
		m.ExplainShard(TopicMember, -1, "%s: its shard list or lease settings differ; it gets no shards and stops those that it runs", w.peer.ID)
	}
	w.serves, w.cursor = false, 0
	if known := !a.Busy; known != w.known {
		w.known, m.dirty = known, true
	}
	if w.known {
		m.disown(w.peer.ID)
	}
}

func (h *shard) claim(id sbr.ID) *claim {
	if i, ok := h.find(id); ok {
		return &h.claims[i]
	}
	return nil
}

func (h *shard) find(id sbr.ID) (int, bool) {
	return slices.BinarySearchFunc(h.claims, id, func(c claim, id sbr.ID) int { return cmp.Compare(c.id, id) })
}

// claimed returns a member's claim to a shard, a new one if it has none.
func (h *shard) claimed(id sbr.ID) *claim {
	i, ok := h.find(id)
	if !ok {
		h.claims = slices.Insert(h.claims, i, claim{id: id})
	}
	return &h.claims[i]
}

func (m *Machine) drop(s int, id sbr.ID) {
	h := &m.shards[s]
	if i, ok := h.find(id); ok {
		h.claims = slices.Delete(h.claims, i, i+1)
		m.dirty = true
	}
}

// note records what a member reports of one shard.
func (m *Machine) note(s int, id sbr.ID, e message.Entry) {
	h := &m.shards[s]
	if e.Phase == slot.Idle {
		switch c := h.claim(id); {
		case c == nil:
			return
		case c.ordered > e.Seen: // it may take it yet
			m.dirty = m.dirty || c.phase != slot.Idle
			c.phase, c.number = slot.Idle, 0
		default:
			m.drop(s, id)
		}
		m.settle(s)
		return
	}
	c := h.claimed(id)
	m.dirty = m.dirty || c.phase != e.Phase || c.number != e.Number
	c.phase, c.number = e.Phase, e.Number
	if e.Seen >= c.ordered {
		c.ordered = 0
	}
	m.settle(s)
}

// settle ends an order that is carried out, or has no effect any more.
func (m *Machine) settle(s int) {
	h := &m.shards[s]
	o := h.order
	switch to := h.claim(o.to); {
	case o.number == 0:
	case o.to == "":
		if h.claim(o.from) == nil {
			m.end(s)
		}
	case to == nil:
		m.ExplainShard(slot.TopicStuck, s, "%s has not taken it", o.to)
		m.end(s)
	case to.phase == slot.Active && to.ordered == 0:
		if to.number == o.number && o.from != o.to {
			m.drop(s, o.from) // the old owner has handed over, or this run had not begun
		}
		m.ExplainShard(slot.TopicArrived, s, "runs on %s, order %d", o.to, to.number)
		m.end(s)
	}
}

func (m *Machine) end(s int) {
	m.shards[s].order = order{}
	m.dirty = true
}

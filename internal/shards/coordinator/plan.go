package coordinator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// mend gives the orders that do not depend on the plan: it goes on with moves that another coordinator has
// begun or whose member is gone, and resolves shards with more claims than a move has.
func (m *Machine) mend() {
	for s := range m.shards {
		h := &m.shards[s]
		m.lostOnTheWay(s)
		if h.order.number > 0 || len(h.claims) == 0 {
			continue
		}
		keep := h.keeper()
		c := &h.claims[keep]
		switch {
		case c.had() && len(h.claims) == 1:
		case c.had() || len(h.claims) > 2 || len(h.claims) == 2 && !h.claims[1-keep].had():
			m.conflict(s, keep)
		case len(h.claims) == 2:
			if from := h.claims[1-keep].id; m.reaches(c.id) && m.reaches(from) {
				m.order(s, from, c.id)
			}
		case m.reaches(c.id) && m.clear():
			m.order(s, "", c.id)
		}
	}
}

// lostOnTheWay reissues a move when the old owner has no claim any more, but the new owner may not know.
func (m *Machine) lostOnTheWay(s int) {
	h := &m.shards[s]
	o := h.order
	if o.to == "" || o.from == "" || o.from == o.to || h.claim(o.from) != nil || len(h.claims) != 1 {
		return
	}
	if (m.gone(o.from) || m.Now >= o.since+m.cfg.HandOverRetryInterval) && m.reaches(o.to) && m.clear() {
		m.order(s, "", o.to)
		h.order.origin = o.origin
	}
}

// conflict stops one claimant other than keep: rather one that waits than one that runs.
func (m *Machine) conflict(s, keep int) {
	h := &m.shards[s]
	loser := -1
	for i := range h.claims {
		if i != keep && m.reaches(h.claims[i].id) && (loser < 0 || h.claims[loser].had() && !h.claims[i].had()) {
			loser = i
		}
	}
	if loser >= 0 {
		id := h.claims[loser].id
		m.ExplainShard(TopicConflict, s, "claimed by both %s and %s: %s has to stop", id, h.claims[keep].id, id)
		m.order(s, id, "")
	}
}

// had reports whether the claimant runs the shard, or is stopping it.
func (c *claim) had() bool { return c.phase == slot.Active || c.phase == slot.Stopping }

// keeper is the claim with the newest order: the others have to stop. The member with the newest order began
// after all earlier runs had ended, or waits for that.
func (h *shard) keeper() (best int) {
	for i := range h.claims {
		if h.claims[i].newest() > h.claims[best].newest() {
			best = i
		}
	}
	return best
}

// reaches reports whether a member can be sent an order.
func (m *Machine) reaches(id sbr.ID) bool {
	w := m.member(id)
	return w != nil && !w.gone() && !w.peer.Unreachable
}

// order orders a shard from one member to another. It counts as claimed by both.
func (m *Machine) order(s int, from, to sbr.ID) {
	number := m.next()
	if number == 0 {
		return
	}
	h := &m.shards[s]
	h.order = order{number: number, from: from, to: to, origin: from, since: m.Now}
	if to != "" {
		h.claimed(to).ordered = number
	} else if c := h.claim(from); c != nil {
		c.ordered = max(c.ordered, number)
	}
	m.fresh = append(m.fresh, s)
}

// nobodyKnows is a placeholder owner: members that have not reported may run the shard.
const nobodyKnows sbr.ID = "\x00"

// plan orders the moves that the allocator wants now.
func (m *Machine) plan() {
	if !m.recovered {
		return
	}
	moves := m.cfg.Allocator.Next(m.candidates(), m.placements())
	for _, move := range moves {
		s := m.index[move.Shard]
		h := &m.shards[s]
		var from sbr.ID
		if len(h.claims) > 0 {
			from = h.claims[0].id
		}
		if len(h.claims) > 1 || from == "" && !m.clear() || from != "" && !m.reaches(from) {
			continue
		}
		m.ExplainShard(TopicMove, s, "to %s, from %s: %s", move.To, cmp.Or(from, "nobody"), move.Reason)
		m.order(s, from, move.To)
	}
}

// candidates are the members as the allocator sees them: those that have shards, or may get some.
func (m *Machine) candidates() []allocation.Member {
	has := make(map[sbr.ID]bool)
	for s := range m.shards {
		for i := range m.shards[s].claims {
			has[m.shards[s].claims[i].id] = true
		}
	}
	var list []allocation.Member
	for i := range m.members {
		w := &m.members[i]
		offers := w.serves && w.peer.Candidate && !w.gone()
		if !offers && !has[w.peer.ID] {
			continue
		}
		leaves := w.leaving || w.peer.Leaving || !offers
		a := allocation.Member{ID: w.peer.ID, Name: w.peer.Name, Leaving: leaves}
		if w.peer.Roles != "" {
			a.Roles = strings.Split(w.peer.Roles, ",")
		}
		a.Unreachable = w.gone() || w.peer.Unreachable || w.passed || !a.Leaving && w.unableUntil > m.Now
		list = append(list, a)
	}
	if !m.clear() {
		list = append(list, allocation.Member{ID: nobodyKnows, Unreachable: true})
	}
	return list
}

// placements are the shards as the allocator sees them.
func (m *Machine) placements() map[string]allocation.Placement {
	all := make(map[string]allocation.Placement, len(m.shards))
	clear := m.clear()
	for s := range m.shards {
		h := &m.shards[s]
		var p allocation.Placement
		switch {
		case len(h.claims) == 0 && !clear:
			p.Owner = nobodyKnows
		case len(h.claims) == 0:
		case h.order.to != "" && !m.hopeless(h):
			p = allocation.Placement{Owner: h.order.origin, To: h.order.to}
		case m.hopeless(h):
		case len(h.claims) == 1 && (h.claims[0].phase == slot.Active || m.gone(h.claims[0].id)):
			p.Owner = h.claims[0].id
		default:
			k := h.claims[h.keeper()].id
			p = allocation.Placement{Owner: k, To: k}
		}
		all[m.names[s]] = p
	}
	return all
}

func (m *Machine) gone(id sbr.ID) bool {
	w := m.member(id)
	return w == nil || w.gone()
}

// hopeless reports whether a shard waits at a member that cannot run it, and that can be ordered to give it
// up.
func (m *Machine) hopeless(h *shard) bool {
	if len(h.claims) != 1 {
		return false
	}
	w := m.member(h.claims[0].id)
	return w != nil && w.unableUntil > m.Now && h.claims[0].phase != slot.Active && !w.gone() &&
		!w.peer.Unreachable &&
		h.order.to == h.claims[0].id && h.order.loud
}

// repeat sends the orders again that are not carried out.
func (m *Machine) repeat() {
	m.repeatAt = m.Now + m.cfg.HandOverRetryInterval
	var again []int
	silent := make(map[sbr.ID]bool)
	for s := range m.shards {
		h := &m.shards[s]
		if h.order.number == 0 || m.Now < h.order.since+m.cfg.HandOverRetryInterval {
			continue
		}
		if late := m.Now - h.order.since; h.order.loud && late/m.cfg.HandOverRetryInterval%5 != 0 {
			continue
		}
		again = append(again, s)
		for _, id := range []sbr.ID{h.order.from, h.order.to} {
			if c := h.claim(id); c != nil && c.ordered > 0 && m.reaches(id) {
				silent[id] = true
			}
		}
		m.overdue(s)
		m.lostOnTheWay(s)
	}
	for i := range m.members {
		if w := &m.members[i]; silent[w.peer.ID] && w.known && !w.passed {
			m.unanswered(w)
		}
	}
	again = slices.DeleteFunc(again, func(s int) bool { return m.shards[s].order.number == 0 })
	m.fresh = slices.Compact(slices.Sorted(slices.Values(append(m.fresh, again...))))
}

// overdue explains that an order is not carried out. If the new owner is the cause, another member is looked
// for: the new owner has to give the shard up first.
func (m *Machine) overdue(s int) {
	h := &m.shards[s]
	o := &h.order
	late := m.Now - o.since
	patience := time.Duration(m.cfg.NumberOfRetries) * m.cfg.HandOverRetryInterval
	if o.loud || late < patience {
		return
	}
	o.loud, m.dirty = true, true
	c := h.claim(o.to)
	switch {
	case o.to == "":
		m.ExplainShard(slot.TopicStuck, s, "%s has not stopped for %v", o.from, late)
	case c == nil || c.ordered > 0:
		m.ExplainShard(slot.TopicStuck, s, "%s has not answered an order for %v", o.to, late)
	case len(h.claims) > 1:
		m.ExplainShard(slot.TopicStuck, s, "%s has not handed over to %s for %v", o.from, o.to, late)
	default:
		m.ExplainShard(slot.TopicStuck, s, "%s is %s for %v and cannot run it: another member is looked for", o.to,
			c.phase, late)
		m.member(o.to).unableUntil = m.Now + 2*patience
	}
}

// sendFresh sends all members the orders that were not sent yet.
func (m *Machine) sendFresh() {
	if len(m.fresh) == 0 || m.over {
		m.fresh = m.fresh[:0]
		return
	}
	slices.Sort(m.fresh)
	q := message.Message{Kind: message.Orders, Digest: m.cfg.Digest, Term: m.cfg.Term}
	for _, s := range slices.Compact(m.fresh) {
		if o := &m.shards[s].order; o.number > 0 {
			q.Orders = append(q.Orders, message.Order{Shard: s, From: message.KeyOf(o.from), To: message.KeyOf(o.to),
				Number: o.number})
		}
	}
	m.fresh = m.fresh[:0]
	for len(q.Orders) > 0 {
		part := q
		if part.Number = m.next(); part.Number == 0 {
			return
		}
		n := message.Fit(&part)
		part.Orders, q.Orders = q.Orders[:n], q.Orders[n:]
		m.ask("", part)
	}
}

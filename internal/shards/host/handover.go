package host

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// asking is when a member is asked next for the shards that it has to hand over. Sorted by member.
type asking struct {
	of message.Key
	at time.Duration
}

// begging is the newest request of another member for shards of this one. It repeats the member's earlier
// requests.
type begging struct {
	ref   uint64
	from  sbr.ID
	takes []message.Take
	// at is when the shards that have ended so far are handed over; 0: none has.
	at time.Duration
}

// askSoon has a member asked at the end of this step.
func (m *Machine) askSoon(of message.Key) {
	i, found := slices.BinarySearchFunc(m.asks, of, func(a asking, k message.Key) int {
		return cmp.Compare(a.of, k)
	})
	if !found {
		m.asks = slices.Insert(m.asks, i, asking{of: of})
	}
	m.asks[i].at = m.Now
}

// askFormer asks the members that have the shards that this one takes. It waits until this member may run
// them: until then the others do.
func (m *Machine) askFormer() {
	if !m.able() {
		return
	}
	m.asks = slices.DeleteFunc(m.asks, func(a asking) bool { return len(m.wanted(a.of)) == 0 })
	for i := range m.asks {
		a := &m.asks[i]
		if id := m.ids[a.of]; id != "" && m.Now >= a.at {
			a.at = m.Now + m.cfg.HandOverRetryInterval
			q := message.Message{Kind: message.HandOver, Digest: m.cfg.Digest, Term: m.known.Term,
				Takes: m.wanted(a.of)}
			q.Takes = q.Takes[:message.Fit(&q)]
			m.Emit(slot.Ask[message.Message]{To: id, Message: q})
		}
	}
}

// wanted are the shards that a member has to hand over to this one.
func (m *Machine) wanted(of message.Key) (takes []message.Take) {
	for _, s := range m.held {
		if sl := &m.shards[s]; sl.Phase == slot.Taking && sl.from == of {
			takes = append(takes, message.Take{Shard: s, Number: sl.number})
		}
	}
	return takes
}

// answered handles the answer to a request of this member.
func (m *Machine) answered(e slot.Answered[message.Message]) {
	if p := m.View.Peer(e.From); p == nil && e.From != m.cfg.Self || p != nil && p.Down || m.down {
		return
	}
	if e.Unserved {
		m.quits(e.From, false) // the answer may be old: it ends no margin
	}
	switch {
	case e.Unserved && e.Message.Kind == message.HandOver:
		for _, t := range e.Message.Takes { // a manager is closed only once nothing of it runs
			m.received(e.From, message.Handed{Shard: t.Shard, Number: t.Number})
		}
	case e.Unserved || e.Message.Digest != m.cfg.Digest:
	case e.Message.Kind == message.Noted:
		m.noted(e)
	case e.Message.Kind == message.HandedOver:
		some := false
		for _, h := range e.Message.Handed {
			some = m.received(e.From, h) || some
		}
		if from := message.KeyOf(e.From); some && len(m.wanted(from)) > 0 {
			m.askSoon(from) // it has more shards, which have not ended yet or did not fit
		}
	}
}

// received records that a shard was handed over, under the very order of the request.
func (m *Machine) received(from sbr.ID, h message.Handed) bool {
	if h.Shard >= len(m.shards) || h.Refused {
		return false
	}
	sl := &m.shards[h.Shard]
	if sl.Phase != slot.Taking || sl.from != message.KeyOf(from) || sl.number != h.Number {
		return false
	}
	sl.from, sl.handed, sl.handedBy, sl.handedToken = message.Nobody, h.State, from, h.Token
	return true
}

// askedToHandOver stops the shards that another member was ordered to run.
func (m *Machine) askedToHandOver(e slot.Asked[message.Message]) {
	q := &e.Message
	if q.Digest != m.cfg.Digest || q.Term < m.known.Term || e.From == m.cfg.Self {
		return
	}
	if q.Term > m.known.Term {
		m.adopt(q.Term)
	}
	m.returned(e.From)
	for _, t := range q.Takes {
		// A request under an older order than this host's is refused. An order that this host has only seen
		// counts as well: a second line of defence, because a coordinator orders nothing anew before it knows
		// that the older order has no effect. The same is true of Refused in ended.
		if t.Shard >= len(m.shards) || t.Number < m.shards[t.Shard].seen || t.Number <= m.shards[t.Shard].number {
			continue
		}
		sl := &m.shards[t.Shard]
		sl.seen = t.Number
		if sl.Phase == slot.Active {
			sl.Stop(m, slot.CauseHandOver, "handing over to "+string(e.From), e.From)
		} else {
			m.giveUp(t.Shard, slot.CauseHandOver, "handing over to "+string(e.From))
		}
	}
	m.begs = slices.DeleteFunc(m.begs, func(b begging) bool { return b.from == e.From })
	m.begs = append(m.begs, begging{ref: e.Ref, from: e.From, takes: q.Takes})
}

// hand answers the members that want shards of this one, once nothing of the shards is left here.
func (m *Machine) hand() {
	m.begs = slices.DeleteFunc(m.begs, func(b begging) bool { return !m.down && m.handTo(&b) })
	for i := range m.begs {
		if b := &m.begs[i]; b.at == 0 && len(m.ended(b)) > 0 {
			b.at = m.Now + gather
		}
	}
}

// handTo reports whether a request was answered.
func (m *Machine) handTo(b *begging) bool {
	list := m.ended(b)
	if len(list) < len(b.takes) && (len(list) == 0 || b.at == 0 || m.Now < b.at) {
		return false
	}
	a := message.Message{Kind: message.HandedOver, Digest: m.cfg.Digest, Term: m.known.Term, Handed: list}
	a.Handed = list[:message.Fit(&a)]
	for _, h := range a.Handed {
		if h.State != nil {
			m.shards[h.Shard].given = h.Number
		}
	}
	m.Emit(slot.Answer[message.Message]{Ref: b.ref, Message: a})
	return true
}

// ended are the shards of a request that are not here any more.
func (m *Machine) ended(b *begging) (list []message.Handed) {
	for _, t := range b.takes {
		h := message.Handed{Shard: t.Shard, Number: t.Number}
		switch {
		case t.Shard >= len(m.shards) || t.Number < m.shards[t.Shard].seen:
			h.Refused = true
		case m.shards[t.Shard].Phase != slot.Idle:
			continue
		case m.shards[t.Shard].given == 0 || m.shards[t.Shard].given == t.Number:
			h.State = m.shards[t.Shard].left
			if m.cfg.UseLease {
				h.Token = m.shards[t.Shard].Token
			}
		}
		list = append(list, h)
	}
	return list
}

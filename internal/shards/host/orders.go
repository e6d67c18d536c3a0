package host

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// duty is a request with orders that name this member. It is answered once all of them are carried out, or
// when they are repeated.
type duty struct {
	ref    uint64
	number uint64 // of the request
	orders []message.Order
}

// asked handles a request.
func (m *Machine) asked(e slot.Asked[message.Message]) {
	if p := m.View.Peer(e.From); m.down || p != nil && p.Down {
		return // a downed member gets the verdict from others; this member, if down, sends nothing
	}
	switch q := &e.Message; q.Kind {
	case message.Report:
		m.askedToReport(e)
	case message.Orders:
		m.ordered(e)
	case message.HandOver:
		m.askedToHandOver(e)
	case message.State:
		if q.Leaving && e.From != m.cfg.Self {
			m.quits(e.From, false)
		}
	case message.Resigned:
		m.quits(e.From, true)
	}
}

// follow reports whether a message is from the coordinator that this member follows. Messages of an older
// coordinator are refused.
func (m *Machine) follow(from sbr.ID, q *message.Message) bool {
	switch {
	case q.Term < m.known.Term:
		return false
	case q.Term > m.known.Term:
		m.adopt(q.Term)
		fallthrough
	case m.known.Coordinator == "":
		m.known.Coordinator = from
		m.ExplainShard(TopicCoordinator, -1, "%s coordinates under term %d", from, q.Term)
		m.foreign = q.Digest != m.cfg.Digest
	case m.known.Coordinator != from:
		return false
	}
	if m.foreign {
		for _, s := range slices.Clone(m.held) {
			m.giveUp(s, slot.CauseOrdered, "coordinator "+string(from)+
				": its shard list or lease settings differ from those of this member")
		}
	}
	return true
}

// adopt follows a larger term from now on.
func (m *Machine) adopt(term uint64) {
	m.known.Term, m.known.Coordinator = term, ""
	m.floor, m.foreign = 0, false
	m.duties = nil
	for _, s := range m.news {
		m.shards[s].toldIn = 0
	}
}

// askedToReport answers with what runs here. From now on this member follows the orders that the asker gives
// later.
func (m *Machine) askedToReport(e slot.Asked[message.Message]) {
	q := &e.Message
	a := m.state(q.Number)
	switch follows := m.follow(e.From, q); {
	case !follows:
		a.Refused = true
	case m.foreign:
		a.Full, a.Next, a.Busy = true, 0, len(m.held) > 0
	default:
		if m.floor == 0 {
			m.floor = q.Number
		}
		m.fill(&a, q.First)
	}
	a.Term = m.known.Term
	m.Emit(slot.Answer[message.Message]{Ref: e.Ref, Message: a})
}

// state is the head of a State.
func (m *Machine) state(number uint64) message.Message {
	m.known.Seq++
	return message.Message{Kind: message.State, Digest: m.cfg.Digest, Term: m.known.Term, Number: number,
		Seq: m.known.Seq, Leaving: m.leaving,
		Wait: m.Waits()}
}

// fill lists the held shards from first on, as many as one message carries.
func (m *Machine) fill(a *message.Message, first int) {
	first = min(first, m.cfg.Shards)
	i, _ := slices.BinarySearch(m.held, first)
	for _, s := range m.held[i:] {
		a.Entries = append(a.Entries, m.entry(s))
	}
	a.Full, a.First, a.Next = true, first, m.cfg.Shards
	if n := message.Fit(a); n < len(a.Entries) {
		a.Next = a.Entries[n].Shard
		a.Entries = a.Entries[:n]
	}
}

func (m *Machine) entry(s int) message.Entry {
	sl := &m.shards[s]
	e := message.Entry{Shard: s, Phase: told(sl.Phase), Number: sl.number, Seen: max(sl.seen, sl.number)}
	if e.Phase == slot.Active && m.cfg.UseLease {
		e.Token = sl.Token
	}
	return e
}

// ordered handles orders. Orders that take a shard away count at once. To take one, this member must have
// reported first: earlier orders are not meant for it.
func (m *Machine) ordered(e slot.Asked[message.Message]) {
	q := &e.Message
	if !m.follow(e.From, q) || m.foreign {
		return
	}
	d := duty{ref: e.Ref, number: q.Number}
	for _, o := range q.Orders {
		if o.Shard >= len(m.shards) {
			continue
		}
		m.returned(m.ids[o.To])
		switch {
		case o.To == m.self && m.floor == 0:
			continue
		case o.To == m.self && o.Number <= m.floor:
			m.shards[o.Shard].seen = max(m.shards[o.Shard].seen, o.Number) // no effect: its coordinator has to know
		case o.Number > m.shards[o.Shard].seen && o.To == m.self:
			m.orderedToTake(o)
		case o.Number > m.shards[o.Shard].seen && (o.To != message.Nobody || o.From == m.self):
			m.orderedAway(o)
		}
		if o.To == m.self || o.From == m.self {
			d.orders = append(d.orders, o)
		}
	}
	if len(d.orders) > 0 {
		m.oblige(d)
	}
}

// oblige queues a request. Older requests about the same shards are answered now, with the present state.
func (m *Machine) oblige(d duty) {
	m.duties = slices.DeleteFunc(m.duties, func(old duty) bool {
		same := slices.ContainsFunc(old.orders, func(o message.Order) bool {
			return slices.ContainsFunc(d.orders, func(n message.Order) bool { return n.Shard == o.Shard })
		})
		if same {
			m.account(&old)
		}
		return same
	})
	m.duties = append(m.duties, d)
}

// orderedToTake handles an order that this member shall run a shard.
func (m *Machine) orderedToTake(o message.Order) {
	sl := &m.shards[o.Shard]
	if sl.Phase == slot.Stopping || sl.Phase == slot.Releasing {
		return // it is repeated
	}
	sl.seen = o.Number
	if m.over() {
		return // the coordinator is told that the order has no effect
	}
	switch sl.Phase {
	case slot.Idle:
		m.ExplainShard(slot.TopicOrdered, o.Shard, "ordered to run it, order %d", o.Number)
		m.take(o.Shard, o.Number, o.From)
	case slot.Taking:
		m.take(o.Shard, o.Number, o.From)
	case slot.Acquiring:
		sl.number = o.Number
		if o.From != message.Nobody && o.From != m.self {
			sl.Abandon(m)
			m.take(o.Shard, o.Number, o.From)
		}
	}
}

// orderedAway handles an order that another member, or none, shall run a shard.
func (m *Machine) orderedAway(o message.Order) {
	sl := &m.shards[o.Shard]
	sl.seen = o.Number
	if o.From != m.self {
		sl.left = nil // another member had it since
	}
	if sl.Phase == slot.Active && o.From == m.self && o.To != message.Nobody {
		return // until that member asks for it: so the gap is short
	}
	m.giveUp(o.Shard, slot.CauseOrdered, "the coordinator has ordered otherwise")
}

// fulfil answers orders that are carried out, or cannot be carried out.
func (m *Machine) fulfil() {
	m.duties = slices.DeleteFunc(m.duties, func(d duty) bool {
		for _, o := range d.orders {
			if !m.done(o) {
				return false
			}
		}
		m.account(&d)
		return true
	})
}

// done reports whether an order has no further effect here.
func (m *Machine) done(o message.Order) bool {
	sl := &m.shards[o.Shard]
	if o.To == m.self {
		return sl.Phase == slot.Idle || told(sl.Phase) == slot.Active
	}
	return sl.number == 0 || sl.number > o.Number
}

// account answers orders with the present state.
func (m *Machine) account(d *duty) {
	a := m.state(d.number)
	for _, o := range d.orders {
		a.Entries = append(a.Entries, m.entry(o.Shard))
	}
	a.Entries = a.Entries[:message.Fit(&a)] // the rest is reported as news
	for _, e := range a.Entries {
		m.heardOf(e.Shard)
	}
	m.Emit(slot.Answer[message.Message]{Ref: d.ref, Message: a})
}

// toBeTold notes that a shard has to be reported to the coordinator.
func (m *Machine) toBeTold(s int) {
	m.shards[s].toldIn = 0
	if len(m.news) == 0 {
		m.newsAt = m.Now + gather // an answer that is due may report it first
	}
	if i, found := slices.BinarySearch(m.news, s); !found {
		m.news = slices.Insert(m.news, i, s)
	}
}

// heardOf notes that a shard need not be reported: the coordinator repeats its request if the answer is lost.
func (m *Machine) heardOf(s int) {
	if i, found := slices.BinarySearch(m.news, s); found {
		m.news = slices.Delete(m.news, i, i+1)
	}
}

// tell reports to the coordinator what it may not know.
func (m *Machine) tell() {
	untold := m.untold()
	if len(untold) == 0 || m.Now < m.newsAt || !m.reachesCoordinator() {
		return
	}
	m.newsAt = m.Now + m.cfg.HandOverRetryInterval
	q := m.state(0)
	for _, s := range untold {
		q.Entries = append(q.Entries, m.entry(s))
	}
	q.Entries = q.Entries[:message.Fit(&q)]
	for _, e := range q.Entries {
		m.shards[e.Shard].toldIn = q.Seq
	}
	m.Emit(slot.Ask[message.Message]{To: m.known.Coordinator, Message: q})
}

// bid tells all members that this one leaves. It repeats that while its runs wait for others to ask: where
// all members leave, none waits for the others.
func (m *Machine) bid() {
	if m.waits() && m.Now >= m.bidAt {
		m.bidAt = m.Now + m.cfg.HandOverRetryInterval
		m.Emit(slot.Ask[message.Message]{Message: m.state(0)})
	}
}

// waits reports whether this member leaves and has runs that others may ask for.
func (m *Machine) waits() bool {
	return m.leaving && !m.down && slices.ContainsFunc(m.held, func(s int) bool {
		return m.shards[s].Phase == slot.Active
	})
}

// untold are the shards that no later answer will report: an order that is not carried out yet is answered
// later.
func (m *Machine) untold() []int {
	list := slices.Clone(m.news)
	for _, d := range m.duties {
		for _, o := range d.orders {
			list = slices.DeleteFunc(list, func(s int) bool { return s == o.Shard })
		}
	}
	return list
}

// reachesCoordinator reports whether there is a reachable coordinator.
func (m *Machine) reachesCoordinator() bool {
	p := m.View.Peer(m.known.Coordinator)
	return !m.down && m.floor > 0 && !m.foreign &&
		(m.known.Coordinator == m.cfg.Self || p != nil && !p.Down && !p.Unreachable)
}

// noted handles the coordinator's acknowledgement of a report.
func (m *Machine) noted(e slot.Answered[message.Message]) {
	if e.From != m.known.Coordinator || e.Message.Term != m.known.Term {
		return
	}
	before := len(m.news)
	m.news = slices.DeleteFunc(m.news, func(s int) bool {
		return m.shards[s].toldIn == e.Message.Seq && e.Message.Seq > 0
	})
	if len(m.news) > 0 && len(m.news) < before {
		m.newsAt = min(m.newsAt, m.Now+time.Millisecond) // what did not fit
	}
}

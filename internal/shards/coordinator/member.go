package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// member is what is known of one member.
type member struct {
	peer slot.Peer
	key  message.Key
	// until is when its margin is over; 0: the member is present.
	until time.Duration

	// known: what it runs is known. serves: it takes orders. foreign: it has another list of shards. leaving:
	// it has reported that it leaves.
	known, serves, foreign, leaving bool
	// passed: the member is silent, and its leases decide.
	passed bool
	// silent counts the requests in a row that the member has not answered.
	silent int
	askAt  time.Duration
	cursor int // the next request asks from this shard on
	// heard is the number of the newest request that the member has answered, seq that of its newest State.
	heard, seq uint64
	// unableUntil: the member could not take a shard, and gets none before that time.
	unableUntil time.Duration
}

func (w *member) gone() bool { return w.until > 0 }

// toAsk reports whether the member has to be asked what it runs. A member that is no candidate is asked once.
func (w *member) toAsk() bool {
	return !w.gone() && !w.peer.Unreachable && !w.passed &&
		(!w.known || w.peer.Candidate && !w.serves && !w.foreign || w.cursor > 0)
}

func (m *Machine) find(id sbr.ID) (int, bool) {
	return slices.BinarySearchFunc(m.members, id, func(w member, id sbr.ID) int {
		return cmp.Compare(w.peer.ID, id)
	})
}

func (m *Machine) member(id sbr.ID) *member {
	if i, ok := m.find(id); ok {
		return &m.members[i]
	}
	return nil
}

// viewed handles a new view of the cluster.
func (m *Machine) viewed(v slot.View) {
	old, first := m.View, m.View.Peers == nil
	m.View = v
	if v.Peers == nil {
		m.View.Peers = []slot.Peer{}
	}
	m.dirty = true
	for i := range v.Peers {
		if p := &v.Peers[i]; !p.Down {
			m.there(p)
		}
	}
	for i := range m.members {
		w := &m.members[i]
		if p := v.Peer(w.peer.ID); (p == nil || p.Down) && !w.gone() {
			m.departed(w)
		}
	}
	for i := range v.Peers {
		// For members that were downed before this run began, the hosts report how long they still wait.
		if p := &v.Peers[i]; p.Down && !first && old.Peer(p.ID) == nil {
			m.departed(m.add(p))
		}
	}
}

// there handles a member that is not down.
func (m *Machine) there(p *slot.Peer) {
	w := m.member(p.ID)
	if w == nil {
		w = m.add(p)
		for i := range m.members {
			if o := &m.members[i]; o != w && o.key == w.key {
				m.ExplainShard(TopicMember, -1,
					"incarnations %s and %s hash to the same key: neither gets shards; restart one", p.ID, o.peer.ID)
				o.foreign, w.foreign = true, true
			}
		}
	}
	if p.Candidate && !w.peer.Candidate {
		w.serves = false // its manager may be a new one that does not know the orders of the old one
	}
	if p.Candidate && !w.peer.Candidate || w.gone() {
		w.askAt = m.Now
	}
	w.peer, w.until = *p, 0
}

func (m *Machine) add(p *slot.Peer) *member {
	i, _ := m.find(p.ID)
	m.members = slices.Insert(m.members, i, member{peer: *p, key: message.KeyOf(p.ID), askAt: m.Now})
	return &m.members[i]
}

// departed begins the margin of a member that is gone, or was downed.
func (m *Machine) departed(w *member) {
	w.until = m.Now + m.cfg.Margin
	if !w.peer.Candidate && !w.serves && !m.claims(w.peer.ID) {
		w.until = m.Now
	}
	if w.known && !m.claims(w.peer.ID) {
		w.until = m.Now // nothing of it runs
	}
	if w.until > m.Now {
		m.ExplainShard(slot.TopicWaiting, -1,
			"%s is gone: nothing of it starts elsewhere before its margin of %v is over", w.peer.ID, m.cfg.Margin)
	}
}

// claims reports whether a member has a shard, or may have one.
func (m *Machine) claims(id sbr.ID) bool {
	for i := range m.shards {
		if m.shards[i].claim(id) != nil {
			return true
		}
	}
	return false
}

// expire forgets members whose margin is over.
func (m *Machine) expire() {
	m.members = slices.DeleteFunc(m.members, func(w member) bool {
		if !w.gone() || w.until > m.Now {
			return false
		}
		m.disown(w.peer.ID)
		m.dirty = true
		return true
	})
	if m.waitUntil > 0 && m.waitUntil <= m.Now {
		m.waitUntil, m.dirty = 0, true
	}
	for i := range m.members {
		if w := &m.members[i]; w.unableUntil > 0 && w.unableUntil <= m.Now {
			w.unableUntil, m.dirty = 0, true
		}
	}
}

// disown notes that nothing of a member runs.
func (m *Machine) disown(id sbr.ID) {
	for s := range m.shards {
		if m.shards[s].claim(id) != nil {
			m.drop(s, id)
			m.settle(s)
		}
	}
}

// clear reports whether a shard without claims certainly runs nowhere.
func (m *Machine) clear() bool {
	if m.waitUntil > m.Now || len(m.members) == 0 {
		return false
	}
	for i := range m.members {
		if w := &m.members[i]; !w.known && !w.passed {
			return false
		}
	}
	return true
}

// askReports asks members what they run.
func (m *Machine) askReports() {
	var again []*member
	for i := range m.members {
		if w := &m.members[i]; w.toAsk() && m.Now >= w.askAt {
			again = append(again, w)
		}
	}
	if len(again) == 0 {
		return
	}
	number := m.next()
	if number == 0 {
		return
	}
	all := len(again) > 8
	for _, w := range again {
		w.askAt = m.Now + m.cfg.HandOverRetryInterval
		m.unanswered(w)
		if all && w.cursor > 0 {
			m.askFrom(w)
		}
	}
	q := message.Message{Kind: message.Report, Number: number}
	if all {
		m.ask("", q)
		return
	}
	for _, w := range again {
		q.First = w.cursor
		m.ask(w.peer.ID, q)
	}
}

// askFrom asks one member for the next part of what it runs.
func (m *Machine) askFrom(w *member) {
	if number := m.next(); number > 0 {
		w.askAt = m.Now + m.cfg.HandOverRetryInterval
		m.ask(w.peer.ID, message.Message{Kind: message.Report, Number: number, First: w.cursor})
	}
}

// ask asks one member, or all of them if to is empty.
func (m *Machine) ask(to sbr.ID, q message.Message) {
	q.Digest, q.Term = m.cfg.Digest, m.cfg.Term
	m.Emit(slot.Ask[message.Message]{To: to, Message: q})
}

// unanswered counts a request before it is repeated. A member that stays silent is explained; with leases it
// is then passed over.
func (m *Machine) unanswered(w *member) {
	w.silent++
	if w.silent <= 1 || (w.silent-1)%m.cfg.NumberOfRetries != 0 {
		return
	}
	if !m.cfg.UseLease {
		m.ExplainShard(slot.TopicStuck, -1, "%s has not answered %d requests: still asking; its shards do not start elsewhere", w.peer.ID, w.silent-1)
		return
	}
	m.ExplainShard(slot.TopicStuck, -1, "%s has not answered %d requests: the leases decide", w.peer.ID,
		w.silent-1)
	w.passed, w.cursor, m.dirty = true, 0, true
	m.disown(w.peer.ID)
}

// audit asks all members from time to time what they run, passed members included.
func (m *Machine) audit() {
	if m.Now < m.auditAt {
		return
	}
	m.auditAt = m.Now + m.cfg.AuditInterval
	if number := m.next(); number > 0 {
		m.ask("", message.Message{Kind: message.Report, Number: number})
	}
}

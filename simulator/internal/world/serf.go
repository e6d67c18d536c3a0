package world

import (
	"iter"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// status is what Serf says of a member.
type status uint8

const (
	unlisted status = iota
	present
	leaving // somebody says that it leaves
	failed
	left
)

// listed reports whether the member counts: Serf keeps members that have left only to tell others of them.
func (q *peer) listed() bool { return q.status == present || q.status == leaving || q.status == failed }

// knows reports whether p lists s.
func (p *process) knows(s *process) bool {
	if int(s.name) >= len(p.peers) || s == p {
		return false
	}
	q := &p.peers[s.name]
	return q.who == s && q.listed()
}

// others are the processes that p lists, in the order of their names' first appearance.
func (p *process) others() iter.Seq[*process] {
	return func(yield func(*process) bool) {
		for i := range p.peers {
			if q := &p.peers[i]; q.listed() && q.who != p && !yield(q.who) {
				return
			}
		}
	}
}

// strangers reports whether one of two processes never heard of the other: gossip to the dead can make a
// member known to members that are unknown to it, and it misses no member of which it never heard.
func strangers(p, q *process) bool { return !p.met.has(q.index) || !q.met.has(p.index) }

// set is a set of small numbers.
type set []uint64

func (s set) has(i int) bool { return i/64 < len(s) && s[i/64]>>(i%64)&1 != 0 }

func (s *set) add(i int) {
	for i/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i/64] |= 1 << (i % 64)
}

// joined is what Serf makes of memberlist's news that process who is alive under the name of q.
func (p *process) joined(q *peer, who *process) {
	if who != q.who || !q.listed() {
		p.supplant(who)
		if q.listed() && q.who != who {
			p.gone(q.who, false)
		}
		q.who, q.status, q.bye, q.timed = who, present, false, timedFindings{}
		p.meet(who)
		return
	}
	was := q.status
	q.status, q.evicts = present, false
	if was == failed {
		p.detect(who, false)
	}
	x := &q.timed[findsGone]
	x.is, x.want, x.turn = false, false, x.turn+1
	p.lookAt(q)
}

// lost is what Serf makes of memberlist's news that a member is dead.
func (p *process) lost(q *peer) {
	switch q.status {
	case present:
		if q.bye { // it has gone as it said
			p.drop(q, left)
			return
		}
		q.status, q.moved = failed, p.w.now
		p.reapLater(q)
		p.detect(q.who, true)
		if q.evicts {
			p.w.after(p.w.between(0, time.Second), p, func() { p.evict(q) })
		}
	case leaving:
		p.drop(q, left)
	}
}

// hearLeave is Serf's handleNodeLeaveIntent; it reports whether that is news.
func (p *process) hearLeave(name int32, ltime uint32) bool {
	q := p.named(name)
	p.witness(ltime)
	switch {
	case q.status == unlisted || ltime <= q.ltime:
		return false
	case name == p.name && p.stage != stageLeaving:
		q.ltime = p.lamport
		p.spread(news{kind: newsJoin, name: name, inc: p.lamport})
		return false
	}
	q.ltime = ltime
	switch q.status {
	case present:
		q.status = leaving
	case failed:
		p.drop(q, left)
	}
	return true
}

// hearJoin is Serf's handleNodeJoinIntent.
func (p *process) hearJoin(name int32, ltime uint32) bool {
	q := p.named(name)
	p.witness(ltime)
	if q.status == unlisted || ltime <= q.ltime {
		return false
	}
	if q.ltime = ltime; q.status == leaving {
		q.status = present
	}
	return true
}

// witness moves Serf's Lamport clock.
func (p *process) witness(ltime uint32) { p.lamport = max(p.lamport, ltime+1) }

// removeFailed is Serf's RemoveFailedNode.
func (p *process) removeFailed(q *peer) {
	n := news{kind: newsLeave, name: q.who.name, inc: p.lamport}
	p.lamport++
	if p.hearLeave(n.name, n.inc) {
		p.spread(n)
	}
}

// drop takes a member from the list: it has left, or was removed, or reaped (unlisted).
func (p *process) drop(q *peer, to status) {
	s := q.who
	q.status, q.evicts = to, false
	p.gone(s, q.bye || s.left)
}

// gone tells the resolver that s is listed no longer. Ended says that its end is certain: it said goodbye, or
// its successor proves it.
func (p *process) gone(s *process, ended bool) {
	w := p.w
	if m, ok := p.r.Member(s.id); ok && p.runs() && m.Status <= sbr.Up {
		w.stirred()
	}
	w.note(p, "forgets", "%s", s)
	p.tracker.Remove(s.id)
	p.step(sbr.MemberGone{ID: s.id, Ended: ended})
	p.observeSoon()
}

// meet tells the resolver of a member that is listed now.
func (p *process) meet(s *process) {
	if !p.met.has(s.index) {
		p.met.add(s.index)
		p.w.account()
	}
	p.tracker.Add(s.id)
	if its, ours := s.node.rules.Digest, p.node.rules.Digest; its != ours {
		p.w.note(p, "differs", "%s has another configuration: its digest %s, ours %s", s.id, its, ours)
	}
	p.step(s.news)
	p.observeSoon()
	p.lookAt(p.peer(s))
}

// detect tells the tracker what Serf says of a member that it lists.
func (p *process) detect(s *process, fails bool) {
	if p.runs() {
		p.tracker.SetFailed(s.id, fails)
		p.observeSoon()
	}
}

// supplant takes from the list the process that ran on the node of s before it: under the same name, or known
// to have ended, because s holds the state that its predecessor had locked.
func (p *process) supplant(s *process) {
	proves := true
	for next, old := s, s.prev; old != nil; next, old = old, old.prev {
		proves = proves && !next.stateLost
		switch {
		case p.knows(old) && (proves || old.name == s.name):
			q := p.peer(old)
			q.status, q.evicts = unlisted, false
			p.gone(old, proves)
		case proves:
			p.ended(old)
		}
	}
}

// ended tells the resolver that a process, which the membership lists no longer, is known to have ended.
func (p *process) ended(s *process) {
	if p.stage != stageRunning {
		return
	}
	if _, known := p.r.Member(s.id); known {
		p.step(sbr.MemberGone{ID: s.id, Ended: true})
	}
}

// keepsOut reports whether the merge delegate drops the news that s is alive.
func (p *process) keepsOut(s *process) bool {
	if p.r == nil || !p.runs() || !p.r.KeptOut(s.id, s.self.Seen) {
		return false
	}
	first, known := p.refused[s]
	switch {
	case known && p.w.now-first >= wire.RefuseFor:
		delete(p.refused, s)
		return false
	case known:
		return true
	case p.refused == nil:
		p.refused = make(map[*process]time.Duration)
	}
	p.refused[s] = p.w.now
	return true
}

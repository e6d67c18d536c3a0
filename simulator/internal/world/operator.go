package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// What operators and platforms do: they remove members that are called failed, the membership forgets them by itself, and a process
// comes back with what its predecessor had remembered, or without it. None of that proves that a member has ended. An operator's own
// word (sbr down) is a verdict, or an order where no lease decides.

// eviction is what waits for the detector's word about a member.
type eviction uint8

const (
	noEviction eviction = iota
	// evictFailed: an operator removes the member as soon as it is called failed here.
	evictFailed
	// evictHeard: another member was told to remove it, which spread here before it was called failed.
	evictHeard
)

// ForceLeave lets an operator remove what runs on nodes from the lists of the members on some others, as soon as it is called failed there.
// With no others that is wherever it is called failed. Like Serf, a member that removes another one tells those that it reaches.
func (w *World) ForceLeave(nodes, on []int) {
	for i, n := range w.nodes {
		if p := n.proc; p != nil && (len(on) == 0 || slices.Contains(on, i)) {
			w.after(0, p, func() { p.forceLeave(nodes) })
		}
	}
}

func (p *process) forceLeave(nodes []int) {
	if !p.runs() {
		return
	}
	for place := range p.peers {
		s, q := p.w.procs[place], &p.peers[place]
		switch {
		case !q.known || s == p || !slices.Contains(nodes, s.node.index):
		case p.w.failed(p, s):
			p.evict(s)
		default:
			q.eviction = evictFailed
		}
	}
}

// DownBy lets an operator ask the member that runs on another node to down the one that is called as this node is: sbr down.
func (n *Node) DownBy(by *Node) {
	w := n.w
	w.disturb()
	p := by.proc
	if p == nil || !p.attends() {
		w.note(nil, "request", "to down %s: nobody answers on %s", n.Name, by.Name)
		return
	}
	s := p.r.Snapshot()
	switch ids := s.Named(n.Name); { // what a driver refuses before the resolver hears of it
	case p.request != "":
		w.note(p, "request", "to down %s: refused: an earlier request is not decided yet", n.Name)
	case p.resigned:
		w.note(p, "request", "to down %s: refused: this member leaves its cluster", n.Name)
	case len(ids) != 1:
		w.note(p, "request", "to down %s: refused: %d members here are called so", n.Name, len(ids))
	default:
		p.request = ids[0]
		w.note(p, "request", "to down %s", ids[0])
		p.step(sbr.DownRequested{ID: ids[0]})
	}
}

// answerOperator ends a request.
func (p *process) answerOperator(e sbr.AnswerDownRequest) {
	p.request = ""
	p.w.explained(p, "request", e.Outcome.String()+": "+e.Text)
}

// failed reports whether the membership itself calls s failed: a member that own probes alone miss is alive in Serf's list.
func (w *World) failed(p, s *process) bool { return p.knows(s) && p.peer(s).failed && w.gone(p, s) }

// evict removes a member that is called failed here, and tells the others that are reached.
func (p *process) evict(s *process) {
	if !p.w.failed(p, s) {
		return
	}
	p.w.note(p, "force-leaves", "%s", s.id)
	for _, q := range p.w.procs {
		if q != p && q.runs() && p.w.carries(p, q) {
			p.w.after(p.w.between(10*time.Millisecond, 300*time.Millisecond), q, func() { q.hearEviction(s) })
		}
	}
	p.forget(s, false)
}

// hearEviction follows what another member was told to remove. A member that is not called failed yet goes when it is; one that can
// be reached refutes it.
func (p *process) hearEviction(s *process) {
	switch {
	case !p.knows(s):
	case p.w.failed(p, s):
		p.forget(s, false)
	case p.w.gone(p, s):
		p.peer(s).eviction = evictHeard
	}
}

// evicts follows the detector's word, and reports whether it takes the member from the list instead of calling it failed.
func (p *process) evicts(s *process, q *peer) bool {
	waiting := q.eviction
	q.eviction = noEviction
	if !q.failed || !p.w.gone(p, s) {
		return false
	}
	q.since = p.w.now
	p.reapLater(s.index)
	switch waiting {
	case evictHeard:
		p.forget(s, false)
		return true
	case evictFailed:
		p.w.after(p.w.between(0, time.Second), p, func() { p.evict(s) })
	}
	return false
}

// reapEvery is how often Serf looks for members that failed long ago.
const reapEvery = 15 * time.Second

// reapLater arranges that a member that is called failed is forgotten in time. Each process looks at moments of its own.
func (p *process) reapLater(place int) {
	q := &p.peers[place]
	if p.w.opts.ReapAfter <= 0 || !q.known || !q.failed {
		return
	}
	own := time.Duration(p.index) * time.Second % reapEvery
	at := max(q.since+p.w.opts.ReapAfter, p.w.now) - own
	p.add(todo{at: (at+reapEvery-1)/reapEvery*reapEvery + own, peer: int32(place), what: taskReap})
}

func (p *process) reap(s *process, q *peer) {
	if p.w.failed(p, s) && p.w.now-q.since >= p.w.opts.ReapAfter {
		p.w.note(p, "reaps", "%s", s.id)
		p.forget(s, false)
	}
}

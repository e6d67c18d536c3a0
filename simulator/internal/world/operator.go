package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// What operators and platforms do: they remove members that are called failed, the membership forgets them by
// itself, and a process comes back with what its predecessor had remembered, or without it. None of that
// proves that a member has ended. An operator's own word (sbr down) is a verdict, or an order where no lease
// decides.

// ForceLeave lets an operator remove the members on nodes from the lists of the members on other nodes, as
// soon as they are called failed there; with no others wherever they are called failed. As in Serf, a member
// that removes another member tells those that it reaches.
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
	for i := range p.peers {
		q := &p.peers[i]
		switch {
		case !q.listed() || q.who == p || !slices.Contains(nodes, q.who.node.index):
		case q.status == failed:
			p.evict(q)
		default:
			q.evicts = true
		}
	}
}

// DownBy lets an operator ask the member on node by to down the member with this node's name: sbr down.
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
	p.w.note(p, "request", "%s", e.Outcome.String()+": "+e.Text)
}

// evict removes a member that is called failed here, and tells the others.
func (p *process) evict(q *peer) {
	if p.runs() && q.status == failed {
		p.w.note(p, "force-leaves", "%s", q.who.id)
		p.removeFailed(q)
	}
}

// reapLater arranges that a member that is called failed is forgotten in time. Each process looks at moments
// of its own.
func (p *process) reapLater(q *peer) {
	w, s, since := p.w, q.who, q.moved
	if w.opts.ReapAfter <= 0 {
		return
	}
	own := time.Duration(p.index) * time.Second % reapInterval
	at := q.moved + w.opts.ReapAfter - own
	w.at((at+reapInterval-1)/reapInterval*reapInterval+own, p, func() {
		if q := p.peer(s); p.runs() && q.who == s && q.status == failed && q.moved == since {
			w.note(p, "reaps", "%s", s.id)
			p.drop(q, unlisted)
		}
	})
}

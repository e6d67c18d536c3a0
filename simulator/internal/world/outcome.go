package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// stirred notes that what Settled reports may just have changed.
func (w *World) stirred() { w.moved = w.now }

// shows notes the state of the process's resolver. That it arms is no change: newcomers resolve nothing.
func (p *process) shows(state sbr.State) {
	if state != p.state && p.state != sbr.StateArming {
		p.w.stirred()
	}
	p.state = state
}

// Stirred is when a member last was suspended, went to work again, was downed, or crashed, or when one that
// was believed in was gone. In a world that is Settled it is the moment at which it had settled; that members
// forget the downed ones later is housekeeping.
func (w *World) Stirred() time.Duration { return w.moved }

// Settled reports whether every process that is up is at work and reaches all members it believes in: nothing
// is left to be resolved.
func (w *World) Settled() bool {
	up := w.up()
	for _, p := range up {
		if p.paused || p.r.State() != sbr.StateUp || p.r.Suspects() > 0 {
			return false
		}
		for q := range p.others() {
			if m, ok := p.r.Member(q.id); ok && !q.runs() && m.Status == sbr.Up {
				return false
			}
		}
	}
	return !w.separated(up)
}

// separated reports whether two of the processes know of each other and cannot reach each other.
func (w *World) separated(up []*process) bool {
	if w.whole(up) {
		return false
	}
	for i, p := range up {
		for _, q := range up[:i] {
			if w.apart(p, q) && !strangers(p, q) {
				return true
			}
		}
	}
	return false
}

// whole reports whether the processes are in one component of the network, with no link cut that they could
// notice.
func (w *World) whole(up []*process) bool {
	for _, p := range up {
		if w.net.component(p.node.index) != w.net.component(up[0].node.index) {
			return false
		}
	}
	return !w.opts.Probe.On() || len(w.net.cut) == 0
}

// apart reports whether two processes cannot reach each other, as far as resolvers can find out about it. Without own
// probes Serf's word is all there is, and its rumours take links that work one way: a member that hears that it failed
// refutes it.
func (w *World) apart(p, q *process) bool {
	a, b := p.node.index, q.node.index
	if w.opts.Probe.On() {
		return !w.net.direct(a, b)
	}
	return !w.net.connected(a, b) && !w.net.hear(a, b)
}

// Down are the names of the nodes whose last process was downed.
func (w *World) Down() []string {
	var names []string
	for _, n := range w.nodes {
		if n.proc != nil && n.proc.downReason != "" {
			names = append(names, n.Name)
		}
	}
	return names
}

// Holder is the name of the node that holds the lease, empty if none does.
func (w *World) Holder() string {
	if p := w.byID[sbr.ID(w.store.record.Holder)]; p != nil {
		return p.node.Name
	}
	return ""
}

// Decision is the last decision that a process of the node has explained; ok is false if there was none.
func (n *Node) Decision() (d sbr.Decision, ok bool) {
	if n.last == nil {
		return sbr.Decision{}, false
	}
	return *n.last, true
}

package simulator

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Node is a machine. One process at a time runs on it; each has its own incarnation.
type Node struct {
	Name  string
	Roles []string

	w     *World
	index int
	lives int
	proc  *process
	fault StoreFault
	rate  float64
}

func (w *World) addNode() *Node {
	n := &Node{Name: fmt.Sprintf("n%d", len(w.nodes)+1), w: w, index: len(w.nodes), rate: 1}
	w.nodes = append(w.nodes, n)
	w.net.group = append(w.net.group, 0)
	w.net.valid = false
	return n
}

// SetClock makes the node's clock run at the given rate, from its next start on.
func (n *Node) SetClock(rate float64) { n.rate = rate }

// Up reports whether a process runs on the node and was not downed. A paused process is up.
func (n *Node) Up() bool { return n.proc != nil && n.proc.runs() }

// Status is the present snapshot of the resolver; ok is false when none runs.
func (n *Node) Status() (s sbr.Snapshot, ok bool) {
	if !n.Up() {
		return sbr.Snapshot{}, false
	}
	return n.proc.r.Snapshot(), true
}

// DownReason says why the last process of the node was downed; empty if it was not.
func (n *Node) DownReason() string {
	if n.proc == nil {
		return ""
	}
	return n.proc.downReason
}

// Join adds a node that joins the cluster as soon as it has read the store and found a member that does not belong to the downed.
func (w *World) Join() *Node {
	n := w.addNode()
	w.rewired()
	n.Restart()
	return n
}

// Crash stops the node's process at once.
func (n *Node) Crash() {
	if p := n.proc; p != nil && p.stage != stageStopped {
		n.w.note(p, "crash", "")
		p.stop()
	}
}

// Restart starts a new incarnation on the node, unless a process runs there. It reads the store first.
func (n *Node) Restart() {
	if n.proc != nil && n.proc.stage != stageStopped {
		return
	}
	p := n.w.newProcess(n, sbr.Record{})
	n.w.note(p, "boot", "reads the store before it joins")
	p.boot()
}

// Pause stops the node's process for d without ending it: nothing runs, nothing is answered, packets wait.
func (n *Node) Pause(d time.Duration) {
	p := n.proc
	if p == nil || p.paused || p.stage == stageStopped {
		return
	}
	p.paused, p.pausedAt = true, n.w.now
	n.w.note(p, "pause", "for %v", d)
	n.w.rewired()
	n.w.at(n.w.now+d, nil, func() { p.resume() })
}

// Leave makes the node's process leave the cluster in good order.
func (n *Node) Leave() {
	if p := n.proc; p != nil && p.stage == stageRunning && !p.paused {
		n.w.note(p, "leave", "")
		p.step(sbr.Left{})
		p.leave()
	}
}

// Fail reports a failure of the resolver's own machinery to the node's resolver.
func (n *Node) Fail(reason string) {
	if p := n.proc; p != nil && p.runs() {
		p.w.after(0, p, func() { p.step(sbr.Failed{Reason: reason}) })
	}
}

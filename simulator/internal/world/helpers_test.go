package world

import (
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// What only tests ask a world.

// Status is the present snapshot of the resolver; ok is false when none runs.
func (n *Node) Status() (s sbr.Snapshot, ok bool) {
	if !n.Up() {
		return sbr.Snapshot{}, false
	}
	return n.proc.r.Snapshot(), true
}

// Join adds a node that joins the cluster as soon as it has read the store and found a member that does not
// belong to the downed.
func (w *World) Join() *Node {
	n := w.AddNode(NodeOptions{})
	n.Restart()
	return n
}

// SetLoss changes the share of packets that vanish on every link that has none of its own.
func (w *World) SetLoss(loss float64) { w.rewire(func() { w.net.every.Loss = loss }) }

// Verdict returns the newest verdict in the store, and the holder of the lease.
func (w *World) Verdict() (sbr.Verdict, sbr.ID) {
	return *w.store.verdict().Clone(), sbr.ID(w.store.record.Holder)
}

// Violations are the broken promises so far.
func (w *World) Violations() []Violation { return w.violations }

// Story returns the trace as text.
func (w *World) Story() string {
	var b strings.Builder
	for _, e := range w.Events() {
		fmt.Fprintf(&b, "%9s %-6s %-10s %s\n", e.At, e.Node, e.Kind, e.Detail)
	}
	return b.String()
}

// detects notes what one process finds out about another one.
func detects(w *World, by, of int, bad bool) {
	w.note(w.procs[by], "detects", "%s %s", w.procs[of], either(bad, "failed", "alive"))
}

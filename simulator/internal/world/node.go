package world

import (
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Node is a machine. One process at a time runs on it; each has its own incarnation.
type Node struct {
	Name  string
	Roles []string

	w     *World
	rules *Rules
	index int
	lives int
	proc  *process
	fault StoreFault
	rate  float64       // of its monotonic clock
	skew  time.Duration // of its wall clock
	last  *sbr.Decision
}

// NodeOptions describe a node. The zero value is a node without roles, called by its number.
type NodeOptions struct {
	// Name must differ from all others. Empty: n1, n2 and so on.
	Name  string
	Roles []string
	// Own are its rules where they are not those of the world.
	Own *Rules
}

// Rules are what a member decides by.
type Rules struct {
	Resolver sbr.Config
	Strategy sbr.Strategy
	// Digest is what members compare to see that they decide by the same rules.
	Digest string
}

// AddNode adds a node on which nothing runs yet; Restart starts it. Addresses are in the order of the nodes.
func (w *World) AddNode(o NodeOptions) *Node {
	n := &Node{Name: o.Name, Roles: o.Roles, w: w, rules: o.Own, index: len(w.nodes), rate: 1}
	if n.rules == nil {
		n.rules = &w.rules
	}
	if n.Name == "" {
		n.Name = "n" + strconv.Itoa(n.index+1)
	}
	w.nodes = append(w.nodes, n)
	w.net.group = append(w.net.group, 0)
	w.net.valid = false
	return n
}

// SetClock makes the node's monotonic clock run at the given rate from now on; 1 is right. What the clock
// shows does not jump.
func (n *Node) SetClock(rate float64) {
	n.rate = rate
	n.w.note(nil, "clock", "%s: rate %g", n.Name, rate)
	if p := n.proc; p != nil && p.stage != stageStopped {
		p.setRate(rate)
	}
}

// SetSkew sets by how much the node's wall clock is ahead. Processes take their birth from it when they
// start; nothing else reads it.
func (n *Node) SetSkew(d time.Duration) {
	n.skew = d
	n.w.note(nil, "clock", "%s: ahead by %v", n.Name, d)
}

// Up reports whether a process runs on the node and was not downed. A paused process is up.
func (n *Node) Up() bool { return n.proc != nil && n.proc.runs() }

// Crash stops the node's process at once.
func (n *Node) Crash() {
	if p := n.proc; p != nil && p.stage != stageStopped {
		n.w.note(p, "crash", "")
		n.w.stirred()
		p.stop()
	}
}

// Restart starts a new incarnation on the node, unless a process runs there. It reads the store first.
func (n *Node) Restart() { n.RestartAs(n.Name, false) }

// RestartAs is Restart under a name that may be another one, and with stateLost without the state folder: the
// new incarnation then cannot prove that its predecessor has ended, and does not know whom the predecessor
// could not reach.
func (n *Node) RestartAs(name string, stateLost bool) {
	if n.proc != nil && n.proc.stage != stageStopped {
		return
	}
	if name != n.Name {
		n.Name = name
	}
	p := n.w.newProcess(n, sbr.Record{})
	p.remember(stateLost)
	n.w.note(p, "boot", "reads the store before it joins")
	p.boot()
}

// Pause stops the node's process for d without ending it: nothing runs, nothing is answered, packets wait.
func (n *Node) Pause(d time.Duration) {
	p := n.proc
	if p == nil || p.paused || p.stage == stageStopped {
		return
	}
	n.harm(true)
	n.w.note(p, "pause", "for %v", d)
	p.pause()
	n.w.account()
	n.w.at(n.w.now+d, nil, func() { p.resume() })
}

// Leave makes the node's process leave the cluster in good order, once it has handed over what it runs. Now
// and then it leaves at once: the caller does not know of the hand-over.
func (n *Node) Leave() {
	const unknowing = 0.1
	p := n.proc
	if p == nil || p.stage != stageRunning || p.paused {
		return
	}
	n.w.note(p, "leave", "")
	if len(p.drivers) > 0 && !n.w.chance(unknowing) {
		p.resign()
		return
	}
	p.goodbye()
}

// harm notes that something happens to the node's process that excuses it from promise L1.
func (n *Node) harm(does bool) {
	if n.proc != nil && does {
		n.proc.watch.harmed = true
	}
}

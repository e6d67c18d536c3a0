package world

import (
	"fmt"
	"strings"
	"time"
)

// NetworkOptions are the properties of every link that is not cut.
type NetworkOptions struct {
	// Latency is the least time a message takes, Jitter what chance adds at most.
	Latency, Jitter time.Duration
	// Loss is the share of messages that vanish. It is about what the resolvers tell each other; the detector has its own options.
	Loss float64
	// Probes lets members find out about cuts between two of them that others can bridge, and report them to each other.
	// Without it such cuts stay unseen, as they do in Serf.
	Probes bool
}

// network knows which nodes can reach each other.
type network struct {
	group []int           // nodes of different groups cannot reach each other
	cut   map[[2]int]bool // single links, from and to
	part  []int           // the connected component of each node, worked out on demand
	valid bool
}

// open reports whether a packet gets from a to b directly.
func (n *network) open(a, b int) bool {
	return n.group[a] == n.group[b] && !n.cut[[2]int{a, b}]
}

// direct reports whether a and b reach each other directly, there and back.
func (n *network) direct(a, b int) bool { return n.open(a, b) && n.open(b, a) }

// connected reports whether a and b reach each other, maybe over others.
func (n *network) connected(a, b int) bool {
	n.work()
	return n.part[a] == n.part[b]
}

// work finds the connected components.
func (n *network) work() {
	if n.valid {
		return
	}
	n.valid = true
	if len(n.cut) == 0 {
		n.part = append(n.part[:0], n.group...)
		return
	}
	n.part = n.part[:0]
	for range n.group {
		n.part = append(n.part, -1)
	}
	var todo []int
	for i := range n.group {
		if n.part[i] >= 0 {
			continue
		}
		n.part[i] = i
		todo = append(todo[:0], i)
		for len(todo) > 0 {
			a := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for b := range n.group {
				if n.part[b] < 0 && n.direct(a, b) {
					n.part[b] = i
					todo = append(todo, b)
				}
			}
		}
	}
}

// Partition cuts the network into groups of nodes, by index. Nodes that are not named form one more group.
// Single cuts stay as they are.
func (w *World) Partition(groups ...[]int) {
	for i := range w.net.group {
		w.net.group[i] = 0
	}
	for g, nodes := range groups {
		for _, i := range nodes {
			w.net.group[i] = g + 1
		}
	}
	w.note(nil, "partition", "%s", w.groupNames())
	w.rewired()
}

func (w *World) groupNames() string {
	names := make(map[int][]string)
	var order []int
	for i, g := range w.net.group {
		if names[g] == nil {
			order = append(order, g)
		}
		names[g] = append(names[g], w.nodes[i].Name)
	}
	var b strings.Builder
	for _, g := range order {
		fmt.Fprint(&b, names[g])
	}
	return b.String()
}

// Cut cuts the link between two nodes, both ways.
func (w *World) Cut(a, b int) {
	w.setCut(a, b)
	w.setCut(b, a)
	w.note(nil, "cut", "%s and %s", w.nodes[a].Name, w.nodes[b].Name)
	w.rewired()
}

// CutOneWay drops what from sends to the node to.
func (w *World) CutOneWay(from, to int) {
	w.setCut(from, to)
	w.note(nil, "cut", "%s to %s", w.nodes[from].Name, w.nodes[to].Name)
	w.rewired()
}

func (w *World) setCut(from, to int) {
	if w.net.cut == nil {
		w.net.cut = make(map[[2]int]bool)
	}
	w.net.cut[[2]int{from, to}] = true
}

// Heal repairs every link.
func (w *World) Heal() {
	for i := range w.net.group {
		w.net.group[i] = 0
	}
	clear(w.net.cut)
	w.note(nil, "heal", "every link works")
	w.rewired()
}

// SetLoss changes the share of messages that vanish.
func (w *World) SetLoss(loss float64) { w.opts.Network.Loss = loss }

// rewired lets everybody find out about a change of the network or of the processes.
func (w *World) rewired() {
	w.net.valid = false
	w.detect()
	w.gossip()
}

// send carries a message from one process to another, if it gets there: over a direct link, or relayed by others.
func (w *World) send(from, to *process, f func()) {
	if !w.carries(from, to) || w.chance(w.opts.Network.Loss) {
		return
	}
	w.after(w.between(w.opts.Network.Latency, w.opts.Network.Jitter), to, func() {
		if w.carries(from, to) {
			f()
		}
	})
}

func (w *World) carries(from, to *process) bool {
	a, b := from.node.index, to.node.index
	return w.net.open(a, b) || w.net.connected(a, b)
}

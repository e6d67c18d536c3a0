package world

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Network are the properties of every link that is not cut.
type Network struct {
	// Latency is the least time a message takes, Jitter what chance adds at most.
	Latency time.Duration `yaml:"latency"`
	Jitter  time.Duration `yaml:"jitter"`
	// Loss is the share of packets that vanish.
	Loss float64 `yaml:"loss"`
}

// network knows which nodes can reach each other.
type network struct {
	group []int           // nodes of different groups cannot reach each other
	cut   map[[2]int]bool // single links, from and to
	every Network
	poor  map[[2]int]Network // single links that differ from every other one
	// the connected component of each node, worked out on demand; less than the number of nodes
	part  []int
	valid bool
}

// open reports whether a packet gets from a to b directly.
func (n *network) open(a, b int) bool {
	return n.group[a] == n.group[b] && (len(n.cut) == 0 || !n.cut[[2]int{a, b}])
}

// direct reports whether a and b reach each other directly, there and back.
func (n *network) direct(a, b int) bool { return n.open(a, b) && n.open(b, a) }

// quality is what becomes of packets from a to b, as far as none is cut.
func (n *network) quality(a, b int) Network {
	if len(n.poor) > 0 {
		if o, ok := n.poor[[2]int{a, b}]; ok {
			return o
		}
	}
	return n.every
}

// clean reports whether every packet gets there, and each answer within so much time, where links are not
// cut.
func (n *network) clean(within time.Duration) bool {
	slow := func(o Network) bool { return o.Loss > 0 || 2*(o.Latency+o.Jitter) > within }
	for _, o := range n.poor {
		if slow(o) {
			return false
		}
	}
	return !slow(n.every)
}

// connected reports whether a and b reach each other, maybe over others.
func (n *network) connected(a, b int) bool { return n.component(a) == n.component(b) }

// hear reports whether a and b hear of each other, maybe over others, and over links that work one way.
func (n *network) hear(a, b int) bool {
	return slices.Contains(n.hears(a), b) && slices.Contains(n.hears(b), a)
}

// hears are the nodes that what a says gets to.
func (n *network) hears(a int) []int {
	heard := []int{a}
	for i := 0; i < len(heard); i++ {
		for b := range n.group {
			if n.open(heard[i], b) && !slices.Contains(heard, b) {
				heard = append(heard, b)
			}
		}
	}
	return heard
}

// component is a number for all nodes that a reaches, maybe over others.
func (n *network) component(a int) int {
	switch {
	case n.valid:
	case len(n.cut) == 0:
		n.part = append(n.part[:0], n.group...)
	default:
		n.part = components(len(n.group), n.direct)
	}
	n.valid = true
	return n.part[a]
}

// components are the parts that n things fall into, some of which are linked: each is called by the first one
// in it. A thing leaves rest once it is reached.
func components(n int, linked func(a, b int) bool) []int {
	part, rest, todo := make([]int, n), make([]int, n), []int(nil)
	for i := range rest {
		rest[i] = i
	}
	for len(rest) > 0 {
		first := rest[0]
		rest = rest[1:]
		part[first] = first
		for todo = append(todo[:0], first); len(todo) > 0; {
			a := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			left := rest[:0]
			for _, b := range rest {
				if linked(a, b) {
					part[b] = first
					todo = append(todo, b)
				} else {
					left = append(left, b)
				}
			}
			rest = left
		}
	}
	return part
}

// rewire changes the network and lets all processes find out.
func (w *World) rewire(change func()) {
	change()
	w.net.valid = false
	w.look()
	for _, p := range w.procs {
		p.arouse()
	}
	w.account()
}

// Partition cuts the network into groups of nodes, by index. Nodes that are not named form one more group.
// Single cuts stay as they are.
func (w *World) Partition(groups ...[]int) {
	w.rewire(func() {
		clear(w.net.group)
		for g, nodes := range groups {
			for _, i := range nodes {
				w.net.group[i] = g + 1
			}
		}
		w.notePartition()
	})
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

// Cut drops what node from sends to node to; with both, also what node to sends back.
func (w *World) Cut(from, to int, both bool) { w.relink("cut", from, to, both, w.setCut) }

// Mend repairs what Cut or SetLink have changed. A partition stays.
func (w *World) Mend(from, to int, both bool) { w.relink("mend", from, to, both, w.mend) }

func (w *World) relink(kind string, from, to int, both bool, change func(from, to int)) {
	w.rewire(func() {
		change(from, to)
		words := "%s to %s"
		if both {
			change(to, from)
			words = "%s and %s"
		}
		w.note(nil, kind, words, w.nodes[from].Name, w.nodes[to].Name)
	})
}

func (w *World) setCut(from, to int) {
	if w.net.cut == nil {
		w.net.cut = make(map[[2]int]bool)
	}
	w.net.cut[[2]int{from, to}] = true
}

func (w *World) mend(from, to int) {
	delete(w.net.cut, [2]int{from, to})
	delete(w.net.poor, [2]int{from, to})
}

// SetLink changes what becomes of what from sends to the node to: a loss of 1 cuts the link. A partition
// stays.
func (w *World) SetLink(from, to int, o Network) {
	w.rewire(func() {
		w.mend(from, to)
		if o.Loss >= 1 {
			w.setCut(from, to)
		}
		if w.net.poor == nil {
			w.net.poor = make(map[[2]int]Network)
		}
		w.net.poor[[2]int{from, to}] = o
		w.note(nil, "link", "%s to %s: loss %g, latency %v", w.nodes[from].Name, w.nodes[to].Name,
			o.Loss, o.Latency)
	})
}

// Link is what becomes of what from sends to the node to.
func (w *World) Link(from, to int) Network {
	o := w.net.quality(from, to)
	if w.net.cut[[2]int{from, to}] {
		o.Loss = 1
	}
	return o
}

// Heal repairs every link.
func (w *World) Heal() {
	w.rewire(func() {
		clear(w.net.group)
		clear(w.net.cut)
		clear(w.net.poor)
		w.note(nil, "heal", "every link works")
	})
}

// leg draws what becomes of a packet: how long it takes, if it gets there.
func (w *World) leg(from, to *process) (d time.Duration, ok bool) {
	a, b := from.node.index, to.node.index
	if !w.net.open(a, b) {
		return 0, false
	}
	o := w.net.quality(a, b)
	if w.chance(o.Loss) {
		return 0, false
	}
	return w.between(o.Latency, o.Jitter), true
}

// send carries a message from one process to another, if it gets there: over a direct link, or relayed by
// others.
func (w *World) send(from, to *process, f func()) {
	w.post(from, to, call(func() {
		if w.carries(from, to) {
			f()
		}
	}))
}

// post is send with an action that looks itself whether the message gets there. A message that is lost comes an
// interval of gossip later, or another one: its sender and all that have it send it again.
func (w *World) post(from, to *process, a action) {
	if !w.carries(from, to) {
		return
	}
	o := w.net.quality(from.node.index, to.node.index)
	d := w.between(o.Latency, o.Jitter)
	for again := from.transmits(); w.chance(o.Loss); again-- {
		if again == 0 {
			return
		}
		d += w.serf.GossipInterval
	}
	w.enact(w.now+d, to, a)
}

func (w *World) carries(from, to *process) bool {
	a, b := from.node.index, to.node.index
	return w.net.open(a, b) || w.net.connected(a, b)
}

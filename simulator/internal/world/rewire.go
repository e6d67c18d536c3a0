package world

import "slices"

// cell is a set of nodes that a change of the network treats alike: they were together before, and are together after it.
type cell struct{ before, after int }

// apart reports whether the change concerns pairs of nodes from two cells. Two nodes whose own link works are together in any case, so what
// it changes in their link it also changes in this, unless the link itself was cut or mended, see relink.
func (c cell) apart(o cell) bool { return (c.before == o.before) != (c.after == o.after) }

// rewiring is the memory of World.rewire, kept so that a change costs few allocations.
type rewiring struct {
	part  []int // before the change
	cells []cell
	index map[cell]int32 // the cells by what they are, once there are many
	of    []int32        // the cell of each node
	// alive are the processes of each cell in the order of their nodes.
	alive [][]*process
}

// rewire changes the network and lets everybody find out. It costs what it changes: a look at each node, and one at each pair of
// members that reach each other now and did not, or did and do not.
func (w *World) rewire(change func()) {
	r := &w.rewiring
	w.net.work()
	r.part = append(r.part[:0], w.net.part...)
	links := w.net.pairs()
	change()
	w.net.valid = false
	w.net.work()
	w.sort()
	if len(r.cells) > 1 {
		for i, n := range w.nodes {
			if o := n.proc; o != nil && o.attends() {
				w.lookAcross(o, int(r.of[i]))
			}
		}
	}
	w.relink(append(links, w.net.pairs()...))
	w.gossip()
	w.account()
}

// sort puts the nodes into cells.
func (w *World) sort() {
	r := &w.rewiring
	clear(r.index)
	r.of, r.cells = r.of[:0], r.cells[:0]
	last := -1
	for i := range w.nodes {
		c := cell{r.part[i], w.net.part[i]}
		if last < 0 || r.cells[last] != c {
			last = r.find(c)
		}
		r.of = append(r.of, int32(last))
	}
	r.alive = w.gather(r.alive[:0], w.procs)
}

// find returns the number of a cell.
func (r *rewiring) find(c cell) int {
	const few = 8
	if len(r.cells) <= few {
		if i := slices.Index(r.cells, c); i >= 0 {
			return i
		}
	} else if i, ok := r.index[c]; ok {
		return int(i)
	}
	r.cells = append(r.cells, c)
	if len(r.cells) == few+1 {
		r.index = make(map[cell]int32)
		for i, c := range r.cells {
			r.index[c] = int32(i)
		}
	} else if len(r.cells) > few {
		r.index[c] = int32(len(r.cells) - 1)
	}
	return len(r.cells) - 1
}

// gather lists those of the processes that are alive by the cells of their nodes.
func (w *World) gather(lists [][]*process, among []*process) [][]*process {
	r := &w.rewiring
	size := make([]int, len(r.cells), len(r.cells)+1)
	n := 0
	for _, p := range among {
		if p.alive() {
			size[r.of[p.node.index]]++
			n++
		}
	}
	room := make([]*process, n)
	for _, k := range size {
		lists = append(lists, room[:0:k])
		room = room[k:]
	}
	for _, p := range among {
		if p.alive() {
			of := r.of[p.node.index]
			lists[of] = append(lists[of], p)
		}
	}
	return lists
}

// lookAcross lets o, whose node is in the cell of, look at everybody to whom something has changed. Who is not alive is as
// unreachable as before.
func (w *World) lookAcross(o *process, of int) {
	r := &w.rewiring
	for i, c := range r.cells {
		if i == of || !c.apart(r.cells[of]) {
			continue
		}
		for _, s := range r.alive[i] {
			o.look(s)
		}
	}
	o.review()
}

// relink looks at pairs of nodes whose own link may have changed, and at what others know of them.
func (w *World) relink(links [][2]int) {
	for _, l := range links {
		a, b := w.nodes[l[0]].proc, w.nodes[l[1]].proc
		if a == nil || b == nil {
			continue
		}
		for _, pair := range [...][2]*process{{a, b}, {b, a}} {
			if pair[0].attends() {
				pair[0].look(pair[1])
				pair[0].review()
			}
		}
	}
}

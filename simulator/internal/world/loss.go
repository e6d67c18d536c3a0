package world

import "time"

// loss is what one component of the network has lost at one moment, and when each of its members finds out about each of the others.
// Members of one side search together, so their times hang together.
type loss struct {
	at           time.Duration
	side, others int
	members      map[int]int // by the index of the process
	lost         map[int]int
	times        func(member, other int) time.Duration
}

// loses is how long o needs to find out that it cannot reach s any more, as DetectionOptions.Cut says.
func (w *World) loses(o, s *process) time.Duration {
	part := w.net.component(o.node.index)
	l := w.losses[part]
	if l == nil || l.at != w.now || !l.has(s) {
		if w.losses == nil {
			w.losses = make(map[int]*loss)
		}
		l = w.newLoss(o)
		w.losses[part] = l
	}
	return l.times(number(l.members, o.index)%l.side, number(l.lost, s.index))
}

// has reports whether s is one of the lost, or may become it.
func (l *loss) has(s *process) bool {
	_, ok := l.lost[s.index]
	return ok || len(l.lost) < l.others
}

// number gives each process the next number.
func number(of map[int]int, index int) int {
	n, ok := of[index]
	if !ok {
		n = len(of)
		of[index] = n
	}
	return n
}

// newLoss is about what o has just lost.
func (w *World) newLoss(o *process) *loss {
	l := &loss{at: w.now, members: make(map[int]int), lost: make(map[int]int)}
	for _, place := range w.turned {
		if o.peers[place].wantFailed {
			l.others++
		}
	}
	l.side = max(1+o.known-o.unreached, 1)
	l.times = w.opts.Detection.Cut(w.rng, l.side, l.others)
	return l
}

package world

import "github.com/serf-sbr/serf-sbr/sbr"

// oneSide is promise S1: two sides of one partition never both survive its resolution. Between the cut and
// the decision both run, so it is checked when the world has come to rest; chain checks what the store has to
// say at every moment.
//
// Two members that never heard of each other are not held to it: if all that knew both went away without a
// verdict, nobody can tell that they belong together. Where there is a verdict, staysDown holds them to that.
//
// Nor is a member that has never armed, and cannot because fewer than min-members are there: to it there is
// no cluster yet. It decides nothing, and nothing may run on it, even if others count it. A member that could
// have armed, or has, is held to the promise.
type oneSide struct{ unchecked }

func (*oneSide) rested(w *World) {
	up := w.up()
	whole, circle := w.whole(up), w.islands(up)
	out := w.keptOut(up)
	for i, p := range up {
		if whole && !out[p] && circle == nil {
			continue // the common case: all reach each other, and none is kept out
		}
		for _, q := range up[:i] {
			switch {
			case len(w.violations) >= maxViolations || strangers(p, q):
			case (w.apart(p, q) || circle != nil) && (p.forming() || q.forming()):
			case w.apart(p, q):
				how := either(w.net.connected(p.node.index, q.node.index), " directly", "")
				w.violate("S1", "%s and %s are both up and cannot reach each other%s", q.id, p.id, how)
			case out[p] && out[q] && p.r.KeptOut(q.id, q.self.Seen) && q.r.KeptOut(p.id, p.self.Seen):
				w.violate("S1", "%s and %s are both up and have downed each other", q.id, p.id)
			case circle != nil && circle[p.index] != circle[q.index] && p.attends() && q.attends() &&
				w.net.direct(p.node.index, q.node.index):
				w.violate("S1", "%s and %s are both up, and the cluster of neither lists the other", q.id, p.id)
			}
		}
	}
}

// islands are the circles of the members that are up, if members that reach each other are in more than one:
// each was removed from the lists of the other's circle, and no member tries to reach the other circle any
// more. Processes that can hear of each other are of one circle: one knows the other, or a process that the
// other knows, and so on.
func (w *World) islands(up []*process) []int {
	circle, first := components(len(w.procs), func(a, b int) bool {
		p, q := w.procs[a], w.procs[b]
		return p.attends() && q.attends() && w.net.connected(p.node.index, q.node.index) &&
			(p.knows(q) || q.knows(p))
	}), make(map[int]int)
	for _, p := range up {
		part := w.net.component(p.node.index)
		if !p.attends() {
			continue
		}
		if c, ok := first[part]; ok && c != circle[p.index] {
			return circle
		}
		first[part] = circle[p.index]
	}
	return nil
}

// forming reports whether the process still waits, as it must, for its cluster to form.
func (p *process) forming() bool {
	if p.r.State() != sbr.StateArming {
		return false
	}
	here, s := 0, p.r.Snapshot()
	for i := range s.Members {
		if s.Members[i].Downable() {
			here++
		}
	}
	return here < p.node.rules.Resolver.MinMembers
}

// keptOut are the processes that a member that is up keeps out. Most members know the same verdict and no
// order, so what one of them says of everybody is what all say.
func (w *World) keptOut(up []*process) map[*process]bool {
	out := make(map[*process]bool)
	asked := make(map[belief]bool)
	for _, p := range up {
		v := p.r.Verdict()
		b := belief{token: v.Token, survivors: len(v.Survivors), down: len(v.Down)}
		plain := !v.Partial && len(p.r.Orders()) == 0
		if plain && asked[b] {
			continue
		}
		asked[b] = plain
		for _, q := range up {
			if p != q && p.r.KeptOut(q.id, q.self.Seen) {
				out[q] = true
			}
		}
	}
	return out
}

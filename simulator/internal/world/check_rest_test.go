package world

import "github.com/serf-sbr/serf-sbr/sbr"

// Finish checks what must hold once everything has come to rest, and returns all broken promises. Call it
// after a Run that was long enough after the last fault for every deadline to pass: scenario files need not
// be.
func (w *World) Finish() []Violation {
	w.eachCheck(func(c checker) { c.rested(w) })
	w.comesToRest()
	return w.violations
}

// comesToRest checks the end of a run: every member that is up is at work, none is in doubt, and all see the
// same members.
func (w *World) comesToRest() {
	up := w.up()
	for _, p := range up {
		if p.paused {
			w.violate("rest", "%s is paused to the end: the run was too short", p.id)
			return
		}
	}
	for _, p := range up {
		if s := p.r.State(); s != sbr.StateUp {
			w.violate("rest", "%s is still %s", p.id, s)
		}
		if p.request != "" {
			w.violate("rest", "%s has not answered the operator who asked it to down %s", p.id, p.request)
		}
		s := p.r.Snapshot()
		for i := range s.Members {
			m := &s.Members[i]
			q := w.byID[m.ID]
			switch {
			case m.Unreachable && m.Status <= sbr.Up:
				w.violate("rest", "%s still lists %s as unreachable", p.id, m.ID)
			case !q.runs() && m.Downable() && m.Status != sbr.Leaving:
				w.violate("rest", "%s lists %s as %s, which does not run any more", p.id, m.ID, m.Status)
			}
		}
		for _, q := range up {
			if p == q || strangers(p, q) || !w.net.connected(p.node.index, q.node.index) {
				continue
			}
			if m, ok := p.r.Member(q.id); !ok || m.Status != sbr.Up {
				w.violate("rest", "%s does not list %s as a member", p.id, q.id)
			}
		}
	}
}

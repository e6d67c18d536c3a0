package world

import "github.com/serf-sbr/serf-sbr/sbr"

// quietWhileWhole is promise L3: nothing is asked of the lease while no member is unreachable, but at an
// operator's word.
type quietWhileWhole struct{ unchecked }

func (*quietWhileWhole) stepped(w *World, p *process, effects []sbr.Effect) {
	for _, e := range effects {
		if _, ok := e.(sbr.AcquireLease); ok && p.r.Suspects() == 0 && p.request == "" {
			w.violate("L3", "%s asks for the lease although nobody is unreachable", p.id)
		}
	}
}

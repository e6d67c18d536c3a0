package world

import "github.com/serf-sbr/serf-sbr/sbr"

// staysDown is promise S2: a member that was downed never takes part again under the same incarnation.
type staysDown struct{ unchecked }

func (*staysDown) stepped(w *World, p *process, effects []sbr.Effect) {
	v := p.r.Verdict()
	if v.Standing(p.id, p.self.Seen) == sbr.Out && p.r.State() != sbr.StateDown {
		w.violate("S2", "%s knows verdict %d, is not among its survivors, and goes on", p.id, v.Token)
	}
	for i, e := range effects {
		if _, down := e.(sbr.DownSelf); down && i < len(effects)-1 {
			w.violate("S2", "%s does %T after it downed itself", p.id, effects[i+1])
		}
	}
	if len(effects) > 0 && p.stage != stageRunning {
		w.violate("S2", "%s acts although it does not take part", p.id)
	}
}

func (*staysDown) rested(w *World) {
	v := w.store.verdict()
	writer := w.byID[v.DecidedBy]
	for _, p := range w.up() {
		if v.Standing(p.id, p.self.Seen) != sbr.Out {
			continue
		}
		watches := p.node.rules.Resolver.Watched && p.node.fault.Access == Open && w.store.record.Token >= v.Token
		unheard := !known(w, v) || writer != nil && p != writer && strangers(p, writer) || p.forming() &&
			!hears(w, p, v)
		if watches || !unheard {
			w.violate("S2", "%s is up although the last verdict (%d) leaves it out", p.id, v.Token)
		} // else nothing ever told it; the next partition brings it up
	}
}

// hears reports whether a member that is up, knows the verdict and knows p can tell it. Members that were
// removed from each other's list cannot.
func hears(w *World, p *process, v *sbr.Verdict) bool {
	for _, q := range w.up() {
		if q != p && (q.knows(p) || p.knows(q)) && !w.apart(p, q) && q.r.Verdict().Token >= v.Token {
			return true
		}
	}
	return false
}

// known reports whether a member that is up knows the verdict.
func known(w *World, v *sbr.Verdict) bool {
	for _, p := range w.up() {
		if p.r.Verdict().Token >= v.Token {
			return true
		}
	}
	return false
}

package world

// oneSide is promise S1: two sides of one partition never both survive its resolution. Between the cut and the decision both
// run, so it is checked when the world has come to rest; chain checks what the store has to say at every moment.
//
// Two members that never heard of each other are not held to it: if whoever knew both went away without a verdict, nobody can
// tell that they belong together. Where there is a verdict, staysDown holds them to that.
type oneSide struct{ unchecked }

func (*oneSide) rested(w *World) {
	up := w.up()
	for i, p := range up {
		for _, q := range up[:i] {
			switch {
			case strangers(p, q):
			case !w.net.connected(p.node.index, q.node.index):
				w.violate("S1", "%s and %s are both up and cannot reach each other", q.id, p.id)
			case w.opts.Network.Probes && !w.net.direct(p.node.index, q.node.index):
				w.violate("S1", "%s and %s are both up and cannot reach each other directly", q.id, p.id)
			case p.r.KeptOut(q.id, q.self.Seen) && q.r.KeptOut(p.id, p.self.Seen):
				w.violate("S1", "%s and %s are both up and have downed each other", q.id, p.id)
			}
		}
	}
}

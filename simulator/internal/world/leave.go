package world

import "github.com/serf-sbr/serf-sbr/sbr"

// recordLeave carries out one RecordLeave. Whoever leaves does not wait for the answer, and nothing follows from it.
func (c *client) recordLeave(eff sbr.RecordLeave) {
	c.call(true, func() {
		next := c.s.state
		v := next.record.Verdict.Clone()
		if v == nil || v.Token != eff.Token || !v.Leave(eff.Gone, eff.Here) {
			return
		}
		next.record.Verdict = v
		c.s.commit(c.p, c.s.version, next)
		c.w.note(c.p, "recorded", "as left after verdict %d: %v; %v remain", v.Token, names(v.Left), names(v.Remaining()))
	}, func(bool) {})
}

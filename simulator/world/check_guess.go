package world

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// neverGuesses is promise S4: "don't know" is never read as "granted". Whatever verdict a member believes in stands in the store.
type neverGuesses struct{ unchecked }

func (*neverGuesses) stepped(w *World, p *process, _ []sbr.Effect) {
	v := p.r.Verdict()
	if v.Token == 0 {
		return
	}
	i := slices.IndexFunc(w.store.chain, func(c sbr.Verdict) bool { return c.Token == v.Token })
	if i < 0 {
		w.violate("S4", "%s believes in verdict %d, which was never written", p.id, v.Token)
		return
	}
	c := &w.store.chain[i]
	within := func(part, whole []sbr.ID) bool {
		return !slices.ContainsFunc(part, func(id sbr.ID) bool { return !slices.Contains(whole, id) })
	}
	if !within(v.Survivors, c.Survivors) || !v.Partial && !slices.Equal(v.Survivors, c.Survivors) {
		w.violate("S4", "%s believes that %v survive verdict %d, written were %v", p.id, v.Survivors, v.Token, c.Survivors)
	}
}

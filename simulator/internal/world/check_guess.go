package world

import (
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// neverGuesses is promise S4: "don't know" is never read as "granted". Whatever verdict a member believes in
// stands in the store.
type neverGuesses struct{ unchecked }

// belief is a verdict that was looked at: a resolver keeps each one in lists of its own.
type belief struct {
	token           uint64
	survivors, down int
	first           *sbr.ID
}

func (*neverGuesses) stepped(w *World, p *process, _ []sbr.Effect) {
	v := p.r.Verdict()
	if v.Token == 0 {
		return
	}
	b := belief{token: v.Token, survivors: len(v.Survivors), down: len(v.Down)}
	if len(v.Survivors) > 0 {
		b.first = &v.Survivors[0]
	}
	if b == p.believed {
		return
	}
	p.believed = b
	var written *sbr.Verdict
	for i := range w.store.chain { // a store that forgets may have held two of one token
		c := &w.store.chain[i]
		if c.Token != v.Token {
			continue
		}
		if within(v.Survivors, c.Survivors) && (v.Partial || slices.Equal(v.Survivors, c.Survivors)) {
			return
		}
		written = c
	}
	if written == nil {
		w.violate("S4", "%s believes in verdict %d, which was never written", p.id, v.Token)
		return
	}
	w.violate("S4", "%s believes that %v survive verdict %d, written were %v", p.id, v.Survivors, v.Token,
		written.Survivors)
}

// within reports whether a sorted list is part of another one.
func within(part, whole []sbr.ID) bool {
	for _, id := range part {
		i, found := slices.BinarySearch(whole, id)
		if !found {
			return false
		}
		whole = whole[i:]
	}
	return true
}

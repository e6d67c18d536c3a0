//go:build linux

package main

import (
	"math/rand/v2"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/partial"
)

// ofShape is the shape of a round that cuts the links of partial.Shapes[i].
func ofShape(i int) shape { return shape("links: " + partial.Shapes[i].Name) }

const ofLinks = 7 << 32

// newLinksPlan cuts links: each shape in turn, between hosts that are drawn, in each mode. Nothing else goes
// wrong, and the store is reached by all; or, in rounds with faults, one or two of the store's and pauses
// come besides.
func newLinksPlan(seed uint64, round int, family family) plan {
	d := dice{rand.New(rand.NewPCG(seed, ofLinks|uint64(round)))}
	p := plan{Seed: seed, Round: round, Mode: moduleMode, Family: family, Faults: []fault{}}
	switch x := d.IntN(100); {
	case x < 20:
		p.Mode = debianMode
	case x < 45:
		p.Mode = ownMode
	}
	i, place := round%len(partial.Shapes), d.Perm(len(hosts))
	p.Shape = ofShape(i)
	for len(p.Links) == 0 { // at random it can be none
		for _, l := range partial.Cut(i, len(hosts), d.Rand) {
			p.Links = append(p.Links, link{hosts[place[l[0]]], hosts[place[l[1]]]})
		}
	}
	if family == faultsFamily {
		d.faultsOfStore(&p)
	}
	return p
}

// faultsOfStore draws one or two faults that a cut of links goes with. No side loses the store: there are
// none.
func (d dice) faultsOfStore(p *plan) {
	for n := 1 + d.IntN(2); len(p.Faults) < n; {
		f := d.fault(&plan{Mode: p.Mode, Sides: [][]string{hosts}})
		again := slices.ContainsFunc(p.Faults, func(g fault) bool { return g.Kind == f.Kind || g.ofStore() && f.ofStore() })
		if !again && (f.ofStore() && f.Kind != storeSide || f.Kind == pause) {
			p.Faults = append(p.Faults, f)
		}
	}
	p.order()
	p.ContinueEarly = d.IntN(2) == 0 && !slices.ContainsFunc(p.hit(pause), p.cutOffFromStore)
}

// possible is how many hosts can all reach each other, by the links that are cut; zero for rounds that are
// not about links.
func (p *plan) possible() int {
	if p.Family != linksFamily && p.Family != faultsFamily {
		return 0
	}
	var cut [][2]int
	for _, l := range p.Links {
		cut = append(cut, [2]int{slices.Index(hosts, l.From), slices.Index(hosts, l.To)})
	}
	return partial.Possible(len(hosts), cut)
}

//go:build linux

package main

import (
	"math/rand/v2"
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// linkShapes are cuts of single links, most of them not clean: which way between two of n hosts, numbered from 0, carries nothing.
var linkShapes = []struct {
	name shape
	cut  func(d dice, n, from, to int) bool
}{
	{"one link", func(_ dice, _, a, b int) bool { return ends(a, b, 0, 1) }},
	{"two links", func(_ dice, _, a, b int) bool { return ends(a, b, 0, 1) || ends(a, b, 2, 3) }},
	{"two ways", func(_ dice, _, a, b int) bool { return a == 0 && b == 1 || a == 2 && b == 3 }},
	{"links of a bridge", func(_ dice, n, a, b int) bool { return a != n-1 && b != n-1 && a%2 != b%2 }},
	{"deaf", func(_ dice, _, _, b int) bool { return b == 0 }},
	{"mute", func(_ dice, _, a, _ int) bool { return a == 0 }},
	{"half-deaf", func(_ dice, _, a, b int) bool { return b == 0 && a%2 == 1 }},
	{"ring", func(_ dice, n, a, b int) bool { return (a+1)%n != b && (b+1)%n != a }},
	{"star", func(_ dice, _, a, b int) bool { return a != 0 && b != 0 }},
	{"random links", func(d dice, _, a, b int) bool { return d.IntN(4) == 0 }},
	{"links of three sides", func(_ dice, _, a, b int) bool { return a%3 != b%3 }},
	{"links of halves", func(_ dice, n, a, b int) bool { return (a <= n/2) != (b <= n/2) }},
	{"links of one", func(_ dice, _, a, b int) bool { return (a == 0) != (b == 0) }},
}

func ends(a, b, x, y int) bool { return a == x && b == y || a == y && b == x }

const ofLinks = 7 << 32

// newLinksPlan cuts links: each shape in turn, between hosts that are drawn, in each mode. Nothing else goes wrong, and the store is
// reached by all; or, in rounds with faults, one or two of the store's and pauses come besides.
func newLinksPlan(seed uint64, round int, family family) plan {
	d := dice{rand.New(rand.NewPCG(seed, ofLinks|uint64(round)))}
	p := plan{Seed: seed, Round: round, Mode: moduleMode, Family: family, Faults: []fault{}}
	switch x := d.IntN(100); {
	case x < 20:
		p.Mode = debianMode
	case x < 45:
		p.Mode = ownMode
	}
	x, place := linkShapes[round%len(linkShapes)], d.Perm(len(hosts))
	p.Shape = x.name
	for a := range hosts {
		for b := range hosts {
			if a != b && x.cut(d, len(hosts), a, b) {
				p.Links = append(p.Links, link{hosts[place[a]], hosts[place[b]]})
			}
		}
	}
	if family == faultsFamily {
		d.faultsOfStore(&p)
	}
	return p
}

// faultsOfStore draws one or two faults that a cut of links goes with. Nobody loses the store as a side: there are none.
func (d dice) faultsOfStore(p *plan) {
	for n := 1 + d.IntN(2); len(p.Faults) < n; {
		f := d.fault(&plan{Mode: p.Mode, Sides: [][]string{hosts}})
		if f.ofStore() && f.Kind != storeSide && !slices.ContainsFunc(p.Faults, func(g fault) bool { return g.ofStore() }) ||
			f.Kind == pause && p.has(pause) == nil {
			p.Faults = append(p.Faults, f)
		}
	}
	p.order()
	p.ContinueEarly = d.IntN(2) == 0 && !slices.ContainsFunc(p.hit(pause), p.cutOffFromStore)
}

// possible is how many hosts can all reach each other, by the links that are cut; zero for rounds that are not about links.
func (p *plan) possible() int {
	if p.Family != linksFamily && p.Family != faultsFamily {
		return 0
	}
	v := sbr.View{Self: sbr.ID(hosts[0])}
	for _, h := range hosts {
		v.Members = append(v.Members, sbr.Member{ID: sbr.ID(h), Status: sbr.Up})
	}
	for _, l := range p.Links {
		v.Reports = append(v.Reports, sbr.Report{Observer: sbr.ID(l.From), Subject: sbr.ID(l.To)})
	}
	if g := v.LargestGroup(""); g != nil {
		return len(g.Members)
	}
	return len(hosts)
}

//go:build linux

package main

import "slices"

// nobodyAllowed says why a plan may end with no member up; empty: exactly one side must be. Two sides may
// never be.
func (p *plan) nobodyAllowed() string {
	switch {
	case p.Family == linksFamily:
		return "" // a largest group always stays
	case p.has(storeAll) != nil:
		return "the store is cut off from everyone"
	case p.has(storeKilled) != nil || p.has(storePaused) != nil || p.has(rightsTaken) != nil:
		return "the store does not answer for a while"
	case p.forgets() != nil && p.forgets().When == "":
		return "the store forgets while members are suspects: it is not raced for until it is told again"
	case !p.Shape.clean():
		return "unrest, or most are indirectly connected"
	}
	for _, side := range p.sides() {
		// The side may win, and what it was is not there any more.
		if len(side) > 0 && !slices.ContainsFunc(side, func(h string) bool { return !p.lost(h) }) {
			return "a whole side is killed, downed by an operator, or loses its serf agents"
		}
	}
	for _, h := range hosts {
		if !p.struck(h) && !p.cutOffFromStore(h) {
			return ""
		}
	}
	return "nobody who could reach the store works"
}

// struck reports whether what runs on the host is killed, stopped or downed by an operator in the round.
func (p *plan) struck(host string) bool {
	return slices.Contains(p.hit(pause), host) || p.restartedIn(host) || slices.Contains(p.hit(crash), host) ||
		slices.Contains(p.hit(operatorDown), host)
}

// lost reports whether the incarnation on the host ends in the round, whichever side wins: `sbr agent` goes
// down when the serf agent beside it stands still, and an operator may down it.
func (p *plan) lost(host string) bool {
	f := p.has(pause)
	return p.restartedIn(host) || slices.Contains(p.hit(crash), host) || slices.Contains(p.hit(operatorDown), host) || f != nil && f.Target != agent && p.Mode != ownMode && slices.Contains(f.Hosts, host)
}

// sides are the smallest groups that the cuts of a clean shape make.
func (p *plan) sides() [][]string {
	cuts := [][][]string{p.Sides}
	if f := p.has(secondCut); f != nil {
		cuts = append(cuts, f.Sides)
	}
	parts := [][]string{hosts}
	for _, cut := range cuts {
		var finer [][]string
		for _, part := range parts {
			for _, side := range cut {
				both := slices.DeleteFunc(slices.Clone(part), func(h string) bool { return !slices.Contains(side, h) })
				if len(both) > 0 {
					finer = append(finer, both)
				}
			}
		}
		parts = finer
	}
	return parts
}

// sharper reports whether the second cut separates hosts that the first does not.
func (p *plan) sharper() bool { return !p.Shape.clean() || len(p.sides()) > len(p.Sides) }

// bounded reports whether the computed bound of double-active time applies: a clean cut at one instant, and
// every process runs.
func (p *plan) bounded() bool {
	return p.Shape.clean() && p.has(secondCut) == nil && p.has(pause) == nil && p.has(kill) == nil && p.has(healEarly) == nil &&
		p.has(stateLost) == nil && p.has(rightsTaken) == nil && p.has(operatorDown) == nil && p.forgets() == nil
}

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// computedBounds are how long both sides may be up at most, by the settings of a member.
func computedBounds(path string) (timing.DoubleActive, error) {
	f, err := config.Load(path)
	if err != nil {
		return timing.DoubleActive{}, err
	}
	_, r := f.Times(len(hosts), "")
	return r.DoubleActive, nil
}

// measure fills in the figures of a round that is over.
func (g *game) measure() error {
	r := &g.result
	r.Cut = g.cutAt
	for _, e := range g.verdicts() {
		r.Verdicts = append(r.Verdicts, e.Token)
	}
	t := timeline{cut: g.cutAt}
	for _, m := range g.cluster.Members() {
		hooks, err := m.Hooks()
		if err != nil {
			return err
		}
		name := m.Host.Name()
		hooks = slices.DeleteFunc(hooks, func(h cluster.Hook) bool { return h.At.Before(g.cutAt) })
		for _, h := range hooks {
			if h.Event == "down" {
				r.Downs[h.Incarnation] = h.Reason
			}
		}
		t.hooks(name, g.before[name], slices.DeleteFunc(slices.Clone(hooks), func(h cluster.Hook) bool {
			return h.At.After(g.healedAt)
		}))
		for _, e := range m.SBR.Exits() {
			t.add(e.At, name, false, func(w *worker) { w.gone = true })
		}
	}
	troubles := g.troubles()
	t.stands(troubles)
	resolution := t.resolved(g.last, func(host string) bool { return slices.Contains(g.plan.hit(pause), host) })
	r.Resolution = resolution.Seconds()
	r.Nobody = t.nobody(g.last.Add(resolution).Sub(g.cutAt)).Seconds()
	all, err := g.cluster.DoubleActive()
	for _, a := range all {
		if a.At.After(g.cutAt) {
			r.Active = append(r.Active, classify(a, troubles))
		}
	}
	return err
}

// judge compares what was seen with what the plan allows.
func (g *game) judge(ctx context.Context) error {
	r := &g.result
	errs := []error{g.verified(ctx)}
	now, err := g.cluster.Incarnations(ctx)
	errs = append(errs, err)
	for _, name := range g.plan.hit(pause) {
		if now[name] == g.before[name] && !slices.Contains(r.Up, name) {
			r.Up = append(r.Up, name) // it stood still then, and has survived
		}
	}
	for _, e := range g.cluster.Chain().Verdicts() {
		for name, id := range now {
			if slices.Contains(e.Verdict.Down, sbr.ID(id)) {
				errs = append(errs, fmt.Errorf("%s is up again as %s, which verdict %d downed", name, id, e.Token))
			}
		}
	}
	switch {
	case len(r.Up) == 0:
		r.Outcome = nobody
		if r.Allowed == "" {
			errs = append(errs, errors.New("nobody is up, and one side could be"))
		}
	case len(r.Downs) == 0 && len(r.Verdicts) == 0:
		r.Outcome = nothing
	default:
		r.Outcome = oneSide
	}
	return errors.Join(append(errs, g.plan.late(r.Active, g.bounds)...)...)
}

// late are the losers that were at work for longer than is computed. A loser that reaches the store is given
// what it needs without a watch: how much sooner most are is for the percentiles to say.
func (p *plan) late(all []activity, bounds timing.DoubleActive) (errs []error) {
	if !p.bounded() {
		return nil
	}
	for _, a := range all {
		bound, known := map[class]time.Duration{reaches: bounds.Asking, cutOff: bounds.CutOff}[a.Class]
		if known && a.Seconds > bound.Seconds() {
			errs = append(errs, fmt.Errorf("%s (%s) was at work for %.1f s after verdict %d: the computed bound is %v",
				a.Member, a.Class, a.Seconds, a.Verdict, bound))
		}
	}
	return errs
}

// collectWithin is how long the end of a process, of which its hook told before, may take: its grace.
const collectWithin = 20 * time.Second

// verified is the judgement of package cluster, once each process that was downed has ended.
func (g *game) verified(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, collectWithin)
	defer cancel()
	for {
		err := g.cluster.Verify()
		if err == nil || !slept(ctx, time.Second) {
			return err
		}
	}
}

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
	return p.restartedIn(host) || slices.Contains(p.hit(crash), host) || slices.Contains(p.hit(operatorDown),
		host) || f != nil && f.Target != agent && p.Mode != ownMode && slices.Contains(f.Hosts, host)
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
	return p.Shape.clean() && p.has(secondCut) == nil && p.has(pause) == nil && p.has(kill) == nil &&
		p.has(healEarly) == nil &&
		p.has(stateLost) == nil && p.has(rightsTaken) == nil && p.has(operatorDown) == nil && p.forgets() == nil
}

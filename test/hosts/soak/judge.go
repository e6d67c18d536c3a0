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
		t.hooks(name, g.before[name], slices.DeleteFunc(slices.Clone(hooks), func(h cluster.Hook) bool { return h.At.After(g.healedAt) }))
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
			errs = append(errs, fmt.Errorf("%s (%s) was at work for %.1f s after verdict %d: the computed bound is %v", a.Member, a.Class, a.Seconds, a.Verdict, bound))
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

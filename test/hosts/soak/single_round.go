//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const (
	// moveWithin bounds a planned hand-over on a busy machine.
	moveWithin = 30 * time.Second
	// backWithin is how long the older member that was asked to hand over may take to want it back.
	backWithin = 10 * time.Second
	// calmBefore is for whatever the end of the round before has set going.
	calmBefore = time.Second
	// busySlack is added to computed bounds, beyond which a round fails: the machine plays several at a time.
	busySlack = 30 * time.Second
)

// marks are moments of a round by the ledger's clock.
type marks struct{ begin, ready, cut, healed, end time.Duration }

// single plays a round with a singleton, or with shards.
func (g *game) single(ctx context.Context) error {
	if err := g.prepare(ctx); err != nil {
		return fmt.Errorf("before the cut: %w", err)
	}
	g.result.Plan, g.result.Text, g.result.Allowed = *g.plan, g.plan.String(), g.plan.nobodyAllowed()
	var err error
	if g.log.cut, err = g.ledger.Mark(ctx, "cut"); err != nil {
		return err
	}
	if g.plan.Single.Scene == rollingScene {
		err = g.roll(ctx)
	} else {
		err = g.cutAndResolve(ctx)
	}
	if err == nil {
		g.log.healed, err = g.ledger.Mark(ctx, "healed")
	}
	if err == nil {
		err = g.heal(ctx)
	}
	if err == nil {
		err = g.after(ctx)
	}
	if err != nil {
		return errors.Join(err, g.cluster.Chain().Verify(), g.account(ctx))
	}
	return errors.Join(g.measure(), g.judge(ctx), g.account(ctx))
}

// works waits until all of it is done later than after, on one of these hosts; without names on any.
func (g *game) works(ctx context.Context, after, within time.Duration, on ...string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for _, resource := range g.load.resources() {
		_, err := g.ledger.Find(ctx, resource, after, func(l ledger.Line) bool {
			return l.Accepted && l.Kind == ledger.Work && (len(on) == 0 || slices.Contains(on, hostOf(l.Member)))
		})
		if err != nil {
			return fmt.Errorf("%v later: %w", within, err)
		}
	}
	return nil
}

// hostOf is the host of a member that the ledger knows by the host's name, or by an incarnation.
func hostOf(member string) string { return downing.NameOf(sbr.ID(member)) }

// prepare hands over once and aims the plan at where a fault would hurt most then.
func (g *game) prepare(ctx context.Context) (err error) {
	if g.log.begin, err = g.ledger.Mark(ctx, "begin"); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	if err := g.load.settled(within, g.stage); err != nil {
		return err
	}
	// An older member that has just been attached takes it now.
	if !slept(within, calmBefore) {
		return context.Cause(within)
	}
	if g.log.ready, err = g.ledger.Mark(ctx, "ready"); err != nil {
		return err
	}
	if err := g.works(ctx, g.log.ready, moveWithin); err != nil {
		return err
	}
	if g.holder, err = g.load.handOver(ctx, g); err != nil {
		return err
	}
	if g.plan.Single.Aim {
		g.plan.swap(g.plan.victim(), g.holder)
	}
	return ctx.Err()
}

// roll restarts all hosts in good order, one after the other.
func (g *game) roll(ctx context.Context) error {
	g.cutAt = time.Now()
	g.last = g.cutAt
	for _, name := range g.plan.Single.Order {
		if err := g.load.leave(ctx, g.stage, name, g.plan.Single.InPeace); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		g.cluster.Restore(name)
		within, cancel := context.WithTimeout(ctx, wholeWithin)
		err := errors.Join(g.cluster.WaitWhole(within), g.load.settled(within, g.stage))
		cancel()
		if err != nil {
			return fmt.Errorf("after %s was restarted: %w", name, err)
		}
		g.cluster.Member(name).SetRestart(false)
	}
	g.result.Up = slices.Clone(hosts)
	return nil
}

// noticed waits until a host that has nothing but itself to blame is downed by a verdict: before, all that is
// up looks like one side.
func (g *game) noticed(ctx context.Context) error {
	if g.plan.Single == nil || g.plan.Single.Scene != stillScene && g.plan.Single.Scene != crashScene {
		return nil
	}
	is := sbr.ID(g.before[g.plan.victim()])
	within, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	for {
		for _, e := range g.cluster.Chain().Verdicts() {
			if slices.Contains(e.Verdict.Down, is) {
				return nil
			}
		}
		if !slept(within, watchEvery) {
			return fmt.Errorf("no verdict has downed %s", is)
		}
	}
}

// runsAgain waits until it runs where it can, during the cut, if that must be so.
func (g *game) runsAgain(ctx context.Context, up []string) error {
	if len(up) == 0 || !g.plan.alone() {
		return nil
	}
	for _, name := range up {
		if slices.Contains(g.plan.Single.NoLedger, name) {
			return nil // nobody sees it
		}
	}
	now, err := g.ledger.Mark(ctx, "resolved")
	if err != nil {
		return err
	}
	bound, err := g.singleBound()
	if err != nil {
		return err
	}
	if err := g.works(ctx, now, bound+busySlack, up...); err != nil {
		return fmt.Errorf("%v are up and not all of it runs on them: %w", up, err)
	}
	return nil
}

// after waits until it runs again, everything being well.
func (g *game) after(ctx context.Context) error {
	now, err := g.ledger.Mark(ctx, "whole")
	if err != nil {
		return err
	}
	bound, err := g.singleBound()
	if err != nil {
		return err
	}
	if err := g.works(ctx, now, bound+busySlack); err != nil {
		return fmt.Errorf("all are members again and not all of it runs: %w", err)
	}
	if err := g.load.once(ctx, g); err != nil {
		return err
	}
	g.log.end, err = g.ledger.Mark(ctx, "end")
	return err
}

// wake continues whatever stands still.
func (g *game) wake() error {
	var first time.Duration
	if s := g.plan.Single; s != nil {
		first = time.Duration(s.WakesFirst)
	}
	return g.resume(first)
}

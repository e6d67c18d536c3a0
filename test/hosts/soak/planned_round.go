//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// plannedCalm is for the changes that follow from the ones before: the oldest member takes the program
	// back.
	plannedCalm = 2 * time.Second
	// awayFor is for how long a member that has left stays away.
	awayFor = time.Second
)

// planned plays a round in which members give the program away, and nothing goes wrong.
func (g *game) planned(ctx context.Context) error {
	err := g.farewells(ctx)
	if err == nil {
		return errors.Join(g.measure(), g.judge(ctx), g.account(ctx))
	}
	return errors.Join(err, g.cluster.Chain().Verify(), g.account(ctx))
}

// farewells lets all of the plan happen, and waits until the program has found its place again.
func (g *game) farewells(ctx context.Context) (err error) {
	if g.log.begin, err = g.ledger.Mark(ctx, "begin"); err != nil {
		return err
	}
	if g.log.ready, err = g.calm(ctx, "ready"); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	runs, err := g.ledger.Work(within, resource, g.log.ready, "")
	if err != nil {
		return err
	}
	g.plan.swap(g.plan.victim(), runs.Member)
	g.result.Plan, g.result.Text = *g.plan, g.plan.String()
	if g.log.cut, err = g.ledger.Mark(ctx, "farewells"); err != nil {
		return err
	}
	g.cutAt = time.Now()
	g.last, g.healedAt = g.cutAt, g.cutAt
	var all tasks
	for _, f := range g.plan.Single.Farewells {
		all.start(func() error {
			if err := g.farewell(ctx, f); err != nil {
				return fmt.Errorf("%v: %w", f, err)
			}
			return nil
		})
	}
	if err := all.wait(); err != nil {
		return err
	}
	g.result.Up = slices.Clone(hosts)
	if g.log.end, err = g.calm(ctx, "end"); err != nil {
		return err
	}
	return g.works(ctx, g.log.end, moveWithin)
}

// farewell lets one host give the program away; a member that has left is back when it returns.
func (g *game) farewell(ctx context.Context, f farewell) error {
	if !g.sleepUntil(ctx, f.At) {
		return context.Cause(ctx)
	}
	m := g.cluster.Member(f.Host)
	if !f.Leaves {
		within, cancel := context.WithTimeout(ctx, moveWithin)
		defer cancel()
		_, err := m.Resign(within)
		return err
	}
	if err := g.load.leave(ctx, g.stage, f.Host, g.plan.Single.InPeace); err != nil {
		return err
	}
	slept(ctx, awayFor)
	g.cluster.Restore(f.Host)
	defer m.SetRestart(false)
	within, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	return g.cluster.WaitWhole(within)
}

// calm waits until the program could run everywhere, and the oldest member has had time to take it.
func (g *game) calm(ctx context.Context, what string) (at time.Duration, err error) {
	within, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	if err := g.load.settled(within, g.stage); err != nil {
		return 0, err
	}
	if !slept(within, plannedCalm) {
		return 0, context.Cause(within)
	}
	return g.ledger.Mark(ctx, what)
}

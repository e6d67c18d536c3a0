//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// load is what runs on the members of a stage and writes to its ledger.
type load interface {
	// resources are what it writes to.
	resources() []string
	// settled waits until all of it runs, or can, wherever it should.
	settled(ctx context.Context, s *stage) error
	// handOver moves some of it in peace, and returns the host where a fault would hurt most then.
	handOver(ctx context.Context, g *game) (holder string, err error)
	// leave makes a host leave in good order.
	leave(ctx context.Context, s *stage, name string, inPeace bool) error
	// once returns an error if at the end, everything being well, any of it runs nowhere, or twice.
	once(ctx context.Context, g *game) error
}

// singleLoad is a program that `sbr run` runs in one place.
type singleLoad struct{}

func (singleLoad) resources() []string { return []string{resource} }

func (singleLoad) settled(ctx context.Context, s *stage) error { return s.cluster.WaitAttached(ctx) }

func (singleLoad) handOver(ctx context.Context, g *game) (string, error) {
	within, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	runs, err := g.ledger.Work(within, resource, g.log.ready, "")
	if err != nil {
		return "", err
	}
	if _, err := g.cluster.Member(runs.Member).Resign(within); err != nil {
		return "", err
	}
	next, err := g.ledger.Find(within, resource, runs.At, func(l ledger.Line) bool {
		return l.Accepted && l.Kind == ledger.Work && l.Run != runs.Run
	})
	if err != nil {
		return "", fmt.Errorf("after sbr run has ended on %s: %w", runs.Member, err)
	}
	// The slot belongs to the oldest member, which wants it back as soon as there is a program for it again.
	back, cancel := context.WithTimeout(ctx, backWithin)
	defer cancel()
	if line, err := g.ledger.Work(back, resource, next.At, runs.Member); err == nil {
		next = line
	}
	return next.Member, nil
}

func (singleLoad) leave(ctx context.Context, s *stage, name string, inPeace bool) error {
	m := s.cluster.Member(name)
	if inPeace {
		m.Run.SetRestart(false)
		within, cancel := context.WithTimeout(ctx, moveWithin)
		defer cancel()
		if _, err := m.Resign(within); err != nil {
			return fmt.Errorf("sbr run: %w", err)
		}
	}
	return m.Leave(ctx)
}

func (singleLoad) once(context.Context, *game) error {
	return nil
} // that it runs is all that can be seen: the oldest may take it back at any time

// shardLoad is shards on an application of their own.
type shardLoad struct{ shards *cluster.Shards }

func (l shardLoad) resources() []string { return l.shards.Resources() }

func (shardLoad) settled(ctx context.Context, s *stage) error {
	_, _, err := s.cluster.WaitShards(ctx)
	return err
}

// handOver drains a host that the seed names, half the time that of the coordinator.
func (shardLoad) handOver(ctx context.Context, g *game) (string, error) {
	within, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	coordinator, _, err := g.cluster.WaitShards(within)
	if err != nil {
		return "", err
	}
	drained := coordinator
	if !g.plan.Single.DrainsCoordinator {
		drained = hosts[g.plan.Round%len(hosts)]
	}
	if err := g.cluster.Member(drained).Drain(within); err != nil {
		return "", err
	}
	coordinator, _, err = g.cluster.WaitShards(within)
	if err != nil {
		return "", fmt.Errorf("after %s has handed over: %w", drained, err)
	}
	return coordinator, nil
}

func (shardLoad) leave(ctx context.Context, s *stage, name string, inPeace bool) error {
	m := s.cluster.Member(name)
	left := m.LeaveUnasked
	if inPeace {
		left = m.Leave
	}
	if err := left(ctx); err != nil {
		return err
	}
	if exit, err := m.SBR.Process().Wait(ctx); err != nil || exit.Code != 0 {
		return fmt.Errorf("it has left with status %d: %w", exit.Code, err)
	}
	return nil
}

// onceFor is for how long it is looked whether each shard runs once.
const onceFor = 300 * time.Millisecond

func (l shardLoad) once(ctx context.Context, g *game) error {
	within, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	if err := l.settled(within, g.stage); err != nil {
		return fmt.Errorf("all are members again: %w", err)
	}
	from, err := g.ledger.Mark(ctx, "once")
	if err != nil || !slept(ctx, onceFor) {
		return err
	}
	to, err := g.ledger.Mark(ctx, "and no more")
	if err != nil {
		return err
	}
	for _, resource := range l.resources() {
		lines, err := g.ledger.Lines(resource)
		if err != nil {
			return err
		}
		runs := make(map[string]string)
		for _, line := range lines {
			// what is refused may have been on its way since its sender's end
			if line.Accepted && line.At > from && line.At < to {
				runs[line.Run] = line.Member
			}
		}
		if len(runs) != 1 {
			return fmt.Errorf("%s is written to by %d runs at the end, not by one: %v", resource, len(runs), runs)
		}
	}
	return nil
}

// settleWithin bounds how long shards take to be spread again once all are members.
const settleWithin = 60 * time.Second

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
)

const (
	// toldAgainWithin is how long the members are given to tell the store what it has forgotten, before the
	// cut.
	toldAgainWithin = 5 * time.Second
	// verdictWithin bounds how long a verdict is waited for that the store is to forget.
	verdictWithin = 40 * time.Second
	// releasedWithin bounds how long a lease is held: until Serf has forgotten the downed, and release-after.
	releasedWithin = time.Minute
)

// past is what the store held when a round began.
type past struct {
	record   lease.Record // the zero one: there was none
	snapshot string       // of etcd; empty: none was taken
}

// remember takes down what the store holds: see fault.Back.
func (s *stage) remember(ctx context.Context, p *plan) error {
	var now past
	var err error
	if now.record, err = s.cluster.Record(ctx); err != nil {
		return err
	}
	if p.Family == recordFamily || p.has(etcdRestored) != nil {
		if now.snapshot, err = s.store.API.SnapshotEtcd(); err != nil {
			return err
		}
	}
	if s.before.snapshot != "" {
		if err := os.RemoveAll(s.before.snapshot); err != nil {
			return err
		}
	}
	s.before, s.now = s.now, now
	return nil
}

// forget makes the store forget.
func (s *stage) forget(ctx context.Context, f *fault) error {
	to := s.now
	if f.Back > 0 {
		to = s.before
	}
	switch f.Kind {
	case leaseDeleted:
		return s.cluster.DeleteRecord(ctx)
	case leaseReplaced:
		return s.cluster.ReplaceRecord(ctx, to.record)
	default:
		if to.snapshot == "" { // the first round of a stage
			to = s.now
		}
		s.begin(noStore, hosts...)
		defer s.end(noStore, hosts...)
		return s.cluster.RestoreStore(ctx, to.snapshot)
	}
}

// beforeTheCut plays what comes then, and returns when all five are members.
func (g *game) beforeTheCut(ctx context.Context) error {
	early := false
	for i := range g.plan.Faults {
		if f := &g.plan.Faults[i]; f.When == beforeCut {
			early = true
			if err := g.strike(ctx, f); err != nil {
				return fmt.Errorf("%v: %w", f, err)
			}
		}
	}
	if g.plan.Family == timesFamily {
		return g.released(ctx)
	}
	if !early {
		return nil
	}
	if !slept(ctx, toldAgainWithin) {
		return context.Cause(ctx)
	}
	within, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	if err := g.cluster.WaitWhole(within); err != nil {
		return fmt.Errorf("before the cut: %w: %w", errNotWhole, err)
	}
	var err error
	g.before, err = g.cluster.Incarnations(ctx)
	return err
}

// released waits until nobody holds the lease: a holder has an advantage over the others.
func (g *game) released(ctx context.Context) error {
	for end := time.Now().Add(releasedWithin); time.Now().Before(end) && slept(ctx, watchEvery); {
		if r, err := g.cluster.Record(ctx); err != nil || r.Holder == "" {
			return err
		}
	}
	return errors.New("the lease of the round before is still held")
}

// verdictCame waits for a verdict of this round; false: there is none.
func (g *game) verdictCame(ctx context.Context) bool {
	for end := time.Now().Add(verdictWithin); time.Now().Before(end) && slept(ctx, watchEvery); {
		if len(g.verdicts()) > 0 {
			return true
		}
	}
	return false
}

// forceLeave removes on these hosts, once, what their agents call failed. A host whose agent does not run, or ends
// meanwhile, is left out.
func (s *stage) forceLeave(ctx context.Context, f *fault) error {
	for _, name := range f.Hosts {
		m := s.cluster.Member(name)
		if !m.Serf.Process().Alive() || m.Serf.Process().Paused() {
			continue
		}
		if err := s.cluster.ForceLeave(ctx, m, f.Kind == prune); err != nil {
			select {
			case <-m.Serf.Process().Exited():
			case <-time.After(time.Second):
				return err
			}
		}
	}
	return nil
}

// operatorDown asks an agent to down a member. The round is judged by whether it does, not by what it
// answers. An agent that does not run or stands still is not asked.
func (s *stage) operatorDown(ctx context.Context, f *fault) error {
	m := s.cluster.Member(f.By)
	if p := m.SBR.Process(); !p.Alive() || p.Paused() {
		return nil
	}
	return s.cluster.Down(ctx, m, f.Hosts[0])
}

// startCrons lets hosts do so once a second until the round is over.
func (s *stage) startCrons(f *fault) error {
	for _, name := range f.Hosts {
		p, err := s.cluster.StartCron(s.cluster.Member(name))
		if err != nil {
			return err
		}
		s.crons = append(s.crons, p)
	}
	return nil
}

func (s *stage) endCrons() {
	for _, p := range s.crons {
		p.Kill()
	}
	s.crons = nil
}

// takeRights takes them away for a while.
func (s *stage) takeRights(ctx context.Context, f *fault) error {
	s.begin(noStore, hosts...)
	defer s.end(noStore, hosts...)
	err := s.cluster.Account().TakeRights(ctx)
	slept(ctx, time.Duration(f.For))
	return errors.Join(err, s.cluster.Account().GiveRights(context.WithoutCancel(ctx)))
}

// restartAgain starts agents again at once; with lose their state folder is gone.
func (s *stage) restartAgain(ctx context.Context, f *fault, lose bool) error {
	return s.each(f, func(name string, v *lab.Supervisor) error {
		if !lose {
			return killAndRestart(ctx, v)
		}
		v.Process().Kill()
		if err := s.cluster.Member(name).LoseState(); err != nil {
			return err
		}
		return killAndRestart(ctx, v)
	})
}

// warmUp plays a cut with nothing else, so that there is a verdict that can be forgotten, and what was before
// it.
func (s *stage) warmUp(ctx context.Context) error {
	p := plan{Mode: s.kind.mode, Family: recordFamily, Shape: halves, Sides: [][]string{hosts[:3], hosts[3:]}}
	if r := s.play(ctx, &p); r.Error != "" {
		return fmt.Errorf("a cut before the first round: %s", r.Error)
	}
	return nil
}

// restartedIn reports whether the agent on the host is started again in the cut.
func (p *plan) restartedIn(host string) bool {
	return slices.Contains(p.hit(kill), host) || slices.Contains(p.hit(stateLost), host)
}

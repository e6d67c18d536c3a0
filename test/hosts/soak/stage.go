//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// settings are quick where the rule does not need the defaults, and half of the hosts are no cluster of their
// own. With a stable-after the rest are the defaults: what Serf forgets depends on how long its own detection
// takes beside the resolver's. Only the lease is released sooner, so that a round need not begin with that of
// the round before.
func settings(stable string) cluster.Settings {
	if stable != "" {
		soon := map[string]any{"release-after": "5s"}
		return cluster.Settings{}.With("stable-after", stable).With("lease-majority", soon)
	}
	return cluster.Fast().With("min-members", len(hosts)/2+1)
}

// stageKind is what rounds must have in common to be played on one stage. Without a singleton and shards the
// guard is empty.
type stageKind struct {
	mode   mode
	stable string // see plan.Stable
	guard  cluster.Guard
	shards int
}

func (k stageKind) String() string {
	if k.stable != "" {
		return string(k.mode) + ", stable-after " + k.stable
	}
	if k.guard == "" {
		return string(k.mode)
	}
	if k.shards > 0 {
		return fmt.Sprintf("%d shards, %s", k.shards, k.guard)
	}
	return string(k.mode) + ", " + string(k.guard)
}

func (p *plan) kind() stageKind {
	k := stageKind{mode: p.Mode, stable: p.Stable}
	if p.Single != nil {
		k.guard, k.shards = p.Single.Guard, p.Single.Shards
	}
	return k
}

// stage is a lab with a cluster on it, on which rounds are played one after the other.
type stage struct {
	kind    stageKind
	lab     *lab.Lab
	store   *cluster.Store
	cluster *cluster.Cluster
	ledger  *cluster.Ledger // nil where nothing writes to one
	load    load            // the same

	before, now past // of the store: what the round before began with, and this one
	crons       []*process.Process

	mu        sync.Mutex
	stretches []stretch
	frozen    map[string]*lab.Standstill
}

// newStage builds a stage; its logs are in dir.
func newStage(ctx context.Context, p *programs, store string, k stageKind, dir string) (*stage, error) {
	l, err := lab.New(ctx, lab.Options{Hosts: hosts, Dir: dir})
	if err != nil {
		return nil, err
	}
	s := &stage{kind: k, lab: l, frozen: make(map[string]*lab.Standstill)}
	if s.store, err = cluster.StartStore(ctx, l, "store", store, os.Stderr); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	o := cluster.Options{Hosts: hosts, SBR: p.sbr, Serf: p.serf[k.mode], Own: k.mode == ownMode,
		Settings: settings(k.stable)}
	if k.mode == debianMode {
		o.Flavour = serftest.Debian
	}
	if k.guard != "" {
		if err := s.addLoad(ctx, p, &o); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	if s.cluster, err = cluster.Start(ctx, l, s.store, o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

func (s *stage) close() error {
	s.cluster.Stop()
	var err error
	if s.ledger != nil {
		err = s.ledger.Close()
	}
	return errors.Join(err, s.lab.Close())
}

// begin notes that something is wrong with hosts from now on.
func (s *stage) begin(t trouble, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range names {
		s.stretches = append(s.stretches, stretch{Host: h, Trouble: t, From: time.Now()})
	}
}

// end notes that it is over.
func (s *stage) end(t trouble, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.stretches {
		if x := &s.stretches[i]; x.Trouble == t && x.To.IsZero() && slices.Contains(names, x.Host) {
			x.To = time.Now()
		}
	}
}

func (s *stage) troubles() []stretch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stretches)
}

// cut makes the shape of a plan, but for flapping, which flap does.
func (s *stage) cut(p *plan) error {
	if p.Single != nil {
		if err := s.cutLedger(p); err != nil {
			return err
		}
	}
	for _, l := range p.Links {
		if err := s.lab.CutOneWay(l.From, l.To); err != nil {
			return err
		}
	}
	switch p.Shape {
	case isolated:
		s.begin(noStore, p.Sides[1]...)
		if p.Single != nil { // the ledger is none of those that it is cut off from
			return errors.Join(s.lab.CutStore(p.Sides[1][0]), s.lab.Partition(p.Sides...))
		}
		return s.lab.Isolate(p.Sides[1][0])
	case loss:
		s.begin(lossy, p.Lossy...)
		return s.lab.Loss(p.Percent, p.Lossy...)
	default:
		if len(p.Sides) == 0 {
			return nil
		}
		return s.lab.Partition(p.Sides...)
	}
}

// flap cuts and heals until ctx ends.
func (s *stage) flap(ctx context.Context, p *plan) error {
	return s.lab.Flap(ctx, time.Duration(p.Down), time.Duration(p.Up), func() error {
		return s.lab.Partition(p.Sides...)
	})
}

// strike makes a fault happen, and returns when it is there; a server that is away is back then.
func (s *stage) strike(ctx context.Context, f *fault) error {
	switch f.Kind {
	case storeSome, storeSide, storeAll:
		s.begin(noStore, f.Hosts...)
		return s.lab.CutStore(f.Hosts...)
	case secondCut:
		return s.lab.Partition(f.Sides...)
	case healEarly:
		s.end(lossy, hosts...)
		return s.lab.HealLinks()
	case pause:
		if s.ledger != nil && f.Target == both {
			return s.freeze(ctx, f)
		}
		return s.each(f, func(name string, v *lab.Supervisor) error {
			if err := v.Process().Pause(ctx); err != nil || v == s.cluster.Member(name).Serf {
				return err
			}
			s.begin(stopped, name)
			return nil
		})
	case forceLeave, prune:
		return s.forceLeave(ctx, f)
	case forceCron:
		return s.startCrons(f)
	case operatorDown:
		return s.operatorDown(ctx, f)
	case stateLost:
		return s.restartAgain(ctx, f, true)
	case restarted:
		return s.restartAgain(ctx, f, false)
	case rightsTaken:
		return s.takeRights(ctx, f)
	case storeBack:
		s.end(noStore, f.Hosts...)
		return s.lab.HealStore(f.Hosts...)
	case leaseDeleted, leaseReplaced, etcdRestored:
		return s.forget(ctx, f)
	case kill:
		return s.each(f, func(_ string, v *lab.Supervisor) error { return killAndRestart(ctx, v) })
	case departure, desertion:
		return s.depart(ctx, f)
	case crash, runKilled, programKilled:
		return s.hurt(ctx, f)
	case storeKilled:
		return s.away(ctx, f, func() error { s.store.Kill(); return nil }, func() error {
			return s.store.Start(ctx)
		})
	case storePaused:
		return s.away(ctx, f, func() error { return s.store.Pause(ctx) }, s.store.Continue)
	default:
		return fmt.Errorf("a fault %q", f.Kind)
	}
}

func (s *stage) away(ctx context.Context, f *fault, stop, start func() error) error {
	s.begin(noStore, hosts...)
	err := stop()
	slept(ctx, time.Duration(f.For))
	err = errors.Join(err, start())
	s.end(noStore, hosts...)
	return err
}

// each does something to the processes that a fault hits. Processes on a host whose member is down already
// are left alone: they end anyway.
func (s *stage) each(f *fault, do func(name string, v *lab.Supervisor) error) error {
	for _, name := range f.Hosts {
		m := s.cluster.Member(name)
		if down, err := isDown(m); err != nil {
			return err
		} else if down {
			continue
		}
		if m.Serf != nil && f.Target != agent {
			if err := do(name, m.Serf); err != nil {
				return fmt.Errorf("%s: serf: %w", name, err)
			}
		}
		if f.Target != serf {
			if err := do(name, m.SBR); err != nil {
				return fmt.Errorf("%s: sbr: %w", name, err)
			}
		}
	}
	return nil
}

// isDown reports whether the agent that runs on the host, or was the last to run there, was downed.
func isDown(m *cluster.Member) (bool, error) {
	p := m.SBR.Process()
	if !p.Alive() {
		return true, nil
	}
	hooks, err := m.Hooks()
	return slices.ContainsFunc(hooks, func(h cluster.Hook) bool {
		return h.Event == "down" && h.At.After(p.Started())
	}), err
}

// killAndRestart ends a process at once and returns when the next one has been started.
func killAndRestart(ctx context.Context, v *lab.Supervisor) error {
	old := v.Process()
	v.SetRestart(true)
	defer v.SetRestart(false)
	old.Kill()
	for v.Process() == old {
		if err := v.Err(); err != nil {
			return err
		}
		if !slept(ctx, 10*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// resume continues whatever stands still.
func (s *stage) resume(first time.Duration) error {
	err := s.thaw(first)
	for _, m := range s.cluster.Members() {
		s.end(stopped, m.Host.Name())
		err = errors.Join(err, m.Resume())
	}
	return err
}

// setRestart says whether what ends on these hosts is started again.
func (s *stage) setRestart(on bool, names ...string) {
	for _, name := range names {
		s.cluster.Member(name).SetRestart(on)
	}
}

// slept waits for d; false: ctx ended first.
func slept(ctx context.Context, d time.Duration) bool { return sleep.For(ctx, d) == nil }

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
)

const (
	// resource is the singleton, and what it writes to.
	resource = "backup"
	// writeEvery is the time between two entries: a gap is measured to within it.
	writeEvery = 10 * time.Millisecond
	// shardCount is how many shards there are; each writes as often.
	shardCount = 8
	shardEvery = 50 * time.Millisecond
	// stopTimeout is how long the program may take to end.
	stopTimeout = 2 * time.Second
)

// addLoad puts a ledger beside the hosts, and what writes to it on them: a program, or shards.
func (s *stage) addLoad(ctx context.Context, p *programs, o *cluster.Options) error {
	var err error
	if s.ledger, err = cluster.StartLedger(ctx, s.lab, filepath.Join(p.ledger, "serve")); err != nil {
		return err
	}
	o.Settings.Lease = cluster.Brief().Lease // so that rounds are short
	if s.kind.shards > 0 {
		o.Settings.Lease["heartbeat-interval"] = "2s" // there are nine leases on one small store
		o.Shards = &cluster.Shards{
			Program: filepath.Join(p.ledger, "shardhost"), Type: "work", Count: s.kind.shards, Guard: s.kind.guard,
			Ledger: s.ledger.URL(), Every: shardEvery,
		}
		s.load = shardLoad{o.Shards}
		return nil
	}
	s.load = singleLoad{}
	o.Singleton = &cluster.Singleton{
		Name: resource, Guard: s.kind.guard, StopTimeout: stopTimeout,
		Env: []string{"LEDGER_URL=" + s.ledger.URL()},
		Command: func(host string) []string {
			return []string{filepath.Join(p.ledger, "write"), "--member", host, "--resource", resource, "--every",
				writeEvery.String()}
		},
		Settings: map[string]any{"lease-retry-interval": "1s"},
	}
	return nil
}

// cutLedger cuts hosts off from the ledger.
func (s *stage) cutLedger(p *plan) error {
	for _, name := range p.Single.NoLedger {
		if err := s.lab.Cut(name, cluster.LedgerHost); err != nil {
			return err
		}
	}
	return nil
}

// depart makes hosts leave.
func (s *stage) depart(ctx context.Context, f *fault) error {
	for _, name := range f.Hosts {
		if err := s.load.leave(ctx, s, name, f.Kind == departure); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// freeze stops everything on hosts, the program and its keeper included.
func (s *stage) freeze(ctx context.Context, f *fault) error {
	for _, name := range f.Hosts {
		m := s.cluster.Member(name)
		if down, err := isDown(m); err != nil {
			return err
		} else if down {
			continue
		}
		still, err := s.lab.Freeze(ctx, name)
		if err != nil {
			return err
		}
		s.begin(stopped, name)
		s.mu.Lock()
		s.frozen[name] = still
		s.mu.Unlock()
	}
	return nil
}

// thaw ends freeze. The program goes on first: nobody says who gets the processor when a machine is
// continued.
func (s *stage) thaw(first time.Duration) error {
	s.mu.Lock()
	frozen := s.frozen
	s.frozen = make(map[string]*lab.Standstill)
	s.mu.Unlock()
	var err error
	for _, still := range frozen {
		err = errors.Join(err, still.Continue("write"))
	}
	if len(frozen) > 0 {
		time.Sleep(first)
	}
	for _, still := range frozen {
		err = errors.Join(err, still.Continue())
	}
	return err
}

// hurt ends processes at once: all on a host, or one.
func (s *stage) hurt(ctx context.Context, f *fault) error {
	for _, name := range f.Hosts {
		m := s.cluster.Member(name)
		switch f.Kind {
		case crash:
			if err := s.cluster.Crash(ctx, name); err != nil {
				return err
			}
		case runKilled:
			m.Run.Process().Kill()
		default:
			if _, err := m.Host.Kill(ctx, "write"); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

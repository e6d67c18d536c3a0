package sharding

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/conduct"
	"github.com/serf-sbr/serf-sbr/internal/leasing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/fence"
	"github.com/serf-sbr/serf-sbr/sharding/host"
)

// start starts the function of a shard.
func (m *Manager) start(e host.Start) {
	m.trustUntil()
	s := &Shard{name: m.cfg.Shards[e.Shard]}
	s.run = &conduct.Run{Of: "shard " + s.name, Number: e.Run, Token: e.Token, State: e.State, From: downing.NameOf(e.From), Until: &m.until}
	if l := m.leases[e.Shard]; l != nil {
		s.run.Holding = l.Lease()
	}
	if err := s.run.Begin(m.ctx); err != nil {
		m.notStarted(e, err)
		return
	}
	m.runs[e.Shard] = s.run
	m.cfg.Logger.Debug("sbr: a shard starts", "type", m.cfg.Type, "shard", s.name, "token", e.Token, "from", s.run.From)
	s.run.Start(func(ctx context.Context) error {
		return m.cfg.Run(context.WithValue(fence.WithToken(ctx, e.Token), shardKey{}, s), s)
	}, func(err error) {
		m.inbox.Post(func() { m.ended(e.Shard, s, err) })
	})
}

// notStarted tells the host that nothing came of a run: this process stood still since it was decided on.
func (m *Manager) notStarted(e host.Start, why error) {
	m.cfg.Logger.Warn("sbr: a shard does not start", "type", m.cfg.Type, "shard", m.cfg.Shards[e.Shard], "token", e.Token, "because", why)
	if l := m.leases[e.Shard]; l != nil {
		l.Doubt(why.Error())
	}
	m.inbox.Post(func() {
		m.tellHost(host.RunEnded{Shard: e.Shard, Run: e.Run, State: e.State, Rest: m.cfg.RestartAfter, Why: why.Error()})
	})
}

// stop asks the function of a shard to end.
func (m *Manager) stop(e host.Stop) {
	if r := m.runs[e.Shard]; r != nil && r.Number == e.Run {
		r.Stop(causes[e.Cause], e.Why)
	}
}

// ended takes in that the function of a shard has returned.
func (m *Manager) ended(shard int, s *Shard, err error) {
	m.runs[shard] = nil
	e := host.RunEnded{Shard: shard, Run: s.run.Number, State: s.run.Left(), Rest: m.cfg.RestartAfter}
	if err != nil {
		e.Why = err.Error()
		m.cfg.Logger.Warn("sbr: the run of a shard has ended", append(conduct.Attributes(err), "type", m.cfg.Type, "shard", s.name)...)
	}
	m.tellHost(e)
}

func (m *Manager) acquire(e host.AcquireLease) {
	l, err := m.lease(e.Shard)
	if err != nil {
		m.inbox.Post(func() { m.tellHost(host.LeaseAnswer{Shard: e.Shard, Attempt: e.Attempt, Why: err.Error()}) })
		return
	}
	l.Acquire(func(a leasing.Answer) {
		m.tellHost(host.LeaseAnswer{Shard: e.Shard, Attempt: e.Attempt, Outcome: a.Outcome, Token: a.Token, Why: a.Why})
	}, func(why string) {
		m.tellHost(host.LeaseLost{Shard: e.Shard, Attempt: e.Attempt, Why: why})
	})
}

func (m *Manager) release(e host.ReleaseLease) {
	done := func() { m.tellHost(host.LeaseReleased(e)) }
	if l := m.leases[e.Shard]; l != nil {
		l.Release(done)
	} else {
		m.inbox.Post(done)
	}
}

// lease returns the lease of a shard, which is opened when it is first needed.
func (m *Manager) lease(shard int) (*shardLease, error) {
	if l := m.leases[shard]; l != nil {
		return l, nil
	}
	name := fmt.Sprintf("%s-shard-%s-%s", m.cluster.Config().System, m.cfg.Type, m.cfg.Shards[shard])
	owner := fmt.Sprintf("%s/%d", m.self, m.origin.UnixMicro()) // one life of one manager
	store, err := m.openStore(name, owner)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrLease, name, err)
	}
	use := fmt.Sprintf("the shard %s of %s of %s", m.cfg.Shards[shard], m.cfg.Type, m.cluster.Config().System)
	l, err := lease.New(store, owner, m.cfg.Lease, lease.Options{Use: use, Logger: m.cfg.Logger})
	if err != nil {
		m.closeStore(store)
		return nil, fmt.Errorf("%w: %s: %w", ErrLease, name, err)
	}
	m.leases[shard] = &shardLease{Leasing: leasing.New(l, m.inbox), store: store}
	return m.leases[shard], nil
}

// closeStore closes what openStore has opened, unless it is the embedder's.
func (m *Manager) closeStore(s lease.Store) {
	if c, ok := s.(io.Closer); ok && m.cfg.Store == nil {
		_ = c.Close() // nothing waits for it any more
	}
}

func (m *Manager) openStore(name, owner string) (lease.Store, error) {
	if m.cfg.Store != nil {
		return m.cfg.Store(name)
	}
	ctx, cancel := context.WithTimeout(m.ctx, openTimeout)
	defer cancel()
	return lease.Open(ctx, m.cfg.UseLease, lease.Spec{System: m.cluster.Config().System, Name: name, Owner: owner, Settings: m.cfg.Lease, Logger: m.cfg.Logger,
		Decode: m.cfg.LeaseDecode})
}

// openTimeout bounds the opening of a store, which need not reach it.
const openTimeout = 5 * time.Second

package sharding

import (
	"context"
	"fmt"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// coordinatorConfig is the singleton that the coordinator runs as.
func (m *Manager) coordinatorConfig() (singleton.Config, error) {
	c := singleton.DefaultConfig()
	c.Name, c.Role, c.Run = coordinatorName(m.cfg.Type), m.cfg.Role, m.coordinate
	c.HandOverRetryInterval, c.NumberOfRetries, c.RemovalMargin = m.cfg.HandOverRetryInterval, m.cfg.NumberOfRetries, m.cfg.RemovalMargin
	c.UseLease, c.LeaseDecode, c.Lease, c.LeaseRetryInterval = m.cfg.UseLease, m.cfg.LeaseDecode, m.cfg.Lease, m.cfg.LeaseRetryInterval
	c.LeaseName = m.cluster.Config().System + "-shards-" + m.cfg.Type
	c.Logger, c.Pause, c.CompactTokens = m.cfg.Logger, m.cfg.Pause, true
	if m.cfg.Store == nil {
		return c, nil
	}
	var err error
	c.Store, err = m.cfg.Store(c.LeaseName)
	if err != nil {
		return c, fmt.Errorf("%w: %s: %w", ErrLease, c.LeaseName, err)
	}
	return c, nil
}

// coordinate is the singleton's function: it lets the loop drive a coordinator until ctx ends. It never begins a second time under one token: numbers of orders would
// repeat.
func (m *Manager) coordinate(ctx context.Context, r *singleton.Run) error {
	resigned := make(chan error, 1)
	gone := make(chan struct{})
	d := m.driver
	if r.Token() < 1 || r.Token() > message.MaxTerm {
		m.cfg.Logger.Error("sbr: the coordinator of shards cannot start: its token is no term", "type", m.cfg.Type, "token", r.Token())
		return singleton.ErrDone
	}
	d.Inbox.Post(func() {
		c := coordinator.New(coordinator.Config{Rules: d.Rules, Term: r.Token(), Allocator: m.alloc, Digest: m.digest,
			AuditInterval: coordinator.DefaultConfig().AuditInterval}, d.Now())
		m.coord, d.Second, m.coordEnd = c, c, func(newer uint64) { resigned <- &singleton.Superseded{Token: newer} }
		m.published = 0
		d.Look()
	})
	var why error
	select {
	case <-ctx.Done():
	case <-m.looped:
	case why = <-resigned: // whoever goes on has a larger token
	}
	d.Inbox.Post(func() {
		m.coord, d.Second, m.coordEnd = nil, nil, nil
		close(gone)
	})
	select {
	case <-gone:
	case <-m.looped:
	}
	return why
}

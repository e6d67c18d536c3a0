package clustertest

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// Member is a Serf node and its provider.
type Member struct {
	Name     string
	Serf     *serf.Serf
	Provider *downing.Provider
	// Store is the member's way to the store of verdicts.
	Store *leasetest.Faulty

	downAt atomic.Pointer[time.Time]
}

// NewMember returns a member that is yet to be started: it has a provider, and neither a node nor an agent.
// change comes after the Options.
func (c *Cluster) NewMember(name string, change ...func(*downing.Config)) *Member {
	c.t.Helper()
	m := &Member{Name: name, Store: c.Store.View(name)}
	cfg := downing.DefaultConfig()
	cfg.System, cfg.Store, cfg.Exit, cfg.Observe, cfg.Logger = "payments", m.Store, func(int) {}, c.observe,
		Logger(name)
	if c.Options.Config != nil {
		c.Options.Config(name, &cfg)
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	m.Provider, err = downing.New(cfg)
	require.NoError(c.t, err)
	m.Provider.OnDown(func(string) { m.downAt.Store(new(time.Now())) })
	c.members[name] = m
	return m
}

// Logger discards, unless SBR_TEST_LOG is set.
func Logger(name string) *slog.Logger {
	if os.Getenv("SBR_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", name)
}

// Down reports whether the member was downed.
func (m *Member) Down() bool {
	select {
	case <-m.Provider.Downed():
		return true
	default:
		return false
	}
}

// DownAt is when the member was told that it is down; the zero time if it is not.
func (m *Member) DownAt() time.Time {
	for m.Down() {
		if at := m.downAt.Load(); at != nil {
			return *at
		}
		time.Sleep(time.Millisecond) // the callback runs just now
	}
	return time.Time{}
}

// Leave ends a member in good order: it leaves before, unless it was downed.
func (m *Member) Leave() error {
	if !m.Down() {
		if err := m.Serf.Leave(); err != nil {
			return err
		}
	}
	if err := m.Serf.Shutdown(); err != nil {
		return err
	}
	return m.Stop()
}

// Stop stops the provider, and waits for that.
func (m *Member) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return m.Provider.Stop(ctx)
}

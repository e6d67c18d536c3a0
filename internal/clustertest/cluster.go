// Package clustertest starts clusters of real Serf nodes with their downing providers, on a network in memory that can be cut. In a bubble of
// testing/synctest it costs no time.
package clustertest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Options change a cluster before it is started. The zero Options is a cluster under lease-majority in which the larger side always wins.
type Options struct {
	// Config changes the configuration of each provider; may be nil.
	Config func(name string, c *downing.Config)
	// Serf changes that of each node; may be nil.
	Serf func(name string, conf *serf.Config)
}

// Cluster is a set of members on one network.
type Cluster struct {
	t       testing.TB
	options Options

	// Net is the network; Store keeps the verdicts.
	Net     *memnet.Network
	Store   *memory.Store
	members map[string]*Member
}

// Member is a Serf node and its provider.
type Member struct {
	Name     string
	Serf     *serf.Serf
	Provider *downing.Provider
	// Store is the member's way to the store of verdicts.
	Store *memory.View
}

// New returns a cluster without members.
func New(t testing.TB, o Options) *Cluster {
	return &Cluster{t: t, options: o, Net: memnet.New(memnet.Config{Latency: time.Millisecond}), Store: memory.NewStore(), members: make(map[string]*Member)}
}

// Virtual runs a test in virtual time, and ends the cluster's members after it.
func Virtual(t *testing.T, o Options, test func(t *testing.T, c *Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := New(t, o)
		defer c.Stop()
		test(t, c)
	})
}

// Logger discards, unless SBR_TEST_LOG is set.
func Logger(name string) *slog.Logger {
	if os.Getenv("SBR_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", name)
}

// Start starts a member and joins it to the others.
func (c *Cluster) Start(name string) *Member {
	c.t.Helper()
	view := c.Store.View(name)
	cfg := downing.DefaultConfig()
	cfg.System, cfg.Store, cfg.Exit, cfg.Logger = "payments", view, func(int) {}, Logger(name)
	cfg.Strategies.LeaseMajority.AcquireLeaseDelayForMinority = 10 * time.Second
	if c.options.Config != nil {
		c.options.Config(name, &cfg)
	}
	p, err := downing.New(cfg)
	require.NoError(c.t, err)
	m := &Member{Name: name, Provider: p, Store: view}
	m.Serf, err = serfnet.Start(c.Net, name, func(conf *serf.Config) {
		if c.options.Serf != nil {
			c.options.Serf(name, conf)
		}
		require.NoError(c.t, p.Prepare(context.Background(), conf))
	})
	require.NoError(c.t, err)
	require.NoError(c.t, p.Start(context.Background(), m.Serf))
	if seeds := c.seeds(name); len(seeds) > 0 {
		_, err = m.Serf.Join(seeds, true)
		require.NoError(c.t, err)
	}
	c.members[name] = m
	return m
}

// seeds are the addresses of the members that run, other than name. One that answers is enough.
func (c *Cluster) seeds(name string) (addrs []string) {
	for other, m := range c.members {
		if other != name && m.Serf.State() == serf.SerfAlive && !m.Down() {
			addrs = append(addrs, other+"/"+m.Serf.Memberlist().LocalNode().Address())
		}
	}
	slices.Sort(addrs)
	return addrs
}

// Name is the name of the i-th member, from 1.
func Name(i int) string { return fmt.Sprintf("n%d", i) }

// Form starts n1 to nN, the oldest first, and waits until all of them are armed and know each other.
func (c *Cluster) Form(n int) {
	c.t.Helper()
	for i := 1; i <= n; i++ {
		c.Start(Name(i))
		time.Sleep(10 * time.Millisecond) // births differ
	}
	c.Eventually(time.Minute, "the cluster does not form", func() bool {
		for _, m := range c.members {
			if p := m.Provider.Peers(); p.State != sbr.StateUp || len(p.List) != n {
				return false
			}
		}
		return true
	})
}

// Member returns the member called name as it was started last.
func (c *Cluster) Member(name string) *Member { return c.members[name] }

// Down reports whether the member was downed.
func (m *Member) Down() bool {
	select {
	case <-m.Provider.Downed():
		return true
	default:
		return false
	}
}

// Eventually waits until ok is true, and fails the test if it is not within that time.
func (c *Cluster) Eventually(within time.Duration, failure string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(c.t, "not within "+within.String(), failure)
		}
	}
}

// Stop ends all members, and lets the background work of Serf run out.
func (c *Cluster) Stop() {
	for _, m := range c.members {
		_ = m.Serf.Shutdown()
	}
	for _, m := range c.members {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		require.NoError(c.t, m.Provider.Stop(ctx))
		cancel()
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

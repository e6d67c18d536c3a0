package downing_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// cluster is a set of real Serf nodes, each with its provider, on a network that can be cut.
type cluster struct {
	t       testing.TB
	net     *memnet.Network
	store   *memory.Store
	config  func(name string, c *downing.Config)
	serf    func(name string, conf *serf.Config) // what the application configures, may be nil
	members map[string]*member
	// prepared sees what Prepare has made of a node's configuration; may be nil.
	prepared func(name string, conf *serf.Config)

	mu  sync.Mutex
	log []downing.Occurrence
}

type member struct {
	serf     *serf.Serf
	provider *downing.Provider
	toldAt   atomic.Pointer[time.Time]
}

// downAt is when the member was told that it is down; the zero time if it is not.
func (m *member) downAt() time.Time {
	for {
		if at := m.toldAt.Load(); at != nil {
			return *at
		}
		select {
		case <-m.provider.Downed():
			time.Sleep(time.Millisecond) // the callback runs just now
		default:
			return time.Time{}
		}
	}
}

// majorityFirst makes the smaller side wait long enough that the larger one always asks first, for tests that need to know who wins.
func majorityFirst(_ string, c *downing.Config) {
	c.Strategies.LeaseMajority.AcquireLeaseDelayForMinority = 10 * time.Second
}

func newCluster(t testing.TB, config func(name string, c *downing.Config)) *cluster {
	return &cluster{t: t, net: memnet.New(memnet.Config{Latency: time.Millisecond}), store: memory.NewStore(), config: config, members: make(map[string]*member)}
}

func (c *cluster) observe(o downing.Occurrence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, o)
}

// start starts a node and joins it to the others.
func (c *cluster) start(name string, join ...string) *member {
	c.t.Helper()
	cfg := downing.DefaultConfig()
	cfg.System = "payments"
	cfg.Store = c.store.View(name)
	cfg.Exit = func(int) {}
	cfg.Observe = c.observe
	cfg.Logger = slog.New(slog.DiscardHandler)
	if os.Getenv("SBR_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", name)
	}
	if c.config != nil {
		c.config(name, &cfg)
	}
	p, err := downing.New(cfg)
	require.NoError(c.t, err)
	m := &member{provider: p}
	m.serf, err = serfnet.Start(c.net, name, func(conf *serf.Config) {
		if c.serf != nil {
			c.serf(name, conf)
		}
		require.NoError(c.t, p.Prepare(context.Background(), conf))
		if c.prepared != nil {
			c.prepared(name, conf)
		}
	})
	require.NoError(c.t, err)
	p.OnDown(func(string) { m.toldAt.Store(new(time.Now())) })
	require.NoError(c.t, p.Start(context.Background(), m.serf))
	if len(join) > 0 {
		_, err = m.serf.Join(c.addresses(join), true)
		require.NoError(c.t, err)
	}
	c.members[name] = m
	return m
}

func (c *cluster) addresses(names []string) (addrs []string) {
	for _, n := range names {
		mlc := c.members[n].serf.Memberlist().LocalNode()
		addrs = append(addrs, n+"/"+mlc.Address())
	}
	return addrs
}

// startAll starts n1..nN and waits until they are armed.
func (c *cluster) startAll(n int) (names []string) {
	c.t.Helper()
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("n%d", i)
		names = append(names, name)
		if i == 1 {
			c.start(name)
		} else {
			c.start(name, "n1")
		}
	}
	c.eventually(time.Minute, func() bool {
		for _, m := range c.members {
			if s := m.provider.Status(); s.State != "up" || len(s.Members) != n {
				return false
			}
		}
		return true
	}, "the cluster does not form")
	return names
}

func (c *cluster) eventually(within time.Duration, ok func() bool, format string, args ...any) {
	c.t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			c.dump()
			require.FailNowf(c.t, "not in time", format, args...)
		}
	}
}

func (c *cluster) down(name string) bool {
	select {
	case <-c.members[name].provider.Downed():
		return true
	default:
		return false
	}
}

func (c *cluster) up() (names []string) {
	for name := range c.members {
		if !c.down(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// occurred lists what happened to a member, in order.
func (c *cluster) occurred(name string) (log []downing.Occurrence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.log {
		if o.Member == name {
			log = append(log, o)
		}
	}
	return log
}

func (c *cluster) dump() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.log {
		c.t.Logf("%s %-4s %-22s %s", o.At.Format("04:05.000"), o.Member, o.Kind, o.Text)
	}
}

// stop ends everything and lets Serf's background work run out. It is for virtual time.
func (c *cluster) stop() {
	c.shutdown()
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

func (c *cluster) shutdown() {
	for _, m := range c.members {
		_ = m.serf.Shutdown()
	}
	for _, m := range c.members {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		require.NoError(c.t, m.provider.Stop(ctx))
		cancel()
	}
}

// startPlain starts a Serf node without a provider and joins it.
func startPlain(t testing.TB, c *cluster, name string) *serf.Serf {
	t.Helper()
	s, err := serfnet.Start(c.net, name, nil)
	require.NoError(t, err)
	_, err = s.Join(c.addresses([]string{"n1"}), true)
	require.NoError(t, err)
	return s
}

// gates make members stand still, each on its own.
type gates struct {
	mu     sync.Mutex
	closed map[string]chan struct{}
}

func (g *gates) config(name string, c *downing.Config) {
	majorityFirst(name, c)
	c.Pause = func() {
		g.mu.Lock()
		ch := g.closed[name]
		g.mu.Unlock()
		if ch != nil {
			<-ch
		}
	}
}

func (g *gates) close(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(map[string]chan struct{})
	}
	if g.closed[name] == nil {
		g.closed[name] = make(chan struct{})
	}
}

func (g *gates) open(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ch := g.closed[name]; ch != nil {
		close(ch)
		delete(g.closed, name)
	}
}

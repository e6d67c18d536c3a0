// Package clustertest starts clusters of real Serf nodes with their downing providers, on a network in memory
// that can be cut. In a bubble of testing/synctest it costs no time.
package clustertest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Options change a cluster. The zero Options is a cluster as the defaults make it.
type Options struct {
	// Config changes the configuration of each provider; may be nil.
	Config func(name string, c *downing.Config)
	// Serf changes that of each node; may be nil.
	Serf func(name string, conf *serf.Config)
	// Prepared sees what the provider has made of a node's configuration; may be nil.
	Prepared func(name string, conf *serf.Config)
}

// MajorityFirst makes the smaller side wait long enough that the larger one always asks first, for tests that
// need to know who wins.
func MajorityFirst(_ string, c *downing.Config) {
	c.Strategies.LeaseMajority.AcquireLeaseDelayForMinority = 10 * time.Second
}

// Quick is a resolver that decides within seconds, for the larger side.
func Quick(name string, c *downing.Config) {
	MajorityFirst(name, c)
	c.Resolver.StableAfter = 5 * time.Second
	c.Lease.HeartbeatTimeout, c.Lease.HeartbeatInterval, c.Lease.OperationTimeout = 12*time.Second, time.Second,
		time.Second
}

// Cluster is a set of members on one network.
type Cluster struct {
	t testing.TB
	// Options hold for what is started from now on.
	Options Options

	// Net is the network; Store keeps the verdicts.
	Net     *memnet.Network
	Store   *leasetest.Memory
	members map[string]*Member
	nodes   []*serf.Serf // those without a provider

	mu  sync.Mutex
	log []downing.Occurrence
}

// New returns a cluster without members.
func New(t testing.TB, o Options) *Cluster {
	return &Cluster{t: t, Options: o, Net: memnet.New(memnet.Config{Latency: time.Millisecond}),
		Store: leasetest.NewMemory(), members: make(map[string]*Member)}
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

// T is the test that the cluster is for.
func (c *Cluster) T() testing.TB { return c.t }

// Start starts a member and joins it to all others that run.
func (c *Cluster) Start(name string) *Member {
	c.t.Helper()
	var running []string
	for _, m := range c.Members() {
		if m.Name != name && m.Serf != nil && m.Serf.State() == serf.SerfAlive && !m.Down() {
			running = append(running, m.Name)
		}
	}
	return c.Boot(name, running...)
}

// Boot starts a member and joins it to those named.
func (c *Cluster) Boot(name string, join ...string) *Member {
	c.t.Helper()
	m := c.NewMember(name)
	var err error
	m.Serf, err = serfnet.Start(c.Net, name, func(conf *serf.Config) {
		if c.Options.Serf != nil {
			c.Options.Serf(name, conf)
		}
		require.NoError(c.t, m.Provider.Prepare(context.Background(), conf))
		if c.Options.Prepared != nil {
			c.Options.Prepared(name, conf)
		}
	})
	require.NoError(c.t, err)
	require.NoError(c.t, m.Provider.Start(context.Background(), m.Serf))
	require.NoError(c.t, c.Join(m.Serf, join...))
	return m
}

// Node starts a Serf node without a provider, which is no member. Change may be nil; the cluster's Options do
// not hold.
func (c *Cluster) Node(name string, change func(conf *serf.Config)) *serf.Serf {
	c.t.Helper()
	node, err := serfnet.Start(c.Net, name, change)
	require.NoError(c.t, err)
	c.nodes = append(c.nodes, node)
	return node
}

// Join joins a node to members. One answer is enough; without members it does nothing.
func (c *Cluster) Join(node *serf.Serf, members ...string) error {
	if len(members) == 0 {
		return nil
	}
	addrs := make([]string, len(members))
	for i, name := range members {
		addrs[i] = name + "/" + c.members[name].Serf.Memberlist().LocalNode().Address()
	}
	_, err := node.Join(addrs, true)
	return err
}

// Name is the name of the i-th member, from 1.
func Name(i int) string { return fmt.Sprintf("n%d", i) }

// Names are the names of the first n members.
func Names(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = Name(i + 1)
	}
	return names
}

// Form starts n1 to nN, the oldest first, and waits until the cluster is whole.
func (c *Cluster) Form(n int) []string {
	c.t.Helper()
	names := Names(n)
	for i, name := range names {
		c.Boot(name, names[:i]...)        // by gossip alone some arm before they hear of all
		time.Sleep(10 * time.Millisecond) // births differ
	}
	c.Whole(n)
	return names
}

// Whole waits until every member that is not down is armed and lists n members.
func (c *Cluster) Whole(n int) {
	c.t.Helper()
	c.Eventually(2*time.Minute, "the cluster is not whole", func() bool {
		for _, m := range c.Members() {
			if p := m.Provider.Peers(); !m.Down() && (p.State != sbr.StateUp || len(p.List) != n) {
				return false
			}
		}
		return true
	})
}

// Member returns the member called name as it was started last; nil if it never was.
func (c *Cluster) Member(name string) *Member { return c.members[name] }

// Members are all that were started, each as it was started last, sorted by name.
func (c *Cluster) Members() []*Member {
	return slices.SortedFunc(maps.Values(c.members), func(a, b *Member) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// Up are the names of the members that were not downed, sorted.
func (c *Cluster) Up() (names []string) {
	for _, m := range c.Members() {
		if !m.Down() {
			names = append(names, m.Name)
		}
	}
	return names
}

// Eventually waits until ok is true. If it is not within that time, it fails the test, and logs what has
// happened to the members.
func (c *Cluster) Eventually(within time.Duration, failure string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			c.dump()
			require.FailNow(c.t, "not within "+within.String(), failure)
		}
	}
}

// Stop ends all members, and lets the background work of Serf run out. It is for virtual time.
func (c *Cluster) Stop() {
	c.Shutdown()
	Drain()
}

// Drain lets the background work of Serf nodes that were shut down run out, in virtual time.
func Drain() {
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

// Shutdown ends all members and nodes.
func (c *Cluster) Shutdown() {
	for _, node := range c.nodes {
		_ = node.Shutdown()
	}
	for _, m := range c.members {
		if m.Serf != nil {
			_ = m.Serf.Shutdown()
		}
	}
	for _, m := range c.members {
		require.NoError(c.t, m.Stop())
	}
}

func (c *Cluster) observe(o downing.Occurrence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, o)
}

// Occurred is what has happened to a member so far, in order; without a name, to all of them.
func (c *Cluster) Occurred(name string) []downing.Occurrence {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.log), func(o downing.Occurrence) bool {
		return name != "" && o.Member != name
	})
}

func (c *Cluster) dump() {
	c.t.Helper()
	for _, o := range c.Occurred("") {
		c.t.Logf("%s %-4s %-22s %s", o.At.Format("04:05.000"), o.Member, o.Kind, o.Text)
	}
}

// Times are durations that were measured, in any order.
type Times []time.Duration

// At is the time that a share of them, of 0 to 1, does not exceed. Without any it is zero.
func (x Times) At(share float64) time.Duration {
	if len(x) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(x))
	return sorted[min(int(share*float64(len(x))), len(x)-1)].Round(100 * time.Microsecond)
}

func (x Times) String() string {
	return fmt.Sprintf("%d: p50 %v, p99 %v, max %v", len(x), x.At(0.5), x.At(0.99), x.At(1))
}

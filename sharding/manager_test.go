package sharding_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// register is who runs which shard, at every moment.
type register struct {
	mu      sync.Mutex
	running map[string]string // by shard
	tokens  map[string]uint64
	broken  []string
	starts  map[string]int // by shard
	stopped map[string]time.Time
	gaps    []time.Duration
	states  map[string]string
}

func (r *register) begin(member string, s *sharding.Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.running[s.Name()]; other != "" {
		r.broken = append(r.broken, fmt.Sprintf("%s: starts on %s while it runs on %s", s.Name(), member, other))
	}
	if s.Token() <= r.tokens[s.Name()] {
		r.broken = append(r.broken, fmt.Sprintf("%s: token %d after %d", s.Name(), s.Token(), r.tokens[s.Name()]))
	}
	r.running[s.Name()], r.tokens[s.Name()] = member, s.Token()
	r.starts[s.Name()]++
	r.states[s.Name()] = string(s.State())
	if at, ok := r.stopped[s.Name()]; ok {
		r.gaps = append(r.gaps, time.Since(at))
	}
}

func (r *register) end(s *sharding.Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, s.Name())
	r.stopped[s.Name()] = time.Now()
}

// on counts the shards of each member.
func (r *register) on() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	on := make(map[string]int)
	for _, member := range r.running {
		on[member]++
	}
	return on
}

// of is where a shard runs, and the token of its newest run.
func (r *register) of(shard string) (member string, token uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running[shard], r.tokens[shard]
}

// newest are the largest tokens of runs that have begun, by shard.
func (r *register) newest() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.tokens)
}

func (r *register) all() (n int) {
	for _, k := range r.on() {
		n += k
	}
	return n
}

// crew runs shards of the type "orders" on the members of a cluster.
type crew struct {
	*clustertest.Cluster
	t        testing.TB
	shards   int
	leases   map[string]*leasetest.Memory // nil: none
	register register
	managers map[string]*sharding.Manager
	change   func(name string, c *sharding.Config)
}

func newCrew(t testing.TB, c *clustertest.Cluster, shards int) *crew {
	return &crew{Cluster: c, t: t, shards: shards, managers: make(map[string]*sharding.Manager),
		register: register{running: make(map[string]string),
			tokens: make(map[string]uint64), starts: make(map[string]int), stopped: make(map[string]time.Time),
			states: make(map[string]string)}}
}

func (c *crew) start(name string) {
	c.t.Helper()
	cfg := sharding.DefaultConfig()
	cfg.Type, cfg.Shards, cfg.Logger = "orders", sharding.Numbered(c.shards), clustertest.Logger(name)
	cfg.Endpoint = "http://" + name
	cfg.Run = func(ctx context.Context, s *sharding.Shard) error {
		c.register.begin(name, s)
		<-ctx.Done()
		if err := s.HandOver([]byte(string(s.State()) + "+")); err != nil {
			return err
		}
		c.register.end(s)
		return nil
	}
	if c.leases != nil {
		cfg.Store = func(lease string) (lease.Store, error) {
			if c.leases[lease] == nil {
				c.leases[lease] = leasetest.NewMemory()
			}
			return c.leases[lease].View(name), nil
		}
	}
	if c.change != nil {
		c.change(name, &cfg)
	}
	m, err := sharding.New(c.Member(name).Provider, cfg)
	require.NoError(c.t, err)
	require.NoError(c.t, m.Start(context.Background()))
	c.managers[name] = m
}

// views are a member's ways to the stores of the shards' leases.
func (c *crew) views(name string) (views []*leasetest.Faulty) {
	for _, s := range c.leases {
		views = append(views, s.View(name))
	}
	return views
}

func (c *crew) startAll(n int) {
	c.t.Helper()
	c.Form(n)
	for i := 1; i <= n; i++ {
		c.start(clustertest.Name(i))
	}
}

func (c *crew) stop() {
	for _, m := range c.managers {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		require.NoError(c.t, m.Stop(ctx))
		cancel()
	}
}

// knows reports whether a member coordinates and knows that all shards run.
func (c *crew) knows(name string) bool {
	t := c.managers[name].Table()
	return t.Recovered && !slices.ContainsFunc(t.Shards,
		func(r sharding.Row) bool { return r.State != sharding.Running })
}

// dump says where everybody stands, when a test has failed.
func (c *crew) dump() {
	if !c.t.Failed() {
		return
	}
	c.t.Logf("%v, broken %v", c.register.on(), c.register.broken)
	for name, m := range c.managers {
		l := m.Table()
		c.t.Logf("%s: down %v, recovered %v, silent %v", name, c.Member(name).Down(), l.Recovered, l.Silent)
		for _, r := range l.Shards {
			if r.State != sharding.Running {
				c.t.Logf("  %+v", r)
			}
		}
	}
}

func (c *crew) settles(within time.Duration) {
	c.t.Helper()
	c.Eventually(within, "not all shards run", func() bool { return c.register.all() == c.shards })
}

func eachWay(t *testing.T, n, shards int, test func(t *testing.T, c *crew)) {
	for _, way := range []string{"without leases", "with leases"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick},
				func(t *testing.T, cl *clustertest.Cluster) {
					c := newCrew(t, cl, shards)
					if way == "with leases" {
						c.leases = make(map[string]*leasetest.Memory)
					}
					c.startAll(n)
					defer c.stop()
					defer c.dump()
					c.settles(time.Minute)
					test(t, c)
					require.Empty(t, c.register.broken)
				})
		})
	}
}

func TestManager_EveryShardRunsOnce(t *testing.T) {
	eachWay(t, 3, 24, func(t *testing.T, c *crew) {
		time.Sleep(time.Minute)
		require.Equal(t, 24, c.register.all())
		for member, n := range c.register.on() {
			require.LessOrEqual(t, n, 10, member)
		}
		for shard, member := range c.register.running {
			for _, m := range c.managers {
				o, ok := m.Owner(shard)
				require.True(t, ok)
				require.Equal(t, member, o.Name)
			}
		}
		require.True(t, c.knows("n1"))
		require.False(t, c.managers["n2"].Table().Recovered)
		_, ok := c.managers["n1"].Owner("no such shard")
		require.False(t, ok)
	})
}

func TestManager_TheCoordinatorLeaves(t *testing.T) {
	eachWay(t, 3, 12, func(t *testing.T, c *crew) {
		time.Sleep(10 * time.Second)
		require.NoError(t, c.managers["n1"].Stop(t.Context()))
		c.settles(10 * time.Second)
		require.NoError(t, c.Member("n1").Serf.Leave())
		c.Eventually(time.Minute, "nobody coordinates", func() bool { return c.knows("n2") })
	})
}

// Where everybody leaves, nobody waits for somebody else to ask for the shards: it takes three seconds at
// most.
func TestManager_TheWholeClusterStopsAtOnce(t *testing.T) {
	eachWay(t, 5, 24, func(t *testing.T, c *crew) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var stops sync.WaitGroup
		for name, m := range c.managers {
			stops.Go(func() { assert.NoError(t, m.Stop(ctx), name) })
		}
		stops.Wait()
		require.Zero(t, c.register.all())
	})
}

func TestManager_ShardsOfTheLosingSideMoveAfterTheMargin(t *testing.T) {
	for _, lost := range []string{"n1", "n4"} {
		t.Run(lost, func(t *testing.T) {
			eachWay(t, 4, 24, func(t *testing.T, c *crew) {
				rest := []string{"n1", "n2", "n3", "n4"}
				for i, name := range rest {
					if name == lost {
						rest = append(rest[:i:i], rest[i+1:]...)
						break
					}
				}
				cut := time.Now()
				require.NoError(t, c.Net.Partition([]string{lost}, rest))
				c.Eventually(2*time.Minute, "the losers' shards do not run again", func() bool {
					return c.register.all() == 24 && c.register.on()[lost] == 0
				})
				t.Logf("all run again after %v", time.Since(cut))
			})
		})
	}
}

// A member that lacks the role has a manager all the same, to know who runs what. It keeps nobody waiting,
// and knows.
func TestManager_AMemberWithoutTheRoleKeepsNobodyWaiting(t *testing.T) {
	workers := func(name string, conf *serf.Config) {
		if name != clustertest.Name(1) {
			conf.Tags[downing.TagRole] = "worker"
		}
	}
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick, Serf: workers},
		func(t *testing.T, cl *clustertest.Cluster) {
			c := newCrew(t, cl, 4)
			c.change = func(_ string, cfg *sharding.Config) { cfg.Role = "worker" }
			c.startAll(3)
			defer c.stop()
			time.Sleep(time.Minute)
			require.Equal(t, 4, c.register.all())
			require.Zero(t, c.register.on()[clustertest.Name(1)])
			for _, o := range c.managers[clustertest.Name(1)].Owners() {
				require.NotEmpty(t, o.Name, o.Shard)
			}
		})
}

// With one record for several leases no shard would run, and a crash would never be resolved: nothing starts.
func TestStart_RefusesARecordThatServesAnotherUse(t *testing.T) {
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick},
		func(t *testing.T, c *clustertest.Cluster) {
			c.Form(1)
			own, shards := leasetest.NewMemory(), leasetest.NewMemory()
			for want, store := range map[string]func(name string) *leasetest.Memory{
				"the resolver of payments": func(string) *leasetest.Memory { return c.Store },
				"the shard 0 of orders of payments, and cannot be that of the shard 1 of orders of payments": func(string) *leasetest.Memory { return own },
				"the shard 0 of orders of payments, and cannot be that of the singleton shards.orders of payments": func(name string) *leasetest.Memory {
					if name == "payments-shard-orders-1" {
						return shards
					}
					return own
				},
			} {
				cfg := sharding.DefaultConfig()
				cfg.Type, cfg.Shards, cfg.Logger = "orders", sharding.Numbered(64), clustertest.Logger("n1")
				cfg.Run = func(context.Context, *sharding.Shard) error { return nil }
				cfg.Store = func(name string) (lease.Store, error) { return store(name).View("n1"), nil }
				m, err := sharding.New(c.Member("n1").Provider, cfg)
				require.NoError(t, err)
				err = m.Start(t.Context())
				require.ErrorIs(t, err, lease.ErrInUse)
				require.ErrorContains(t, err, want)
				<-m.Done()
			}
		})
}

// A provider that has just been started has not looked at its members yet: the manager waits for that.
func TestStart_RightAfterTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, clustertest.Options{Config: clustertest.Quick})
		r := newCrew(t, c, 2)
		defer c.Stop()
		defer r.stop()
		c.Start("n1")
		require.Zero(t, c.Member("n1").Provider.Peers())
		r.start("n1")
	})
}

// A provider that is not started never looks.
func TestStart_WithoutAProviderThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := sharding.New(provider(t), sharding.Config{Type: "orders", Shards: []string{"a"},
			Run: func(context.Context, *sharding.Shard) error { return nil }})
		require.NoError(t, err)
		require.ErrorIs(t, m.Start(t.Context()), downing.ErrNotMember)
	})
}

// provider is a provider that was not started.
func provider(t *testing.T) *downing.Provider {
	cfg := downing.DefaultConfig()
	cfg.System, cfg.Strategy = "payments", "keep-majority"
	p, err := downing.New(cfg)
	require.NoError(t, err)
	return p
}

// load lets each of the twelve shards of a round write to a resource of its own, every 100 ms.
func load(r *clustertest.Round, withLeases bool) clustertest.Load {
	c := newCrew(r.T(), r.Cluster, 12)
	if withLeases {
		c.leases = make(map[string]*leasetest.Memory)
	}
	c.change = func(name string, cfg *sharding.Config) {
		cfg.Run = func(ctx context.Context, s *sharding.Shard) error {
			return r.Work(ctx, name, s.Name(), 100*time.Millisecond, s)
		}
		cfg.Pause = func() { r.Trouble.Pass(name) }
	}
	return clustertest.Load{
		Start: c.start,
		Stop:  func(ctx context.Context, name string) error { return c.managers[name].Stop(ctx) },
		// The coordinator knows that every shard runs.
		Settled: func() bool {
			for name := range c.managers {
				if c.knows(name) && !r.Trouble.Paused(name) && !r.Member(name).Down() {
					return true
				}
			}
			return false
		},
		Favourite: func() string {
			for _, name := range r.Trouble.Attending() {
				if c.managers[name].Table().Recovered {
					return name
				}
			}
			return ""
		},
		Stores: c.views,
		Dump:   c.dump,
	}
}

func TestRounds_TheResourcesSeeTokensInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("plays for long: run without -short")
	}
	for _, way := range []string{"without leases", "with leases"} {
		t.Run(way, func(t *testing.T) {
			clustertest.PlayRounds(t, 2,
				func(r *clustertest.Round) clustertest.Load { return load(r, way == "with leases") })
		})
	}
}

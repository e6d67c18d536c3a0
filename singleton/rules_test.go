package singleton_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/fence"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// with runs a test on a formed cluster of n members, with one configuration of the singleton.
func with(t *testing.T, n int, change func(name string, c *singleton.Config),
	test func(t *testing.T, c *crew)) {
	t.Helper()
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick},
		func(t *testing.T, cl *clustertest.Cluster) {
			c := newCrew(t, cl, change)
			c.startAll(n)
			defer c.stop()
			test(t, c)
		})
}

// A singleton whose record is that of the resolver would find it held, and run nowhere.
func TestStart_RefusesARecordThatServesAnotherUse(t *testing.T) {
	with(t, 1, nil, func(t *testing.T, c *crew) {
		cfg := singleton.DefaultConfig()
		cfg.Name, cfg.Run, cfg.Store = "mailer", func(context.Context, *singleton.Run) error { return nil },
			c.Store.View("n1")
		m, err := singleton.New(c.Member("n1").Provider, cfg)
		require.NoError(t, err)
		err = m.Start(t.Context())
		require.ErrorIs(t, err, singleton.ErrLease)
		require.ErrorIs(t, err, lease.ErrInUse)
		require.ErrorContains(t, err,
			"that of the resolver of payments, and cannot be that of the singleton mailer of payments")
	})
}

func TestLeaseLost_StopsThenAcquiresThenStarts(t *testing.T) {
	store := leasetest.NewMemory()
	with(t, 1, func(name string, c *singleton.Config) { c.Store = store.View(name) },
		func(t *testing.T, c *crew) {
			c.runsOn("n1", 30*time.Second)
			first := c.diary.last("starts")
			operator, err := lease.New(store.View("operator"), "operator", c.Member("n1").Provider.Config().Lease,
				lease.Options{})
			require.NoError(t, err)
			defer operator.Close()
			require.Equal(t, sbr.Granted,
				linear.AnswerOf(operator.Acquire(t.Context(), lease.Proposal{Override: true})).Kind)
			c.Eventually(10*time.Second, "it goes on without the lease",
				func() bool { return c.diary.last("ends").token == first.token })
			require.ErrorIs(t, c.diary.last("told").cause, singleton.ErrLeaseLost)
			time.Sleep(time.Minute)
			require.Equal(t, first, c.diary.last("starts"), "it must not start while another one holds the lease")
			_ = operator.Release(t.Context())
			c.runsOn("n1", 10*time.Second)
			require.Greater(t, c.diary.last("starts").token, first.token)
			require.Empty(t, c.diary.last("starts").state,
				"whoever held the lease meanwhile may have run it: its own state is old")
		})
}

// Downed, the function is told before Serf has even begun to leave.
func TestDowned_StopsBeforeAnythingElse(t *testing.T) {
	with(t, 3, nil, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
		<-c.Member("n1").Provider.Downed()
		downed := time.Now()
		c.Eventually(time.Minute, "it was not told", func() bool { return c.diary.last("ends").name == "n1" })
		require.Zero(t, c.diary.last("told").at.Sub(downed))
		require.ErrorIs(t, c.diary.last("told").cause, singleton.ErrDowned)
		require.NotEqual(t, serf.SerfShutdown, c.Member("n1").Serf.State())
	})
}

// Without a lease a member whose membership is not confirmed stops by itself, whatever its resolver does:
// here the store is away, and the policy is to wait.
func TestUnsure_StopsBeforeOthersMayStart(t *testing.T) {
	clustertest.Virtual(t, clustertest.Options{Config: func(name string, c *downing.Config) {
		clustertest.Quick(name, c)
		c.Resolver.WhenLeaseUnknown = 1 // suspend
	}}, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, nil)
		c.startAll(3)
		defer c.stop()
		c.runsOn("n1", 30*time.Second)
		c.Member("n1").Store.SetUnavailable(true)
		cut := time.Now()
		require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
		c.runsOn("n2", time.Minute)
		told := c.diary.last("told")
		require.ErrorIs(t, told.cause, singleton.ErrUnsure)
		t.Logf("told after %v, runs elsewhere after %v", told.at.Sub(cut), c.diary.last("starts").at.Sub(cut))
		c.diary.tokensGrow(t)
	})
}

func TestRun_IsRunAgainWithinBoundsUntilItIsDone(t *testing.T) {
	var times []time.Time
	ends := []func() error{
		func() error { return errors.New("disk full") },
		func() error { panic("a bug") },
		func() error { runtime.Goexit(); return nil },
		func() error { return singleton.ErrDone },
	}
	with(t, 2, func(name string, c *singleton.Config) {
		run := c.Run
		c.Run = func(ctx context.Context, r *singleton.Run) error {
			if name == "n2" {
				return run(ctx, r)
			}
			times = append(times, time.Now())
			return ends[len(times)-1]()
		}
	}, func(t *testing.T, c *crew) {
		c.runsOn("n2", time.Minute)
		require.Len(t, times, len(ends))
		var pauses []time.Duration
		for i := range times[1:] {
			pauses = append(pauses, times[i+1].Sub(times[i]))
		}
		require.Equal(t, []time.Duration{time.Second, 1500 * time.Millisecond, 2250 * time.Millisecond}, pauses)
		<-c.managers["n1"].Done()
		require.True(t, c.managers["n1"].Status().Resigned)
	})
}

func TestRole_OthersNeverRunItAndStillLocateIt(t *testing.T) {
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick,
		Serf: func(name string, conf *serf.Config) {
			if name == "n2" {
				conf.Tags = map[string]string{downing.TagRole: "worker"}
			}
		}}, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, func(name string, cfg *singleton.Config) { cfg.Role, cfg.Endpoint = "worker", "http://"+name+":80" })
		c.startAll(3)
		defer c.stop()
		c.runsOn("n2", 30*time.Second)
		for _, m := range c.managers {
			at, err := m.Locator().Wait(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, "n2", at.Name)
			require.Equal(t, "http://n2:80", at.Endpoint)
			require.NotZero(t, at.Token)
		}
	})
}

func TestLocator_FollowsTheSingleton(t *testing.T) {
	with(t, 3, nil, func(t *testing.T, c *crew) {
		ctx, cancel := context.WithCancel(t.Context())
		changes := c.managers["n3"].Locator().Changes(ctx)
		var seen []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for at := range changes {
				seen = append(seen, at.Name)
			}
		}()
		c.runsOn("n1", 30*time.Second)
		time.Sleep(time.Second)
		require.NoError(t, c.managers["n1"].Stop(t.Context()))
		c.runsOn("n2", 30*time.Second)
		time.Sleep(time.Second)
		late, err := singleton.NewLocator(c.Member("n1").Provider, "backup", nil)
		require.NoError(t, err, "a member that runs no manager any more can still ask")
		at, err := late.Wait(ctx, 0)
		require.NoError(t, err)
		require.Equal(t, "n2", at.Name)
		late.Close()
		cancel()
		<-done
		require.Equal(t, "n1 n2", strings.Join(strings.Fields(strings.Join(seen, " ")), " "))
	})
}

func TestLeaders_TheOldestThatStays(t *testing.T) {
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick,
		Serf: func(name string, conf *serf.Config) {
			if name != "n1" {
				conf.Tags = map[string]string{downing.TagRole: "worker"}
			}
		}}, func(t *testing.T, c *clustertest.Cluster) {
		c.Form(3)
		ctx, cancel := context.WithCancel(t.Context())
		all := singleton.Leaders(ctx, c.Member("n3").Provider)
		workers := singleton.RoleLeaders(ctx, c.Member("n3").Provider, "worker")
		require.Equal(t, "n1", (<-all).Name)
		first := <-workers
		require.Equal(t, "n2", first.Name)
		require.Equal(t, "worker", first.Role)
		require.NoError(t, c.Member("n1").Serf.Leave())
		require.Equal(t, "n2", (<-all).Name)
		require.NoError(t, c.Member("n2").Serf.Leave())
		require.Equal(t, "n3", (<-workers).Name)
		cancel()
		for range all {
		}
		_, open := <-workers
		require.False(t, open)
	})
}

func TestRun_CarriesItsTokenAndKnowsWhetherItMayWork(t *testing.T) {
	runs := make(chan *singleton.Run, 1)
	with(t, 1, func(_ string, c *singleton.Config) {
		c.Run = func(ctx context.Context, r *singleton.Run) error {
			token, ok := fence.FromContext(ctx)
			require.True(t, ok)
			require.Equal(t, r.Token(), token)
			same, ok := singleton.FromContext(ctx)
			require.True(t, ok)
			require.Same(t, r, same)
			require.NoError(t, r.Check())
			require.ErrorContains(t, r.HandOver(make([]byte, singleton.MaxState+1)),
				"513 bytes of state cannot be handed over, only 512")
			runs <- r
			<-ctx.Done()
			err := r.Check()
			require.ErrorIs(t, err, singleton.ErrNotRunning)
			require.ErrorIs(t, err, singleton.ErrResigned)
			return nil
		}
	}, func(t *testing.T, c *crew) {
		run := <-runs
		synctest.Wait()
		require.Equal(t, run.Token(), c.managers["n1"].Status().Token)
		require.ErrorIs(t, c.managers["n1"].Start(t.Context()), singleton.ErrStarted)
	})
}

func TestConfig_EveryProblemAtOnce(t *testing.T) {
	err := singleton.Config{Name: "no spaces please", Endpoint: strings.Repeat("x", 300), RemovalMargin: -1,
		NumberOfRetries: -1, UseLease: "kubernetes",
		Store: leasetest.NewMemory().View("n1"), Lease: lease.Settings{HeartbeatTimeout: -1}}.Validate()
	for _, problem := range []string{"the name", "Run is required", "300 bytes", "removal-margin is -1ns",
		"number-of-retries is -1", "use-lease and Store are both set", "heartbeat-timeout is -1ns"} {
		require.ErrorContains(t, err, problem)
	}
	require.NoError(t, func() error {
		c := singleton.DefaultConfig()
		c.Name, c.Run = "backup", func(context.Context, *singleton.Run) error { return nil }
		return c.Validate()
	}())
}

// Every member leaves and comes back, the youngest first. The singleton moves once, and nothing is waited
// for.
func TestRollingUpdate_MovesOnceWithoutAMargin(t *testing.T) {
	eachWay(t, 4, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		for _, name := range []string{"n4", "n3", "n2", "n1"} {
			require.NoError(t, c.managers[name].Stop(t.Context()))
			m := c.Member(name)
			require.NoError(t, m.Serf.Leave())
			require.NoError(t, m.Serf.Shutdown())
			require.NoError(t, m.Provider.Stop(t.Context()))
			c.Start(name)
			c.Eventually(time.Minute, name+" is not admitted",
				func() bool { return c.Member(name).Provider.Peers().State == sbr.StateUp })
			c.start(name)
		}
		c.runsOn("n4", time.Minute)
		gap := c.diary.last("starts").at.Sub(c.diary.last("ends").at)
		t.Logf("nothing ran for %v", gap)
		require.LessOrEqual(t, gap, 200*time.Millisecond)
		require.Equal(t, 2, c.diary.count("starts"))
		c.diary.tokensGrow(t)
	})
}

// The process of a downed member lives on, within its grace, until the function has returned: then its lease
// is free.
func TestDowned_TheProcessWaitsForTheEnd(t *testing.T) {
	store := leasetest.NewMemory()
	with(t, 3, func(name string, c *singleton.Config) {
		c.Store = store.View(name)
		run := c.Run
		c.Run = func(ctx context.Context, r *singleton.Run) error {
			defer time.Sleep(7 * time.Second) // it takes its time
			return run(ctx, r)
		}
	}, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
		<-c.Member("n1").Provider.Downed()
		downed := time.Now()
		<-c.Member("n1").Provider.Done()
		require.GreaterOrEqual(t, time.Since(downed), 7*time.Second)
		require.NotContains(t, store.Snapshot().Record.Holder,
			"n1#", "it was given back, so that nobody has to wait for it to run out")
	})
}

// While it waits for a lease that another process holds, a manager can be stopped; and the member says that
// it offers nothing any more.
func TestStop_WhileItWaitsForTheLease(t *testing.T) {
	store := leasetest.NewMemory()
	with(t, 2, func(name string, c *singleton.Config) { c.Store = store.View(name) },
		func(t *testing.T, c *crew) {
			c.runsOn("n1", 30*time.Second)
			other, err := lease.New(store.View("other"), "other", c.Member("n1").Provider.Config().Lease,
				lease.Options{})
			require.NoError(t, err)
			defer other.Close()
			require.Equal(t, sbr.Granted,
				linear.AnswerOf(other.Acquire(t.Context(), lease.Proposal{Override: true})).Kind)
			c.Eventually(time.Minute, "n1 does not ask for it again",
				func() bool { return c.managers["n1"].Status().Phase == "acquiring" })
			time.Sleep(time.Minute)
			n1 := c.Member("n1").Provider
			began := time.Now()
			require.NoError(t, c.managers["n1"].Stop(t.Context()))
			require.Less(t, time.Since(began), time.Second)
			require.EqualError(t, c.managers["n1"].Ready(), "singleton backup: stopped")
			require.NoError(t, c.managers["n2"].Ready(), "it has heard of the run")
			_, err = n1.Serve("one.backup", func(downing.Question) {})
			require.NoError(t, err, "nothing of it is left")
			time.Sleep(5 * time.Second)
			for _, p := range c.Member("n2").Provider.Peers().List {
				require.Equal(t, p.Name == "n2", len(p.Serves) > 0, "%s serves %v", p.Name, p.Serves)
			}
		})
}

// A manager that begins shortly after others were downed waits for their margin, also where they are out of
// the list by then: one that is started for the first time as well as one that follows another one in its
// process.
func TestMargin_IsWaitedForByAManagerThatBeginsLater(t *testing.T) {
	for _, way := range []string{"for the first time", "again"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick},
				func(t *testing.T, cl *clustertest.Cluster) {
					const margin = time.Minute
					c := newCrew(t, cl, func(_ string, cfg *singleton.Config) { cfg.RemovalMargin = margin })
					c.Form(3)
					defer c.stop()
					c.start("n1")
					c.runsOn("n1", 2*margin)
					c.start("n2")
					if way == "again" {
						c.start("n3")
					}
					require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
					c.Eventually(time.Minute, "n1 is not downed",
						func() bool { return len(c.Member("n3").Provider.Peers().Gone) == 1 })
					downed := c.Member("n3").Provider.Peers().Gone[0].At
					if way == "again" {
						require.NoError(t, c.managers["n3"].Stop(context.Background()))
					}
					require.NoError(t, c.managers["n2"].Stop(context.Background()))
					c.Eventually(margin/2, "n1 is still listed", func() bool {
						p := c.Member("n3").Provider.Peers()
						return p.Find(p.Gone[0].ID) == nil
					})
					c.start("n3")
					c.Eventually(2*margin, "it does not run", func() bool { return c.diary.last("starts").name == "n3" })
					require.GreaterOrEqual(t, c.diary.last("starts").at.Sub(downed), margin)
					require.Less(t, c.diary.last("starts").at.Sub(downed), margin+5*time.Second)
					require.Equal(t, []string{"one.backup"}, topicsOf(c.Member("n3").Provider.Peers().Gone))
				})
		})
	}
}

func topicsOf(gone []downing.Departure) (topics []string) {
	for _, d := range gone {
		for _, topic := range d.Serves {
			if topic[:4] == "one." {
				topics = append(topics, topic)
			}
		}
	}
	return topics
}

// Until is the moment at which Check fails when nothing is renewed any more, and moves on while something is.
func TestRun_UntilIsWhenCheckFails(t *testing.T) {
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Config: func(name string, c *downing.Config) {
				clustertest.Quick(name, c)
				c.Resolver.WhenLeaseUnknown = 1 // suspend: the resolver stops nothing here
			}}, func(t *testing.T, cl *clustertest.Cluster) {
				stores, runs := leasetest.NewMemory(), make(chan *singleton.Run, 10)
				store := stores.View("n1")
				c := newCrew(t, cl, func(name string, c *singleton.Config) {
					c.Run = func(ctx context.Context, r *singleton.Run) error {
						runs <- r
						<-ctx.Done()
						return nil
					}
					if way == "with a lease" && name == "n1" {
						c.Store = store
					} else if way == "with a lease" {
						c.Store = stores.View(name)
					}
				})
				c.startAll(3)
				defer c.stop()
				r := <-runs
				first, ok := r.Until()
				require.True(t, ok)
				require.Positive(t, time.Until(first))
				time.Sleep(time.Minute)
				last, ok := r.Until()
				require.True(t, ok)
				require.Positive(t, time.Until(last), "it moves on")
				require.Less(t, time.Until(last), time.Minute)

				store.SetUnavailable(true)
				c.Member("n1").Store.SetUnavailable(true)
				require.NoError(t, c.Net.Partition([]string{"n1"}, []string{"n2", "n3"}))
				for at, ok := r.Until(); ok; at, ok = r.Until() {
					require.NoError(t, r.Check())
					last = at
					time.Sleep(time.Millisecond)
				}
				require.ErrorIs(t, r.Check(), singleton.ErrNotRunning)
				require.WithinDuration(t, last, time.Now(), 2*time.Millisecond)
			})
		})
	}
}

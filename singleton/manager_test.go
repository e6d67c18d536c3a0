package singleton_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// diary is what the runs of a singleton have written down, each at the moment at which it happened.
type diary struct {
	mu      sync.Mutex
	entries []entry
	running map[string]uint64
	overlap []string
}

type entry struct {
	at    time.Time
	name  string
	what  string // starts, told, ends
	token uint64
	state string
	cause error
}

func (d *diary) write(e entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.at = time.Now()
	d.entries = append(d.entries, e)
	if d.running == nil {
		d.running = make(map[string]uint64)
	}
	switch e.what {
	case "starts":
		for other, token := range d.running {
			d.overlap = append(d.overlap, fmt.Sprintf("%s starts with token %d while %s runs with %d", e.name, e.token,
				other, token))
		}
		d.running[e.name] = e.token
	case "ends":
		delete(d.running, e.name)
	}
}

// last returns the newest entry of a kind.
func (d *diary) last(what string) (e entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.entries {
		if x.what == what {
			e = x
		}
	}
	return e
}

// count returns how many entries of a kind there are.
func (d *diary) count(what string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.entries {
		if e.what == what {
			n++
		}
	}
	return n
}

// runs returns who runs, empty if nobody or several do.
func (d *diary) runs() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.running) != 1 {
		return ""
	}
	for name := range d.running {
		return name
	}
	return ""
}

// tokensGrow fails the test if a run has started with a token that is not larger than all before.
func (d *diary) tokensGrow(t testing.TB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var newest uint64
	for _, e := range d.entries {
		if e.what == "starts" {
			require.Greater(t, e.token, newest, "%v", d.entries)
			newest = e.token
		}
	}
	require.Empty(t, d.overlap)
}

// crew runs a singleton called backup on the members of a cluster.
type crew struct {
	*clustertest.Cluster
	t      testing.TB
	diary  diary
	change func(name string, c *singleton.Config)

	managers map[string]*singleton.Manager
}

func newCrew(t testing.TB, c *clustertest.Cluster, change func(name string, c *singleton.Config)) *crew {
	return &crew{Cluster: c, t: t, change: change, managers: make(map[string]*singleton.Manager)}
}

func (c *crew) start(name string) {
	c.t.Helper()
	cfg := singleton.DefaultConfig()
	cfg.Name, cfg.Logger = "backup", clustertest.Logger(name)
	cfg.Run = c.run(name)
	if c.change != nil {
		c.change(name, &cfg)
	}
	m, err := singleton.New(c.Member(name).Provider, cfg)
	require.NoError(c.t, err)
	require.NoError(c.t, m.Start(context.Background()))
	c.managers[name] = m
}

// run counts: each run hands the number of runs so far to the next.
func (c *crew) run(name string) func(context.Context, *singleton.Run) error {
	return func(ctx context.Context, r *singleton.Run) error {
		c.diary.write(entry{name: name, what: "starts", token: r.Token(), state: string(r.State())})
		<-ctx.Done()
		c.diary.write(entry{name: name, what: "told", token: r.Token(), cause: context.Cause(ctx)})
		if err := r.HandOver(append(r.State(), '+')); err != nil {
			return err
		}
		c.diary.write(entry{name: name, what: "ends", token: r.Token()})
		return nil
	}
}

func (c *crew) startAll(n int) {
	c.t.Helper()
	c.Form(n)
	for i := 1; i <= n; i++ {
		c.start(clustertest.Name(i))
	}
}

func (c *crew) runsOn(name string, within time.Duration) {
	c.t.Helper()
	c.Eventually(within, "it does not run on "+name, func() bool { return c.diary.runs() == name })
}

func (c *crew) stop() {
	for _, m := range c.managers {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		require.NoError(c.t, m.Stop(ctx))
		cancel()
	}
}

// Both are run by every rule: with a lease of its own, and without.
func eachWay(t *testing.T, n int, test func(t *testing.T, c *crew)) {
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick},
				func(t *testing.T, cl *clustertest.Cluster) {
					store := leasetest.NewMemory()
					c := newCrew(t, cl, func(name string, cfg *singleton.Config) {
						if way == "with a lease" {
							cfg.Store = store.View(name)
						}
					})
					c.startAll(n)
					defer c.stop()
					test(t, c)
				})
		})
	}
}

func TestManager_HandsOverWhenItsMemberLeaves(t *testing.T) {
	eachWay(t, 3, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		require.NoError(t, c.managers["n1"].Stop(t.Context()))
		c.runsOn("n2", 10*time.Second)
		require.Equal(t, "+", c.diary.last("starts").state)
		require.ErrorIs(t, c.diary.last("told").cause, singleton.ErrHandOver)
		gap := c.diary.last("starts").at.Sub(c.diary.last("ends").at)
		t.Logf("nothing ran for %v", gap)
		require.LessOrEqual(t, gap, 200*time.Millisecond)
		require.NoError(t, c.Member("n1").Serf.Leave())
		time.Sleep(time.Minute)
		require.Equal(t, "n2", c.diary.runs())
		c.diary.tokensGrow(t)
	})
}

// A manager that is stopped takes a moment to be out of its member's tags. A request meanwhile is answered
// all the same.
func TestStop_NobodyWaitsForAManagerThatHasJustStopped(t *testing.T) {
	eachWay(t, 3, func(t *testing.T, c *crew) {
		c.runsOn("n1", 30*time.Second)
		for _, name := range []string{"n2", "n1"} {
			go func() { _ = c.managers[name].Stop(context.Background()) }()
			time.Sleep(10 * time.Millisecond)
		}
		began := time.Now()
		c.runsOn("n3", 30*time.Second)
		require.Less(t, c.diary.last("starts").at.Sub(began), singleton.DefaultConfig().HandOverRetryInterval,
			"without a question that is repeated")
	})
}

// begun is a run, and the member on which it has begun.
type begun struct {
	member string
	run    *singleton.Run
}

// paused is eachWay on three members that may be paused. A run tells runs of itself, and lasts until it is
// told to end by end, or by its manager.
func paused(t *testing.T, test func(t *testing.T, way string, trouble *clustertest.Trouble, runs <-chan begun, end chan<- struct{})) {
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			clustertest.Troubled(t, 3, 1, func(t *testing.T, c *clustertest.Cluster, trouble *clustertest.Trouble) {
				store := leasetest.NewMemory()
				trouble.Stores = func(name string) []*leasetest.Faulty { return []*leasetest.Faulty{store.View(name)} }
				runs, end := make(chan begun, 10), make(chan struct{})
				crew := newCrew(t, c, func(name string, cfg *singleton.Config) {
					cfg.Pause = func() { trouble.Pass(name) }
					if way == "with a lease" {
						cfg.Store = store.View(name)
					}
					cfg.Run = func(ctx context.Context, r *singleton.Run) error {
						runs <- begun{name, r}
						select {
						case <-end:
						case <-ctx.Done():
						}
						return nil
					}
				})
				crew.startAll(3)
				defer crew.stop()
				test(t, way, trouble, runs, end)
			})
		})
	}
}

// After a pause longer than Trust a process finds Check false at once, when nothing else in it has gone on
// yet.
func TestCheck_IsRightBeforeAnythingElseGoesOn(t *testing.T) {
	paused(t, func(t *testing.T, way string, trouble *clustertest.Trouble, runs <-chan begun, _ chan<- struct{}) {
		want := map[string]error{"without a lease": singleton.ErrUnsure,
			"with a lease": singleton.ErrLeaseLost}[way]
		r := (<-runs).run
		require.NoError(t, r.Check())
		trouble.Pause("n1")
		defer trouble.End()
		time.Sleep(2 * time.Second)
		require.NoError(t, r.Check(), "nobody can have taken over yet")
		next := (<-runs).run
		require.NoError(t, next.Check())
		require.Greater(t, next.Token(), r.Token())
		err := r.Check()
		require.ErrorIs(t, err, singleton.ErrNotRunning)
		require.ErrorIs(t, err, want)
		time.Sleep(time.Minute)
		require.ErrorIs(t, r.Check(), want)
	})
}

// A process that was paused while its run rested does not start the run that others have taken over
// meanwhile.
func TestRest_NothingStartsAfterAStandstill(t *testing.T) {
	paused(t, func(t *testing.T, _ string, trouble *clustertest.Trouble, runs <-chan begun, end chan<- struct{}) {
		require.Equal(t, "n1", (<-runs).member)
		end <- struct{}{}
		time.Sleep(singleton.DefaultConfig().RestartAfter / 2)
		trouble.Pause("n1")
		next := <-runs
		require.Equal(t, "n2", next.member)
		trouble.End()
		time.Sleep(2 * time.Minute)
		for len(runs) > 0 {
			later := <-runs
			require.GreaterOrEqual(t, later.run.Token(), next.run.Token(), "%s", later.member)
		}
	})
}

func TestStatus_SaysWhoHoldsTheLease(t *testing.T) {
	quick := clustertest.Options{Config: clustertest.Quick}
	clustertest.Virtual(t, quick, func(t *testing.T, cl *clustertest.Cluster) {
		store := leasetest.NewMemory()
		c := newCrew(t, cl, func(name string, cfg *singleton.Config) { cfg.Store = store.View(name) })
		cl.Form(1)
		settings := cl.Member("n1").Provider.Config().Lease
		somebody, err := lease.New(store.View("somebody"), "somebody", settings, lease.Options{})
		require.NoError(t, err)
		defer somebody.Close()
		_, err = somebody.Acquire(t.Context(), lease.Proposal{})
		require.NoError(t, err)
		c.start("n1")
		defer c.stop()
		status := func() singleton.Status { return c.managers["n1"].Status() }
		waits := func() bool { return status().LeaseHolder == "somebody" }
		c.Eventually(time.Minute, "it does not wait", waits)
		require.Equal(t, "acquiring", status().Phase)
		require.Equal(t,
			"waiting for the lease payments-singleton-backup, which is held by somebody", status().Last)

		require.NoError(t, somebody.Release(t.Context()))
		c.runsOn("n1", time.Minute)
		require.Empty(t, status().LeaseHolder)
	})
}

func TestTrace_OfARunThatIsHandedOver(t *testing.T) {
	spans := make(map[string]*tracetest.InMemoryExporter)
	traced := func(name string, c *downing.Config) {
		clustertest.Quick(name, c)
		spans[name] = tracetest.NewInMemoryExporter()
		c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans[name]))
	}
	clustertest.Virtual(t, clustertest.Options{Config: traced}, func(t *testing.T, cl *clustertest.Cluster) {
		c := newCrew(t, cl, nil)
		c.startAll(2)
		c.runsOn("n1", 30*time.Second)
		require.NoError(t, c.managers["n1"].Stop(t.Context()))
		c.runsOn("n2", 10*time.Second)
		c.stop()
		synctest.Wait()
		for name, want := range map[string]map[string]string{
			"n1": {"sbr.cause": "hand-over", "sbr.from": ""},
			"n2": {"sbr.cause": "resigned", "sbr.from": "n1"},
		} {
			all := spans[name].GetSpans()
			require.Len(t, all, 2) // who is a child ends first
			stop, run := all[0], all[1]
			require.Equal(t, "sbr.run.stop", stop.Name)
			require.Equal(t, run.SpanContext.SpanID(), stop.Parent.SpanID())
			require.Equal(t, "sbr.run", run.Name)
			require.False(t, run.StartTime.After(stop.StartTime))
			require.Equal(t, run.EndTime, stop.EndTime)
			got := make(map[string]string)
			for _, a := range run.Attributes {
				got[string(a.Key)] = a.Value.String()
			}
			want["sbr.system"], want["sbr.member"] = "payments", name
			want["sbr.incarnation"] = got["sbr.incarnation"]
			want["sbr.kind"], want["sbr.name"], want["sbr.run"] = "singleton", "backup", "singleton backup"
			want["sbr.run.token"] = got["sbr.run.token"]
			require.Equal(t, want, got)
		}
	})
}

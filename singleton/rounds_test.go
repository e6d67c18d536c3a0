package singleton_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/lease/memory"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// direct calls a handler without a network in between.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// round is one cluster to which things happen, and the resource that its singleton writes to.
type round struct {
	*crew
	trouble *clustertest.Trouble
	client  ledger.Client
}

// work writes to the resource every 20 ms. It looks at its context, and may then be paused for any time before it writes: that is what a fence is for.
func (r *round) work(name string) func(context.Context, *singleton.Run) error {
	return func(ctx context.Context, run *singleton.Run) error {
		e := ledger.Entry{Resource: "backup", Member: name, Run: strconv.FormatUint(run.Token(), 10), Kind: ledger.Start}
		write := func() {
			e.Seq++
			_ = r.client.Append(context.WithoutCancel(ctx), run.Token(), e) // the file says what became of it
		}
		write()
		e.Kind = ledger.Work
		for run.Check() == nil {
			r.trouble.Pass(name)
			write()
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		r.trouble.Pass(name)
		e.Kind = ledger.Stop
		write()
		return nil
	}
}

// holder is who runs the singleton.
func (r *round) holder() string {
	for _, name := range r.trouble.Attending() {
		if r.managers[name].Status().Token != 0 {
			return name
		}
	}
	return ""
}

// restart ends a member in good order, and starts it again as another incarnation.
func (r *round) restart(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(r.t, r.managers[name].Stop(ctx))
	m := r.Member(name)
	if !m.Down() {
		require.NoError(r.t, m.Serf.Leave())
	}
	_ = m.Serf.Shutdown()
	require.NoError(r.t, m.Provider.Stop(ctx))
	r.Start(name)
	r.Eventually(2*time.Minute, name+" is not admitted", func() bool { return r.Member(name).Provider.Peers().State != "arming" })
	r.start(name)
}

// settle expects the singleton to run in one place.
func (r *round) settle() {
	defer func() {
		if r.t.Failed() {
			r.dump()
		}
	}()
	r.Eventually(3*time.Minute, "the singleton does not run again", func() bool {
		active := 0
		for name, m := range r.managers {
			if m.Status().Phase == "active" && !r.trouble.Paused(name) {
				active++
			}
		}
		return active == 1
	})
	time.Sleep(5 * time.Second)
}

func (r *round) dump() {
	for _, line := range r.trouble.Log {
		r.t.Log(line)
	}
	for name, m := range r.managers {
		r.t.Logf("%s: paused %v, down %v, %+v", name, r.trouble.Paused(name), r.Member(name).Down(), m.Status())
		for _, p := range r.Member(name).Provider.Peers().List {
			r.t.Logf("  %s %s unreachable=%v serves=%v", p.ID, p.Status, p.Unreachable, p.Serves)
		}
	}
}

// play plays a round in virtual time, and returns what the resource says.
func play(t *testing.T, seed uint64, withLease bool) (report ledger.Report, log []string) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore()
		trouble := clustertest.NewTrouble(5, seed)
		server, err := ledger.Open(ledger.Config{File: filepath.Join(t.TempDir(), "ledger")})
		require.NoError(t, err)
		defer server.Close()
		r := &round{trouble: trouble, client: ledger.Client{URL: "http://ledger", HTTP: &http.Client{Transport: direct{server}}}}
		c := clustertest.New(t, clustertest.Options{Config: func(name string, cfg *downing.Config) {
			quick(name, cfg)
			cfg.Pause = func() { trouble.Pass(name) }
		}})
		r.crew = newCrew(t, c, func(name string, cfg *singleton.Config) {
			cfg.Run, cfg.Pause = r.work(name), func() { trouble.Pass(name) }
			if withLease {
				cfg.Store = store.View(name)
			}
		})
		trouble.For(c)
		trouble.Restart, trouble.Settle, trouble.Favourite = r.restart, r.settle, r.holder
		trouble.Stores = func(name string) []*memory.View { return []*memory.View{store.View(name)} }
		defer c.Stop()
		r.startAll(5)
		defer r.stop()
		defer func() {
			trouble.End()
			log = trouble.Log
		}()
		r.settle()
		for range 3 {
			trouble.Happen()
		}
		lines, err := r.client.Lines(t.Context())
		require.NoError(t, err)
		report = ledger.Analyse(lines)
	})
	return report, log
}

// Rounds of partitions, pauses, crashes, rolling updates and stores that are away, each with three such things: no write of an older run is
// accepted after one of a newer run. What would have overlapped without the fence is printed. SBR_ROUNDS says how many rounds; without it there are few.
func TestRounds_TheResourceSeesTokensInOrder(t *testing.T) {
	rounds := uint64(4)
	if n, err := strconv.ParseUint(os.Getenv("SBR_ROUNDS"), 10, 64); err == nil {
		rounds = n
	}
	for _, way := range []string{"without a lease", "with a lease"} {
		t.Run(way, func(t *testing.T) {
			var overlaps, refused, changes int
			var longest time.Duration
			var planned, unplanned []time.Duration
			for seed := range rounds {
				report, log := play(t, seed, way == "with a lease")
				require.True(t, report.Clean(), "seed %d: %v\n%+v", seed, log, report)
				overlaps += len(report.Overlaps)
				refused += report.Refused
				longest = max(longest, report.Overlap.Max)
				for _, c := range report.Changes {
					changes++
					if c.Planned {
						planned = append(planned, c.Gap)
					} else {
						unplanned = append(unplanned, c.Gap)
					}
				}
			}
			t.Logf("%d rounds, %d changes of owner; without the fence %d overlaps, the longest %v; %d writes refused; gaps planned %s, unplanned %s",
				rounds, changes, overlaps, longest, refused, spread(planned), spread(unplanned))
		})
	}
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	return fmt.Sprintf("p50 %v, max %v", all[len(all)/2], all[len(all)-1])
}

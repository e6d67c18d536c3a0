package sharding_test

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
	"github.com/serf-sbr/serf-sbr/sharding"
)

// direct calls a handler without a network in between.
type direct struct{ handler http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// round is one cluster to which things happen, and the resources that its shards write to, one for each.
type round struct {
	*crew
	trouble *clustertest.Trouble
	client  ledger.Client
}

// work writes every 100 ms. It looks whether it may, and may then be paused for any time before it writes.
func (r *round) work(name string) func(context.Context, *sharding.Shard) error {
	return func(ctx context.Context, s *sharding.Shard) error {
		e := ledger.Entry{Resource: s.Name(), Member: name, Run: strconv.FormatUint(s.Token(), 10), Kind: ledger.Start}
		write := func() {
			e.Seq++
			_ = r.client.Append(context.WithoutCancel(ctx), s.Token(), e) // the file says what became of it
		}
		write()
		e.Kind = ledger.Work
		for s.Check() == nil {
			r.trouble.Pass(name)
			write()
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		r.trouble.Pass(name)
		e.Kind = ledger.Stop
		write()
		return nil
	}
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

// settle expects the coordinator to know that every shard runs.
func (r *round) settle() {
	defer func() {
		if r.t.Failed() {
			r.t.Log(r.trouble.Log)
			r.dump()
		}
	}()
	r.Eventually(3*time.Minute, "not all shards run again", func() bool {
		for name, m := range r.managers {
			if l := m.Listing(); l.Running == r.shards && !r.trouble.Paused(name) && !r.Member(name).Down() {
				return true
			}
		}
		return false
	})
	time.Sleep(5 * time.Second)
}

// coordinator is who says who runs what.
func (r *round) coordinator() string {
	for _, name := range r.trouble.Attending() {
		if r.managers[name].Listing().Coordinator {
			return name
		}
	}
	return ""
}

// play plays a round in virtual time, and returns what the resources say.
func play(t *testing.T, seed uint64, withLeases bool) (report ledger.Report, log []string) {
	synctest.Test(t, func(t *testing.T) {
		trouble := clustertest.NewTrouble(5, seed)
		server, err := ledger.Open(ledger.Config{File: filepath.Join(t.TempDir(), "ledger")})
		require.NoError(t, err)
		defer server.Close()
		r := &round{trouble: trouble, client: ledger.Client{URL: "http://ledger", HTTP: &http.Client{Transport: direct{server}}}}
		c := clustertest.New(t, clustertest.Options{Config: func(name string, cfg *downing.Config) {
			quick(name, cfg)
			cfg.Pause = func() { trouble.Pass(name) }
		}})
		r.crew = newCrew(t, c, 12)
		if withLeases {
			r.leases = make(map[string]*memory.Store)
		}
		r.change = func(name string, cfg *sharding.Config) {
			cfg.Run, cfg.Pause = r.work(name), func() { trouble.Pass(name) }
		}
		trouble.For(c)
		trouble.Restart, trouble.Settle, trouble.Favourite = r.restart, r.settle, r.coordinator
		trouble.Stores = func(name string) (views []*memory.View) {
			for _, s := range r.leases {
				views = append(views, s.View(name))
			}
			return views
		}
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

// Rounds of partitions, pauses, crashes, rolling updates and stores that are away, each with three such things: no write of an older run of a shard is
// accepted after one of a newer run. What would have overlapped without the fence is printed. SBR_ROUNDS says how many rounds; without it there are few.
func TestRounds_TheResourcesSeeTokensInOrder(t *testing.T) {
	rounds := uint64(2)
	if n, err := strconv.ParseUint(os.Getenv("SBR_ROUNDS"), 10, 64); err == nil {
		rounds = n
	}
	for _, way := range []string{"without leases", "with leases"} {
		t.Run(way, func(t *testing.T) {
			var overlaps, refused, changes int
			var longest time.Duration
			var gaps []time.Duration
			for seed := range rounds {
				report, log := play(t, seed, way == "with leases")
				require.True(t, report.Clean(), "seed %d: %v\n%+v %+v", seed, log, report.Violations, report.Shared)
				overlaps += len(report.Overlaps)
				refused += report.Refused
				longest = max(longest, report.Overlap.Max)
				changes += len(report.Changes)
				for _, c := range report.Changes {
					gaps = append(gaps, c.Gap)
				}
			}
			slices.Sort(gaps)
			t.Logf("%d rounds, %d changes of owner; without the fence %d overlaps, the longest %v; %d writes refused; gaps %s", rounds, changes, overlaps, longest,
				refused, spread(gaps))
		})
	}
}

func spread(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	return fmt.Sprintf("p50 %v, max %v", sorted[len(sorted)/2], sorted[len(sorted)-1])
}

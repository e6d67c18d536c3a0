package downing_test

import (
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/race"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// splits is how many splits a measurement makes; SBR_SPLITS changes it (`make bench` makes 100).
func splits(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("SBR_SPLITS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() || race.Enabled {
		return max(usual/5, 1)
	}
	return usual
}

// storeDelay is what one request to the simulated lease store takes.
const storeDelay = 5 * time.Millisecond

// measureSplit cuts a cluster of real Serf nodes in virtual time and returns how long losers were up after the verdict
// was written.
func measureSplit(t *testing.T, nodes int, losers []string, cutStore bool) (doubleActive time.Duration) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		all := c.Form(nodes)
		for _, n := range all {
			c.Store.View(n).SetDelay(storeDelay)
		}
		// A cut can come at any moment of everything periodic.
		time.Sleep(time.Duration(rand.Int64N(int64(40 * time.Second))))
		var written time.Time
		c.Store.OnCommit(func(r lease.Record) {
			if written.IsZero() && r.Verdict != nil {
				written = time.Now()
			}
		})
		winners := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(losers, n) })
		require.NoError(t, c.Net.Partition(winners, losers))
		if cutStore {
			for _, n := range losers {
				c.Store.View(n).SetUnavailable(true)
			}
		}
		c.requireOneSide([][]string{winners, losers}, 3*time.Minute)
		for _, m := range c.Members() {
			if at := m.DownAt(); !at.IsZero() {
				doubleActive = max(doubleActive, at.Sub(written))
			}
		}
	})
	return doubleActive
}

// Losers that reach the store are down within 100 ms of virtual time after the verdict was written, whatever their own failure
// detector thinks.
func TestDoubleActive_LosersReachTheStore(t *testing.T) {
	shapes := [][]string{{"n4", "n5"}, {"n5"}, {"n1"}, {"n1", "n2"}}
	var q clustertest.Times
	for i := range splits(20) {
		q = append(q, measureSplit(t, 5, shapes[i%len(shapes)], false))
	}
	t.Logf("double-active time, losers reach the store: %v", q)
	require.LessOrEqual(t, q.At(0.99), 100*time.Millisecond)
}

// Losers that do not reach the store are down within the computed worst case.
func TestDoubleActive_LosersCutOffFromTheStore(t *testing.T) {
	cfg := downing.DefaultConfig()
	bound := timing.Compute(cfg.Timing(5, memberlist.DefaultLANConfig())).DoubleActive.CutOff
	shapes := [][]string{{"n4", "n5"}, {"n5"}, {"n1"}, {"n1", "n2"}}
	var q clustertest.Times
	for i := range splits(20) {
		q = append(q, measureSplit(t, 5, shapes[i%len(shapes)], true))
	}
	t.Logf("double-active time, losers cut off from the store: %v; computed worst case %v", q, bound)
	require.LessOrEqual(t, q.At(1), bound)
}

// BenchmarkDoubleActive_RealAPIServer reports how long losers are up after the verdict was written into a real kube-apiserver, in
// round trips to that server that are measured beside it.
func BenchmarkDoubleActive_RealAPIServer(b *testing.B) {
	a := newAPIServer(b)
	var q, trips clustertest.Times
	for b.Loop() {
		d, trip := a.split(b)
		q, trips = append(q, d), append(trips, trip)
	}
	b.ReportMetric(float64(q.At(0.99))/float64(trips.At(0.5)), "roundtrips/p99")
	b.ReportMetric(float64(q.At(0.5))/float64(time.Millisecond), "ms/p50")
	b.ReportMetric(float64(q.At(0.99))/float64(time.Millisecond), "ms/p99")
	b.ReportMetric(float64(trips.At(0.5))/float64(time.Millisecond), "ms/roundtrip")
	b.ReportMetric(0, "ns/op")
}

func (a *apiServer) split(b *testing.B) (doubleActive, roundTrip time.Duration) {
	c := newCluster(b, func(_ string, cfg *downing.Config) {
		quick(cfg)
		cfg.Store = a.store()
	})
	defer c.Shutdown()
	c.Form(5)
	winners, losers := []string{"n1", "n2", "n3"}, []string{"n4", "n5"}
	require.NoError(b, c.Net.Partition(winners, losers))
	c.requireOneSide([][]string{winners, losers}, time.Minute)
	roundTrip = a.roundTrip(b)
	// The clock starts when the winner knows: on loopback that is within a round trip of the commit itself, which it is given here.
	granted := c.first(downing.OccurredGranted).At.Add(-roundTrip)
	for _, n := range losers {
		doubleActive = max(doubleActive, c.Member(n).DownAt().Sub(granted))
	}
	c.forget(a)
	return doubleActive, roundTrip
}

// roundTrip is the median of some conditional writes of another lease through the same proxy, the way the product makes them.
func (a *apiServer) roundTrip(b *testing.B) time.Duration {
	s := a.store()
	var q clustertest.Times
	for range 20 {
		began := time.Now()
		snap, err := s.Read(b.Context())
		require.NoError(b, err)
		read := time.Since(began)
		began = time.Now()
		snap.Record.Renewed = began
		_, err = s.Write(b.Context(), snap.Record, snap.Version)
		require.NoError(b, err)
		q = append(q, max(read, time.Since(began)))
	}
	return q.At(0.5)
}

// first is the first thing of a kind that has happened to anybody; the zero Occurrence if nothing has.
func (c *cluster) first(kind string) (first downing.Occurrence) {
	log := c.Occurred("")
	if i := slices.IndexFunc(log, func(o downing.Occurrence) bool { return o.Kind == kind }); i >= 0 {
		first = log[i]
	}
	return first
}

// forget deletes the lease, so that the next cluster starts without a verdict.
func (c *cluster) forget(a *apiServer) {
	code, answer, err := a.cluster.Do(c.t.Context(), http.MethodDelete, a.path()+"/"+leaseName, nil)
	require.NoError(c.t, err)
	require.Less(c.t, code, 300, string(answer))
}

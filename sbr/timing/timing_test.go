package timing_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// fast is the tuned configuration that was measured beside the presets.
func fast() timing.Gossip {
	g := timing.LAN()
	g.SuspicionMult, g.SuspicionMaxTimeoutMult = 2, 1
	g.ProbeInterval, g.ProbeTimeout = 500*time.Millisecond, 200*time.Millisecond
	return g
}

func profile(name string) timing.Gossip {
	g, _ := timing.Profile(name)
	return g
}

// measured are the shortest and the longest times until one side of a real Serf cluster had noticed a cut:
// stock Serf v0.11.0 in virtual time, some on a real loopback. A bound that one of them breaks is no bound.
// (The first one of 200 was not recorded.)
var measured = []struct {
	name          string
	gossip        timing.Gossip
	side, members int
	first, all    float64
}{
	{"lan 3 of 5", timing.LAN(), 3, 5, 5, 16.4},
	{"lan 2 of 5", timing.LAN(), 2, 5, 12.4, 29},
	{"lan 3 of 5, loopback", timing.LAN(), 3, 5, 6, 10.2},
	{"lan 2 of 5, loopback", timing.LAN(), 2, 5, 12.4, 49},
	{"lan 2 of 5, network namespaces", timing.LAN(), 2, 5, 12.4, 25.3},
	{"local 3 of 5", profile("local"), 3, 5, 4, 21},
	{"local 2 of 5", profile("local"), 2, 5, 4, 24},
	{"wan 3 of 5", profile("wan"), 3, 5, 35, 65},
	{"wan 2 of 5", profile("wan"), 2, 5, 35, 85},
	{"lan 2 of 3", timing.LAN(), 2, 3, 5, 6},
	{"lan 1 of 3", timing.LAN(), 1, 3, 5, 10},
	{"lan 2 of 4", timing.LAN(), 2, 4, 12.4, 19.4},
	{"lan 4 of 5", timing.LAN(), 4, 5, 5, 7},
	{"lan 1 of 5", timing.LAN(), 1, 5, 25, 50},
	{"lan 1 of 7", timing.LAN(), 1, 7, 25, 69},
	{"lan 9 of 10", timing.LAN(), 9, 10, 5, 8},
	{"lan 1 of 10", timing.LAN(), 1, 10, 25, 92},
	{"lan 5 of 9", timing.LAN(), 5, 9, 5, 27},
	{"lan 4 of 9", timing.LAN(), 4, 9, 5, 32},
	{"lan 1 of 20", timing.LAN(), 1, 20, 25, 182},
	{"lan 18 of 30", timing.LAN(), 18, 30, 6.91, 17},
	{"lan 12 of 30", timing.LAN(), 12, 30, 6.91, 27},
	{"lan 1 of 50", timing.LAN(), 1, 50, 25, 360},
	{"lan 50 of 100", timing.LAN(), 50, 100, 9, 35},
	{"lan 100 of 200", timing.LAN(), 100, 200, 10.3, 42},
	{"fast 3 of 5", fast(), 3, 5, 1.5, 3},
	{"fast 2 of 5", fast(), 2, 5, 1.5, 5.5},
}

func TestGossip_DetectionBoundsWhatWasMeasured(t *testing.T) {
	for _, m := range measured {
		t.Run(m.name, func(t *testing.T) {
			d := m.gossip.Detection(m.side, m.members)
			t.Logf("measured %v to %v, computed %v to %v, gap %v", m.first, m.all, d.Fastest, d.Worst,
				m.gossip.Gap(m.side, m.members))
			require.LessOrEqual(t, d.Fastest, seconds(m.first))
			require.GreaterOrEqual(t, d.Worst, seconds(m.all))
			require.GreaterOrEqual(t, m.gossip.First(m.side, m.members).Worst, seconds(m.first))
			require.LessOrEqual(t, d.Worst, 6*seconds(m.all), "a bound too loose to be of use")
		})
	}
}

// A lone node was seen to condemn its peers up to 45 s apart.
func TestGossip_GapBoundsWhatWasMeasured(t *testing.T) {
	require.GreaterOrEqual(t, timing.LAN().Gap(1, 20), 45*time.Second)
}

func TestGossip_SuspicionFollowsMemberlist(t *testing.T) {
	for _, tc := range []struct {
		name     string
		gossip   timing.Gossip
		members  int
		min, max float64
	}{
		{"lan, too few to confirm", timing.LAN(), 3, 4, 4},
		{"lan 5", timing.LAN(), 5, 4, 24},
		{"lan 10", timing.LAN(), 10, 4, 24},
		{"lan 20", timing.LAN(), 20, 5.204, 31.224},
		{"lan 100", timing.LAN(), 100, 8, 48},
		{"wan 5, too few to confirm", profile("wan"), 5, 30, 30},
		{"wan 6", profile("wan"), 6, 30, 180},
		{"local 3", profile("local"), 3, 3, 18},
		{"no confirmations wanted", fast(), 5, 1, 1},
		{"nobody", timing.LAN(), 0, 4, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, seconds(tc.min), tc.gossip.SuspicionMin(tc.members))
			require.Equal(t, seconds(tc.max), tc.gossip.SuspicionMax(tc.members))
		})
	}
}

func TestProbing(t *testing.T) {
	p := reachability.Settings{Interval: time.Second, Timeout: 500 * time.Millisecond, Tries: 3, Neighbours: 5}
	require.Equal(t, timing.Span{Fastest: seconds(2.5), Worst: seconds(5.1)}, timing.Probing(p, 4, seconds(0.6)))
}

func standard(members int) timing.Input {
	return timing.Input{
		Members: members, Gossip: timing.LAN(),
		Probes: reachability.Settings{Interval: time.Second, Timeout: 500 * time.Millisecond, Tries: 3,
			Neighbours: 5},
		StableAfter: 20 * time.Second, Unstable: 15 * time.Second, Lease: true, MinorityDelay: 2 * time.Second,
		LeaseTimeout: 5 * time.Second, LeaseDeadline: 15 * time.Second, LeaseRetry: time.Second,
		HeartbeatTimeout: 120 * time.Second, HeartbeatInterval: 12 * time.Second, Watch: true,
	}
}

func TestCompute_Defaults(t *testing.T) {
	r := timing.Compute(standard(5))
	require.Equal(t, timing.Span{Fastest: seconds(2.5), Worst: seconds(5.1)}, r.Detection.Lone)
	require.Equal(t, seconds(2.6), r.LargestGap)
	require.Equal(t, timing.Span{Fastest: seconds(24.5), Worst: seconds(27.1)}, r.Decision.Lone)
	require.Equal(t, seconds(35.1), r.Resolution)
	require.Equal(t, seconds(27.1+3+15+2*6), r.ResolutionStoreDown)
	require.Equal(t, timing.DoubleActive{Watching: seconds(0.1), Asking: seconds(12.6), CutOff: seconds(34.6)},
		r.DoubleActive)
	require.Equal(t, 7*time.Second, r.StableAfter)
	require.Equal(t, 3*time.Second, r.MinorityDelay)
	require.Empty(t, r.Warnings)
}

// With Serf's detector alone a lone node is slow; it is down-all-when-unstable that ends its wait.
func TestCompute_SerfAlone(t *testing.T) {
	in := standard(10)
	in.Probes = reachability.Settings{}
	r := timing.Compute(in)
	require.Equal(t, r.Serf, r.Detection)
	require.Equal(t, seconds(117), r.Detection.Lone.Worst)
	require.Equal(t, seconds(2+24+20+15+2), r.Decision.Lone.Worst)
	require.Equal(t, 48*time.Second, r.StableAfter)

	in.Unstable = 0
	require.Equal(t, seconds(117+20+2), timing.Compute(in).Decision.Lone.Worst)
}

func TestCompute_WithoutLease(t *testing.T) {
	in := standard(5)
	in.Lease = false
	r := timing.Compute(in)
	require.Equal(t, seconds(28.1), r.Resolution)
	require.Equal(t, timing.DoubleActive{Watching: seconds(5.6), Asking: seconds(5.6), CutOff: seconds(5.6)},
		r.DoubleActive)
}

func TestCompute_Warnings(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*timing.Input)
		want   []string
	}{
		{"partial view", func(in *timing.Input) { in.StableAfter = 2 * time.Second; in.Unstable = 4 * time.Second },
			[]string{"stable-after: 2s is shorter than the longest time between two failure detections (2.6s): a side may decide on a partial view; use at least 7s"}},
		{"short", func(in *timing.Input) { in.StableAfter = 5 * time.Second; in.Unstable = 4 * time.Second },
			[]string{"stable-after: 5s is short for 5 members; use at least 7s"}},
		{"never unstable", func(in *timing.Input) { in.Unstable = 0 },
			[]string{"down-all-when-unstable: off: a partition that keeps changing is never decided"}},
		{"unstable too long", func(in *timing.Input) { in.Unstable = 30 * time.Second },
			[]string{"down-all-when-unstable: 30s is longer than stable-after (20s): members may be removed by one side while they still run on the other"}},
		{"no probes", func(in *timing.Input) { in.Probes = reachability.Settings{} },
			[]string{"stable-after: 20s is shorter than the longest time between two failure detections (40s): a side may decide on a partial view; use at least 48s",
				"probe: off: only Serf's detector is left, and a node that is cut off alone may take 1m9s to notice"}},
		{"no watch", func(in *timing.Input) { in.Watch = false },
			[]string{"watch: off: a loser learns of the verdict only when it asks, so both sides may be up for 12.6s"}},
		{"heartbeat", func(in *timing.Input) { in.HeartbeatInterval = 60 * time.Second },
			[]string{"heartbeat-interval: 1m0s is not less than half of heartbeat-timeout (2m0s)"}},
		{"one failed heartbeat", func(in *timing.Input) { in.HeartbeatInterval = 40 * time.Second },
			[]string{"heartbeat-interval: 40s with a lease-operation-timeout of 5s: a single failed heartbeat loses the lease (heartbeat-timeout 2m0s)"}},
		{"deadline", func(in *timing.Input) { in.LeaseDeadline = 5 * time.Second },
			[]string{"lease-operation-timeout: 5s leaves no second try before the decision deadline (5s)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := standard(5)
			tc.change(&in)
			var got []string
			for _, w := range timing.Compute(in).Warnings {
				got = append(got, w.String())
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// The rows are the reference's; between them it is in proportion.
func TestSizing_FollowsTheReference(t *testing.T) {
	for members, want := range map[int]float64{1: 7, 5: 7, 6: 7.6, 10: 10, 15: 11.5, 20: 13, 50: 17, 100: 20,
		550: 25, 1000: 30, 9999: 30} {
		require.Equal(t, seconds(want), timing.Sizing(members), "%d members", members)
	}
}

// What stable-after: auto rests on: whole seconds that never shrink as the cluster grows, never less than the
// table, and always longer than the time between two condemnations.
func TestStableFor_GrowsWithTheCluster(t *testing.T) {
	for _, profile := range timing.Profiles() {
		for _, probes := range []reachability.Settings{{}, reachability.DefaultSettings()} {
			gossip, _ := timing.Profile(profile)
			stable, last := timing.StableFor(gossip, probes), time.Duration(0)
			for n := 1; n < 1500; n++ {
				is := stable(n)
				gap := timing.Compute(timing.Input{Members: n, Gossip: gossip, Probes: probes}).LargestGap
				require.GreaterOrEqual(t, is, max(last, timing.Sizing(n), gap), "%s, %d members", profile, n)
				require.Equal(t, is.Truncate(time.Second), is)
				last = is
			}
		}
	}
	require.Equal(t, 7*time.Second, timing.StableFor(timing.LAN(), reachability.DefaultSettings())(5))
}

func TestProfile(t *testing.T) {
	for _, name := range timing.Profiles() {
		_, ok := timing.Profile(name)
		require.True(t, ok, name)
	}
	_, ok := timing.Profile("moon")
	require.False(t, ok)
}

// Whatever the settings, the bounds stay in order and grow with what they are made of.
func TestCompute_Laws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := standard(rapid.IntRange(-1, 3000).Draw(t, "members"))
		in.Gossip, _ = timing.Profile(rapid.SampledFrom(timing.Profiles()).Draw(t, "profile"))
		in.StableAfter = seconds(rapid.Float64Range(0, 100).Draw(t, "stable-after"))
		in.Unstable = seconds(rapid.Float64Range(0, 100).Draw(t, "unstable"))
		in.Watch, in.Lease = rapid.Bool().Draw(t, "watch"), rapid.Bool().Draw(t, "lease")
		in.Probes.Neighbours = rapid.IntRange(0, 200).Draw(t, "neighbours")
		in.Probes.Tries = rapid.IntRange(0, 10).Draw(t, "tries")
		r := timing.Compute(in)
		for name, s := range map[string]timing.Span{
			"serf majority": r.Serf.Majority, "serf lone": r.Serf.Lone, "probes majority": r.Probes.Majority, "probes lone": r.Probes.Lone,
			"majority": r.Detection.Majority, "lone": r.Detection.Lone, "decision": r.Decision.Majority, "lone decision": r.Decision.Lone,
		} {
			if s.Fastest < 0 || s.Worst < s.Fastest {
				t.Fatalf("%s: %v", name, s)
			}
		}
		da := r.DoubleActive
		if da.Watching < 0 || da.Watching > da.Asking || da.Asking > da.CutOff ||
			r.Resolution > r.ResolutionStoreDown {
			t.Fatalf("double-active %v, resolution %v, %v", da, r.Resolution, r.ResolutionStoreDown)
		}
		if r.StableAfter < r.LargestGap {
			t.Fatalf("recommended %v, gap %v", r.StableAfter, r.LargestGap)
		}
	})
}

// Garbage in gives garbage out, but no panic.
func TestCompute_IsTotal(t *testing.T) {
	for _, n := range []int{math.MinInt, 0, 1, math.MaxInt32} {
		for _, d := range []time.Duration{math.MinInt64, -1, 0, math.MaxInt64} {
			require.NotPanics(t, func() {
				timing.Compute(timing.Input{
					Members: n, StableAfter: d, Unstable: d, LeaseTimeout: d, LeaseDeadline: d, MinorityDelay: d,
					LeaseRetry: d,
					Gossip: timing.Gossip{ProbeInterval: d, GossipInterval: d, SuspicionMult: n,
						AwarenessMaxMultiplier: n, IndirectChecks: n},
					Probes: reachability.Settings{Interval: d, Timeout: d, Tries: n, Neighbours: n},
				})
			})
		}
	}
}

func ExampleCompute() {
	r := timing.Compute(timing.Input{Members: 20, Gossip: timing.LAN(), StableAfter: 20 * time.Second})
	fmt.Println("a lone node notices after at most", r.Detection.Lone.Worst.Round(time.Second))
	fmt.Println("use a stable-after of", r.StableAfter)
	// Output:
	// a lone node notices after at most 3m31s
	// use a stable-after of 57s
}

package sbr_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var sizes = []int{10, 100, 1000, 10_000}

// armed returns the resolver of the first of n members one hour after the last of them was seen, when nothing
// is pending.
func armed(tb testing.TB, n int, strategy string) *sbr.Resolver {
	tb.Helper()
	r := newResolver(tb, strategy)
	for i := range n {
		r.Step(0, sbr.MemberSeen{Member: numbered(i)})
	}
	settle(r, time.Hour)
	return r
}

func newResolver(tb testing.TB, strategy string) *sbr.Resolver {
	tb.Helper()
	s, err := strategies.New(strategy, strategies.DefaultSettings())
	require.NoError(tb, err)
	r, err := sbr.New(sbr.DefaultConfig(), s, numbered(0), 0)
	require.NoError(tb, err)
	return r
}

// numbered has strings of its own, as they come off the wire.
func numbered(i int) sbr.Member {
	name := fmt.Sprintf("node-%05d", i)
	return sbr.Member{ID: sbr.ID(name + "-1f0c3a99"), Name: name,
		Addr: fmt.Sprintf("10.0.%d.%d:7946", i/250, i%250), Born: int64(i + 1), Status: sbr.Up}
}

// settle plays the driver of a store without a record.
func settle(r *sbr.Resolver, until time.Duration) {
	for at, ok := r.NextDeadline(); ok && at <= until; at, ok = r.NextDeadline() {
		for _, e := range r.Tick(at) {
			if read, is := e.(sbr.ReadLease); is {
				r.Step(at, sbr.LeaseRead{Attempt: read.Attempt})
			}
		}
	}
}

// quiet are the steps of a long life: nothing is decided in them.
func quiet(r *sbr.Resolver) map[string]func() {
	peer := r.Snapshot().Members[1]
	var repeat, seen sbr.Event = sbr.Reachability{ID: peer.ID}, sbr.MemberSeen{Member: peer}
	var news sbr.Event = sbr.LeaseObserved{}
	return map[string]func(){
		"reachability-repeat": func() { r.Step(2*time.Hour, repeat) },
		"member-repeat":       func() { r.Step(2*time.Hour, seen) },
		"lease-news":          func() { r.Step(2*time.Hour, news) },
		"tick":                func() { r.Tick(2 * time.Hour) },
		"next-deadline":       func() { r.NextDeadline() },
	}
}

// partitioned has the last of the members unreachable, and the decision still ahead.
func partitioned(tb testing.TB, n int) *sbr.Resolver {
	tb.Helper()
	r := armed(tb, n, "lease-majority")
	r.Step(2*time.Hour, sbr.Reachability{ID: numbered(n - 1).ID, Unreachable: true})
	require.Equal(tb, 1, r.Suspects())
	return r
}

// A step without a decision costs the same memory whatever the size of the cluster; in fact none.
func TestStep_AllocatesNothingWithoutADecision(t *testing.T) {
	for _, n := range []int{10, 10_000} {
		for state, r := range map[string]*sbr.Resolver{
			"whole": armed(t, n, "keep-majority"), "whole-lease": armed(t, n, "lease-majority"), "partitioned": partitioned(t, n),
		} {
			for name, step := range quiet(r) {
				require.Zero(t, testing.AllocsPerRun(20, step), "%s, %s, %d members", state, name, n)
			}
		}
	}
}

// A change of reachability is more work, for the sentence in Suspend and Resume, but no more in a large
// cluster.
func TestStep_AllocationsOfAChangeDoNotGrow(t *testing.T) {
	allocs := make(map[int]float64)
	for _, n := range []int{10, 10_000} {
		r := armed(t, n, "keep-majority")
		id := numbered(n - 1).ID
		var gone, back sbr.Event = sbr.Reachability{ID: id, Unreachable: true}, sbr.Reachability{ID: id}
		allocs[n] = testing.AllocsPerRun(20, func() {
			r.Step(2*time.Hour, gone)
			r.Step(2*time.Hour, back)
		})
	}
	require.Equal(t, allocs[10], allocs[10_000])
}

// At 10,000 members the resolver keeps at most 1 KB for each, the strings of the members included.
func TestResolver_MemoryPerMember(t *testing.T) {
	const n = 10_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := armed(t, n, "lease-majority")
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n
	t.Logf("%d bytes a member", each)
	require.Less(t, each, int64(1024))
	runtime.KeepAlive(r)
}

// history is a life with something of everything: a partition, a race, a verdict, an order, a pause, a
// verdict told in parts.
func history() []func(r *sbr.Resolver) {
	step := func(at time.Duration, e sbr.Event) func(*sbr.Resolver) {
		return func(r *sbr.Resolver) { r.Step(at, e) }
	}
	tick := func(at time.Duration) func(*sbr.Resolver) { return func(r *sbr.Resolver) { r.Tick(at) } }
	n := func(i int) sbr.ID { return numbered(i).ID }
	verdict := &sbr.Verdict{Token: 1, Survivors: []sbr.ID{n(0), n(1), n(2)}, Down: []sbr.ID{n(3), n(4)},
		DecidedBy: n(0)}
	h := make([]func(*sbr.Resolver), 0, 32)
	for i := range 5 {
		h = append(h, step(0, sbr.MemberSeen{Member: numbered(i)}))
	}
	return append(h,
		tick(5*time.Second), tick(20*time.Second), step(20*time.Second, sbr.LeaseRead{Attempt: 1}),
		step(30*time.Second, sbr.Reachability{ID: n(3), Unreachable: true}),
		step(30*time.Second, sbr.Reachability{ID: n(4), Unreachable: true}),
		step(31*time.Second, sbr.Observations{Reports: []sbr.Report{report(n(0), n(3)), report(n(1), n(4))}}),
		tick(50*time.Second),
		step(51*time.Second, sbr.LeaseAnswer{Attempt: 2, Err: "refused"}),
		tick(52*time.Second),
		step(53*time.Second, sbr.LeaseAnswer{Attempt: 3, Outcome: sbr.Granted,
			Record: sbr.Record{Holder: n(0), Token: 1, Verdict: verdict}}),
		step(54*time.Second, sbr.MemberGone{ID: n(3)}),
		step(55*time.Second, sbr.Ordered{From: n(1),
			Order: sbr.Order{Kind: sbr.DownUnreachable, Down: []sbr.ID{n(1)}}}),
		step(56*time.Second, sbr.MemberSeen{Member: numbered(7)}),
		step(60*time.Second, sbr.Resumed{Gap: 3 * time.Second}),
		step(60*time.Second, sbr.LeaseRead{Attempt: 4, Err: "refused"}),
		step(61*time.Second, sbr.Cleared{From: n(2), Token: 1}),
		step(62*time.Second, sbr.MemberGone{ID: n(4)}),
		step(63*time.Second, sbr.Told{From: n(2),
			Verdict: sbr.Verdict{Token: 2, Survivors: []sbr.ID{n(0)}, Down: []sbr.ID{n(2)}, Partial: true}}),
		step(64*time.Second, sbr.Told{From: n(1),
			Verdict: sbr.Verdict{Token: 2, Survivors: []sbr.ID{n(7)}, Partial: true}}),
		step(65*time.Second, sbr.Failed{Reason: "enough"}),
	)
}

// later is a moment after all of a history.
const later = time.Hour

// Whatever a clone goes through, the original does not notice: at every point of a history, a clone plays the
// rest of it.
func TestClone_SharesNothing(t *testing.T) {
	r, steps := newResolver(t, "lease-majority"), history()
	for i, next := range steps {
		before, snapshot := r.AppendState(nil, later), r.Snapshot()
		c := r.Clone()
		require.Equal(t, before, c.AppendState(nil, later), "step %d", i)
		for _, step := range steps[i:] {
			step(c)
		}
		require.Equal(t, sbr.StateDown, c.State())
		require.Equal(t, before, r.AppendState(nil, later), "step %d", i)
		require.Equal(t, snapshot, r.Snapshot(), "step %d", i)
		next(r)
	}
}

// Two resolvers with one history have one encoding at every point of it, and the points differ.
func TestAppendState_EqualHistories(t *testing.T) {
	a, b := newResolver(t, "lease-majority"), newResolver(t, "lease-majority")
	states := make(map[string]bool)
	for i, next := range history() {
		next(a)
		next(b)
		state := a.AppendState([]byte("prefix"), later)
		require.Equal(t, state, b.AppendState([]byte("prefix"), later), "step %d", i)
		states[string(state)] = true
	}
	require.Greater(t, len(states), len(history())*3/4)
}

// Times are relative: the same history an hour later is the same state.
func TestAppendState_TimesAreRelative(t *testing.T) {
	encode := func(origin time.Duration) []byte {
		s, err := strategies.New("lease-majority", strategies.DefaultSettings())
		require.NoError(t, err)
		r, err := sbr.New(sbr.DefaultConfig(), s, numbered(0), origin)
		require.NoError(t, err)
		r.Step(origin, sbr.MemberSeen{Member: numbered(1)})
		r.Tick(origin + 5*time.Second)
		r.Step(origin+6*time.Second, sbr.Reachability{ID: numbered(1).ID, Unreachable: true})
		r.Tick(origin + 26*time.Second)
		require.Equal(t, sbr.StateWaiting, r.State())
		return r.AppendState(nil, origin+26*time.Second)
	}
	require.Equal(t, encode(0), encode(time.Hour))
}

func BenchmarkStep(b *testing.B) {
	for _, n := range sizes {
		for _, name := range []string{"reachability-repeat", "tick"} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				step := quiet(partitioned(b, n))[name]
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}

// BenchmarkReport says what one report costs the first of n members that are in three zones, of which two
// cannot reach each other: the opinion that is formed of it, and the decision that goes by it.
func BenchmarkReport(b *testing.B) {
	for _, n := range []int{100, 200, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			settings := reachability.DefaultSettings()
			settings.AllHeard = true
			tracker, r := reachability.New(settings, numbered(0).ID), armed(b, n, "lease-majority")
			var zones [3][]sbr.ID
			for i := range n {
				tracker.Add(numbered(i).ID)
				zones[3*i/n] = append(zones[3*i/n], numbered(i).ID)
			}
			now := 2 * time.Hour
			weigh := func() {
				o := tracker.Form(now, false)
				if o.Observed {
					r.Step(now, sbr.Observations{Reports: o.Reports})
				}
				for _, c := range o.Changed {
					r.Step(now, c)
				}
			}
			for _, id := range zones[1] {
				tracker.Reported(now, id, 0, zones[2], nil)
			}
			for _, id := range zones[2][1:] {
				tracker.Reported(now, id, 0, zones[1], nil)
			}
			weigh()
			require.Positive(b, r.Suspects())
			one, some := zones[2][0], zones[1][:len(zones[1])/2]
			for b.Loop() {
				now += time.Millisecond
				tracker.Reported(now, one, 0, some, nil)
				weigh()
				b.StopTimer()
				tracker.Reported(now, one, 0, nil, some)
				weigh()
				b.StartTimer()
			}
		})
	}
}

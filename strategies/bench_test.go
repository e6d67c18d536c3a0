package strategies_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var sizes = []int{10, 100, 1000, 10000}

// benchmarked are all strategies, each with settings that make it look at the whole view.
func benchmarked(n int) []named {
	return []named{
		{"keep-majority", strategies.KeepMajority{}},
		{"static-quorum", strategies.StaticQuorum{QuorumSize: n/2 + 1}},
		{"keep-oldest", strategies.KeepOldest{DownIfAlone: true}},
		{"keep-referee", strategies.KeepReferee{Address: "10.0.0.1:7946", DownAllIfLessThanNodes: 1}},
		{"down-all", strategies.DownAll{}},
		{"lease-majority", strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}},
	}
}

type named struct {
	name     string
	strategy sbr.Strategy
}

// large is a view of n members of which every third is on the other side.
func large(n int, cut bool) sbr.View {
	members := make([]sbr.Member, n)
	for i := range members {
		id := fmt.Sprintf("n%d", i+1)
		members[i] = sbr.Member{
			ID: sbr.ID(id + "-4f1c2a90"), Name: id, Addr: fmt.Sprintf("10.%d.%d.%d:7946", i>>16, i>>8&255, i&255+1),
			Roles: []string{"web"}, Born: int64(1 + i*7919%n), Status: sbr.Up, Unreachable: cut && i%3 == 2,
		}
	}
	return sbr.NewView(members[0].ID, members, nil, nil)
}

// watched adds the reports of k observers for each unreachable member, all of them on this side.
func watched(v sbr.View, k int) sbr.View {
	var here []sbr.ID
	for _, m := range v.Members {
		if !m.Unreachable {
			here = append(here, m.ID)
		}
	}
	for i, m := range v.Members {
		for j := range k {
			if m.Unreachable {
				v.Reports = append(v.Reports, sbr.Report{Observer: here[(i+j)%len(here)], Subject: m.ID})
			}
		}
	}
	return v
}

// bridged makes two members of this side report each other, so that the second pass runs.
func bridged(v sbr.View) sbr.View {
	a, b := v.Members[0].ID, v.Members[1].ID
	v.Reports = append(slices.Clone(v.Reports), sbr.Report{Observer: a, Subject: b}, sbr.Report{Observer: b, Subject: a})
	return v
}

var (
	copied   []sbr.Member
	decision sbr.Decision
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range sizes {
		v := large(n, true)
		for _, s := range benchmarked(n) {
			b.Run(fmt.Sprintf("%s/n=%d", s.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					decision = sbr.Decide(s.strategy, &v, 0.5)
				}
			})
		}
	}
}

// BenchmarkCopy is the yardstick: what it costs to copy the member list once.
func BenchmarkCopy(b *testing.B) {
	for _, n := range sizes {
		v := large(n, true)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				copied = slices.Clone(v.Members)
			}
		})
	}
}

// BenchmarkRatio reports how many copies of the member list one decision costs (x-copy), measured in turns in
// one run. The fastest turn of each counts, so that whatever else the machine does disturbs neither. Goal: at
// most 5 for a clean cut.
func BenchmarkRatio(b *testing.B) {
	for _, shape := range []struct {
		name string
		of   func(n int) sbr.View
	}{
		{"clean", func(n int) sbr.View { return large(n, true) }},
		{"whole", func(n int) sbr.View { return large(n, false) }},
		{"reports", func(n int) sbr.View { return watched(large(n, true), 3) }},
		{"indirect", func(n int) sbr.View { return bridged(watched(large(n, true), 3)) }},
	} {
		for _, n := range sizes {
			v := shape.of(n)
			for _, s := range benchmarked(n) {
				b.Run(fmt.Sprintf("%s/%s/n=%d", shape.name, s.name, n), func(b *testing.B) { ratio(b, s.strategy, &v) })
			}
		}
	}
}

func ratio(b *testing.B, s sbr.Strategy, v *sbr.View) {
	turns := max(1, 1000/len(v.Members))
	deciding, copying := time.Duration(1<<62), time.Duration(1<<62)
	for b.Loop() {
		start := b.Elapsed()
		for range turns {
			decision = sbr.Decide(s, v, 0.5)
		}
		middle := b.Elapsed()
		for range turns {
			copied = slices.Clone(v.Members)
		}
		deciding, copying = min(deciding, middle-start), min(copying, b.Elapsed()-middle)
	}
	b.ReportMetric(float64(deciding)/float64(copying), "x-copy")
	b.ReportMetric(float64(deciding.Nanoseconds())/float64(turns), "ns/decide")
	b.ReportMetric(float64(copying.Nanoseconds())/float64(turns), "ns/copy")
}

// While nobody is unreachable a decision costs one small allocation, for the copy of the view's header that
// the strategy is given, however large the cluster is. What grows with the cluster is only the list of those
// who go down.
func TestDecide_AllocatesNothingThatGrowsWhileNobodyIsUnreachable(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 10000} {
		v := large(n, false)
		for _, s := range benchmarked(n) {
			t.Run(s.name, func(t *testing.T) {
				allocs := testing.AllocsPerRun(20, func() { decision = sbr.Decide(s.strategy, &v, 0.5) })
				require.Equal(t, sbr.None, decision.Final)
				require.LessOrEqual(t, allocs, 1.0, "%d members", n)
			})
		}
	}
}

// A clean cut: the list of those who go down, the reason, and nothing for each member.
func TestDecide_AllocatesFewTimesForACleanCut(t *testing.T) {
	for _, n := range []int{10, 1000, 10000} {
		v := large(n, true)
		for _, s := range benchmarked(n) {
			t.Run(s.name, func(t *testing.T) {
				allocs := testing.AllocsPerRun(20, func() { decision = sbr.Decide(s.strategy, &v, 0.5) })
				require.NotEmpty(t, decision.Down)
				require.LessOrEqual(t, allocs, 20.0, "%d members", n)
			})
		}
	}
}

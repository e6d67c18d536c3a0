package strategies_test

import (
	"fmt"
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

var decision sbr.Decision

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

// While no member is unreachable a decision costs one small allocation, for the copy of the view's header
// that the strategy is given, however large the cluster is. What grows with the cluster is only the list of
// downed members. A clean cut costs that list and the reason, and nothing for each member.
func TestDecide_AllocatesNothingForEachMember(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 10000} {
		for _, s := range benchmarked(n) {
			for cut, most := range map[bool]float64{false: 1, true: 20} {
				v := large(n, cut)
				allocs := testing.AllocsPerRun(20, func() { decision = sbr.Decide(s.strategy, &v, 0.5) })
				require.Equal(t, cut && n > 2, len(decision.Down) > 0, s.name)
				require.LessOrEqual(t, allocs, most, "%s: %d members, cut: %v", s.name, n, cut)
			}
		}
	}
}

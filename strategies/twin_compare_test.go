package strategies_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// compare holds the real pipeline and its twin together, for one view and one strategy. It reports whether
// they agree.
func compare(t *testing.T, s sbr.Strategy, v sbr.View, threshold float64) bool {
	w := worldOf(v)
	want := twinDecide(s, w, threshold)
	got := sbr.Decide(s, &v, threshold)
	reversed, wantReversed := got.Reversed(&v, threshold), twinReversed(want, w, threshold)
	if got.Kind == want.kind && got.Delay == want.delay && got.Final == want.final && sameSet(got.Down, want.down) &&
		reversed.Final == wantReversed.final && sameSet(reversed.Down, wantReversed.down) {
		return true
	}
	return assert.Fail(t, "the twins disagree", "%#v, threshold %v\n%s\ngot  %s %v final %s down %v, denied %s %v (%s)\nwant %s %v final %s down %v, denied %s %v",
		s, threshold, show(v), got.Kind, got.Delay, got.Final, got.Down, reversed.Final, reversed.Down, got.Reason,
		want.kind, want.delay, want.final, want.down, wantReversed.final, wantReversed.down)
}

func sameSet(got []sbr.ID, want ids) bool {
	for _, id := range got {
		if !want[id] {
			return false
		}
	}
	return len(got) == len(want)
}

func TestTwin_RandomViews(t *testing.T) {
	finals := map[sbr.Kind]int{}
	doubles := 0
	everySeed(t, 40_000, func(t *testing.T, r source) {
		s, v, threshold := r.strategy(), r.view(), r.threshold()
		compare(t, s, v, threshold)
		d := sbr.Decide(s, &v, threshold)
		finals[d.Final]++
		finals[d.Reversed(&v, threshold).Final]++
		if strings.Contains(d.Reason, "second pass") {
			doubles++
		}
	})
	// The views are worth nothing if they do not reach every rule.
	for k := sbr.None; k <= sbr.AcquireLeaseAndDownIndirectlyConnected; k++ {
		assert.Greater(t, finals[k], 20, k.String())
	}
	assert.Greater(t, doubles, 20, "second passes that end in down-all")
}

// all are the strategies of the exhaustive tests, for clusters of about four.
var all = []sbr.Strategy{
	strategies.KeepMajority{}, strategies.KeepMajority{Role: "r"},
	strategies.StaticQuorum{QuorumSize: 2}, strategies.StaticQuorum{QuorumSize: 3}, strategies.StaticQuorum{QuorumSize: 2, Role: "r"},
	strategies.KeepOldest{}, strategies.KeepOldest{DownIfAlone: true}, strategies.KeepOldest{DownIfAlone: true, Role: "r"},
	strategies.KeepReferee{Address: "B", DownAllIfLessThanNodes: 2},
	strategies.DownAll{},
	strategies.LeaseMajority{AcquireLeaseDelayForMinority: 1}, strategies.LeaseMajority{AcquireLeaseDelayForMinority: 1, Role: "r"},
}

// everyCleanView calls f with every view of n members: each status, each way to cut. The youngest has the
// lowest address, so that age and address do not say the same; the second and the last have the role.
func everyCleanView(n int, f func(sbr.View)) {
	members := make([]sbr.Member, n)
	for i := range members {
		members[i] = member(string(rune('A' + i)))
		members[i].Born = int64(n - i)
		if i == 1 || i == n-1 {
			members[i].Roles = []string{"r"}
		}
	}
	views := 1
	for range n {
		views *= 12
	}
	for code := range views {
		ms, rest := slices.Clone(members), code
		for i := range ms {
			ms[i].Status, ms[i].Unreachable = sbr.Status(rest%6), rest/6%2 == 1
			rest /= 12
		}
		f(sbr.View{Self: "A", Members: ms})
	}
}

// Every clean view of up to four members: 12^0 + … + 12^4 = 22621 views, for each of the strategies.
func TestTwin_EveryCleanViewOfFourMembers(t *testing.T) {
	checked := 0
	for n := range 5 {
		everyCleanView(n, func(v sbr.View) {
			for _, s := range all {
				if !t.Failed() {
					compare(t, s, v, 0.5)
				}
			}
			checked++
		})
	}
	assert.Equal(t, 22621, checked)
}

// Every set of reports among three members, with each seen-by set, each way to cut and two statuses: 64 x 8 x
// 8 x 8 = 32768 views.
func TestTwin_EveryReportOfThreeMembers(t *testing.T) {
	pairs := parseReports("A<>B A<>C B<>C")
	names := []sbr.ID{"A", "B", "C"}
	some := []sbr.Strategy{
		strategies.KeepMajority{Role: "r"}, strategies.StaticQuorum{QuorumSize: 2}, strategies.KeepOldest{DownIfAlone: true}, strategies.LeaseMajority{},
	}
	checked, step := 0, 1
	if testing.Short() {
		step = 11
	}
	for code := 0; code < 1<<15; code += step {
		v := sbr.View{Self: "A", Members: slices.Clone(draw("A B* C*").members)}
		bit := func(i int) bool { return code>>i&1 == 1 }
		for i := range names {
			v.Members[i].Unreachable = bit(i)
			if bit(3 + i) {
				v.SeenBy = append(v.SeenBy, names[i])
			}
			if bit(6 + i) {
				v.Members[i].Status = sbr.Exiting
			}
		}
		for i, p := range pairs {
			if bit(9 + i) {
				v.Reports = append(v.Reports, p)
			}
		}
		for _, s := range some {
			if !t.Failed() {
				compare(t, s, v, 0.7)
			}
		}
		checked++
	}
	assert.Equal(t, (1<<15+step-1)/step, checked)
}

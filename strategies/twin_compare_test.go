package strategies_test

import (
	"maps"
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
	if got.Kind == want.kind && got.Delay == want.delay && got.Final == want.final &&
		sameSet(got.Down, want.down) &&
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
	strategies.StaticQuorum{QuorumSize: 2}, strategies.StaticQuorum{QuorumSize: 3},
	strategies.StaticQuorum{QuorumSize: 2, Role: "r"},
	strategies.KeepOldest{}, strategies.KeepOldest{DownIfAlone: true},
	strategies.KeepOldest{DownIfAlone: true, Role: "r"},
	strategies.KeepReferee{Address: "B", DownAllIfLessThanNodes: 2},
	strategies.DownAll{},
	strategies.LeaseMajority{AcquireLeaseDelayForMinority: 1},
	strategies.LeaseMajority{AcquireLeaseDelayForMinority: 1, Role: "r"},
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
		strategies.KeepMajority{Role: "r"}, strategies.StaticQuorum{QuorumSize: 2},
		strategies.KeepOldest{DownIfAlone: true}, strategies.LeaseMajority{},
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

// The second half of the twin: sbr.Decide and Decision.Reversed.

type twinDecision struct {
	answer
	final sbr.Kind
	down  ids
}

func twinDecide(s sbr.Strategy, w world, threshold float64) twinDecision {
	a := twinAnswer(s, w)
	d := twinDecision{answer: a, final: a.kind}
	switch a.kind {
	case sbr.DownIndirectlyConnected, sbr.AcquireLeaseAndDownIndirectlyConnected:
		extra, ok := twinExtra(s, w)
		if !ok {
			d.final, d.down = sbr.DownAll, w.downable()
			return d
		}
		d.down = w.downable().intersect(w.indirect().union(extra))
		return twinSafeguard(d, w, threshold)
	default:
		d.down = twinNodesToDown(a.kind, w)
		return d
	}
}

func twinNodesToDown(k sbr.Kind, w world) ids {
	switch k {
	case sbr.DownUnreachable, sbr.AcquireLeaseAndDownUnreachable:
		return w.downable().intersect(w.unreachable)
	case sbr.DownReachable:
		return w.downable().minus(w.unreachable)
	case sbr.DownAll:
		return w.downable()
	case sbr.ReverseDownIndirectlyConnected:
		return w.downable().intersect(w.indirect()).union(w.downable().minus(w.unreachable))
	case sbr.None:
		return ids{}
	default:
		panic("not a decision about a clean cut")
	}
}

// twinExtra is the second pass of Akka and Pekko, with the pruning of akka.net#7141.
func twinExtra(s sbr.Strategy, w world) (extra ids, ok bool) {
	if len(w.unreachable.minus(w.indirect())) == 0 {
		return ids{}, true
	}
	rest := w
	rest.records = maps.Clone(w.records)
	everySubject := ids{}
	downable, crossed, seen := w.downable(), w.crossed(), w.throughSeen()
	for r := range w.records {
		everySubject[r.subject] = true
		dropped := !downable[r.observer] || !downable[r.subject] ||
			crossed[r.observer] && crossed[r.subject] ||
			seen[r.observer] && seen[r.subject] ||
			w.agreedGone(r.observer)
		if dropped {
			delete(rest.records, r)
		}
	}
	rest.unreachable = ids{}
	for r := range rest.records {
		rest.unreachable[r.subject] = true
	}
	// Ours: the reference knows of no unreachable member without a record.
	for id := range w.unreachable.intersect(w.downable()).minus(w.indirect()).minus(everySubject) {
		rest.unreachable[id] = true
	}
	a := twinAnswer(s, rest)
	if a.kind == sbr.DownIndirectlyConnected || a.kind == sbr.AcquireLeaseAndDownIndirectlyConnected {
		return nil, false
	}
	return twinNodesToDown(a.kind, rest), true
}

func (w world) agreedGone(observer sbr.ID) bool {
	if !w.unreachable[observer] {
		return false
	}
	some := false
	for id := range w.members {
		if w.unreachable[id] {
			continue
		}
		some = true
		if !w.records[record{id, observer}] {
			return false
		}
	}
	return some
}

func twinSafeguard(d twinDecision, w world, threshold float64) twinDecision {
	base := len(w.base(""))
	if threshold < 1 && base > 0 && len(d.down) > 0 && float64(len(d.down))/float64(base) >= threshold {
		d.final, d.down = sbr.DownAll, w.downable()
	}
	return d
}

func twinReversed(d twinDecision, w world, threshold float64) twinDecision {
	switch d.final {
	case sbr.AcquireLeaseAndDownUnreachable:
		d.final = sbr.DownReachable
		d.down = twinNodesToDown(d.final, w)
	case sbr.AcquireLeaseAndDownIndirectlyConnected:
		d.final = sbr.ReverseDownIndirectlyConnected
		d.down = twinNodesToDown(d.final, w)
		return twinSafeguard(d, w, threshold)
	}
	return d
}

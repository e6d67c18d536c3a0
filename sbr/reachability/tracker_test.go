package reachability_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// world is a number of trackers whose probes and reports go through a link matrix. One round is one
// Settings.Interval.
type world struct {
	cfg      reachability.Settings
	now      time.Duration
	ids      []sbr.ID
	trackers map[sbr.ID]*reachability.Tracker
	views    map[sbr.ID]map[sbr.ID]bool      // observer -> unreachable
	opinions map[sbr.ID]reachability.Opinion // what each told the others last
	linked   func(a, b sbr.ID) bool
	lost     func() bool // whether a report is lost
	probes   int         // the most probes one member made in one round
}

func newWorld(n int) *world {
	w := &world{cfg: reachability.DefaultSettings(), trackers: map[sbr.ID]*reachability.Tracker{},
		views: map[sbr.ID]map[sbr.ID]bool{}, opinions: map[sbr.ID]reachability.Opinion{}}
	w.cfg.AllHeard = true
	for i := range n {
		w.ids = append(w.ids, sbr.ID(fmt.Sprintf("n%d#uid", i+1)))
	}
	for _, id := range w.ids {
		t := reachability.New(w.cfg, id)
		for _, other := range w.ids {
			t.Add(other)
		}
		w.trackers[id], w.views[id] = t, map[sbr.ID]bool{}
	}
	w.linked = func(a, b sbr.ID) bool { return true }
	w.lost = func() bool { return false }
	return w
}

func (w *world) round() {
	w.now += w.cfg.Interval
	for _, id := range w.ids {
		probes := w.trackers[id].Probes()
		w.probes = max(w.probes, len(probes))
		for len(probes) > 0 {
			for _, to := range probes {
				w.trackers[id].Probed(to, w.linked(id, to))
			}
			probes = w.trackers[id].Urgent()
		}
	}
	for _, id := range w.ids {
		w.opinions[id] = w.form(id, true)
	}
	for _, from := range w.ids {
		bad, good := w.opinions[from].Bad, w.opinions[from].Good
		if len(bad)+len(good) == 0 {
			continue
		}
		hearers := w.hearers(from)
		for _, to := range w.ids {
			if to != from && hearers[to] && !w.lost() {
				w.trackers[to].Reported(w.now, from, 0, bad, good)
				for _, at := range w.trackers[to].Urgent() {
					w.trackers[to].Probed(at, w.linked(to, at))
				}
			}
		}
	}
	for _, id := range w.ids {
		w.form(id, false)
	}
}

// hearers are the members that gossip of from reaches, over others if need be.
func (w *world) hearers(from sbr.ID) map[sbr.ID]bool {
	reached, todo := map[sbr.ID]bool{from: true}, []sbr.ID{from}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for _, id := range w.ids {
			if !reached[id] && w.linked(at, id) {
				reached[id] = true
				todo = append(todo, id)
			}
		}
	}
	return reached
}

func (w *world) form(id sbr.ID, refresh bool) reachability.Opinion {
	o := w.trackers[id].Form(w.now, refresh)
	for _, c := range o.Changed {
		w.views[id][c.ID] = c.Unreachable
	}
	return o
}

// sees lists the members that id calls unreachable, in the order of the ids.
func (w *world) sees(id sbr.ID) (un []sbr.ID) {
	for _, x := range w.ids {
		if w.views[id][x] {
			un = append(un, x)
		}
	}
	return un
}

func (w *world) cut(side ...int) {
	w.linked = func(a, b sbr.ID) bool {
		return slices.Contains(side, slices.Index(w.ids, a)) == slices.Contains(side, slices.Index(w.ids, b))
	}
}

func (w *world) roundsUntil(t *testing.T, limit int, ok func() bool) int {
	t.Helper()
	for i := 1; i <= limit; i++ {
		w.round()
		if ok() {
			return i
		}
	}
	require.FailNow(t, "not within the bound", "%d rounds", limit)
	return 0
}

func TestTracker_BothSidesOfACutNoticeWithinTriesPlusOneRound(t *testing.T) {
	for _, side := range [][]int{{3, 4}, {4}, {0}, {0, 1}} {
		w := newWorld(5)
		for range 10 {
			w.round()
		}
		w.cut(side...)
		w.roundsUntil(t, w.cfg.Tries+1, func() bool {
			for i, id := range w.ids {
				want := 5 - len(side)
				if !slices.Contains(side, i) {
					want = len(side)
				}
				if len(w.sees(id)) != want {
					return false
				}
			}
			return true
		})
		for _, id := range w.ids {
			require.Empty(t, indirectlyConnected(w, id), "a clean cut leaves nobody between the sides")
		}
	}
}

func indirectlyConnected(w *world, id sbr.ID) []sbr.ID {
	members := make([]sbr.Member, len(w.ids))
	for i, x := range w.ids {
		members[i] = sbr.Member{ID: x, Name: string(x), Status: sbr.Up, Unreachable: w.views[id][x]}
	}
	v := sbr.NewView(id, members, w.opinions[id].Reports, nil)
	return v.IndirectlyConnected()
}

// A lone node has nobody to agree with: it doubles the number of members it probes until it has missed them
// all.
func TestTracker_LoneNodeNoticesInLogarithmicTime(t *testing.T) {
	for n, limit := range map[int]int{10: 6, 100: 10, 500: 24} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newWorld(1)
			lone := w.trackers[w.ids[0]]
			for i := 1; i < n; i++ {
				lone.Add(sbr.ID(fmt.Sprintf("n%d#uid", i+1)))
			}
			lost := 0
			rounds := 0
			for ; lost < n-1 && rounds < limit; rounds++ {
				w.now += w.cfg.Interval
				probes := lone.Probes()
				require.LessOrEqual(t, len(probes), w.cfg.Budget)
				for ; len(probes) > 0; probes = lone.Urgent() {
					for _, id := range probes {
						lone.Probed(id, false)
					}
				}
				lost += len(lone.Form(w.now, false).Changed)
			}
			require.Equal(t, n-1, lost, "after %d rounds", rounds)
		})
	}
}

// A member that loses packets has as many links that may look broken as there are members. Whether it does seldom
// depends on the loss, not on the size of the cluster.
func TestTracker_LossLooksLikeACutAsSeldomInALargeCluster(t *testing.T) {
	for _, n := range []int{10, 40, 160} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(n)
			random := rand.New(rand.NewPCG(1, 1))
			w.linked = func(a, b sbr.ID) bool { return a != w.ids[3] && b != w.ids[3] || random.Float64() >= 0.3 }
			doubts, rounds := 0, 60
			for range rounds {
				w.round()
				for _, id := range w.ids {
					if len(w.sees(id)) > 0 {
						doubts++
					}
				}
			}
			require.Less(t, doubts, rounds*n/100)
		})
	}
}

// One member with a bad link accuses everybody; the others can be asked and disagree. It is condemned itself
// instead.
func TestTracker_OneLossyMemberCondemnsNobodyElse(t *testing.T) {
	w := newWorld(6)
	bad := w.ids[5]
	w.linked = func(a, b sbr.ID) bool { return a != bad && b != bad }
	for range 20 {
		w.round()
	}
	for _, id := range w.ids[:5] {
		require.Equal(t, []sbr.ID{bad}, w.sees(id))
	}
}

// A cut between two members that everybody else reaches is invisible to Serf; both ends are indirectly
// connected.
func TestTracker_CutBetweenTwoIsMutual(t *testing.T) {
	w := newWorld(5)
	a, b := w.ids[1], w.ids[3]
	w.linked = func(x, y sbr.ID) bool { return !(x == a && y == b) && !(x == b && y == a) }
	for range 8 {
		w.round()
	}
	for _, id := range w.ids {
		require.Equal(t, []sbr.ID{a, b}, indirectlyConnected(w, id), "seen by %s", id)
	}
	require.Equal(t, []sbr.ID{a, b}, w.sees(w.ids[0]))
	w.linked = func(x, y sbr.ID) bool { return true }
	w.roundsUntil(t, 5, func() bool {
		return !slices.ContainsFunc(w.ids, func(id sbr.ID) bool { return len(w.sees(id)) > 0 })
	})
}

// A bridge that both sides reach is nobody's to condemn; the members that it connects are all indirectly
// connected.
func TestTracker_Bridge(t *testing.T) {
	w := newWorld(5)
	// n1 | n2 n3 | n4 n5: n1 is the bridge
	side := func(id sbr.ID) int { return (slices.Index(w.ids, id) + 1) / 2 }
	w.linked = func(a, b sbr.ID) bool { return side(a) == side(b) || side(a) == 0 || side(b) == 0 }
	for range 10 {
		w.round()
	}
	require.Equal(t, w.ids[1:], indirectlyConnected(w, w.ids[0]))
	for _, id := range w.ids {
		require.NotContains(t, w.sees(id), w.ids[0])
	}
}

// Reports travel badly on a small side. Losing most of them changes nothing once the sides have agreed.
func TestTracker_LostReportsTakeNothingBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w := newWorld(5)
	w.cut(3, 4)
	for range 6 {
		w.round()
	}
	w.lost = func() bool { return rng.IntN(10) > 0 }
	for range 60 {
		w.round()
		require.Len(t, w.sees(w.ids[0]), 2)
		require.Len(t, w.sees(w.ids[4]), 3)
	}
}

func TestTracker_HealIsNoticedByTheNextProbes(t *testing.T) {
	w := newWorld(7)
	w.cut(0, 1, 2)
	for range 10 {
		w.round()
	}
	w.linked = func(a, b sbr.ID) bool { return true }
	w.roundsUntil(t, 4, func() bool {
		return !slices.ContainsFunc(w.ids, func(id sbr.ID) bool { return len(w.sees(id)) > 0 })
	})
	for range 15 {
		w.round()
	}
	w.probes = 0
	w.round()
	require.Equal(t, w.cfg.Neighbours, w.probes, "peace again: as few probes as before")
}

// The same few observers go on reporting a subject; a large side does not shout all together.
func TestTracker_FewObserversSpeakForALargeSide(t *testing.T) {
	w := newWorld(40)
	w.cut(39)
	for round := range 20 { // the others miss it by and by as well
		w.round()
		speakers := 0
		for _, id := range w.ids[:39] {
			if len(w.opinions[id].Bad) > 0 {
				speakers++
			}
		}
		if round >= 3 { // in round 2 those speak as well that found it in their sweep
			require.Equal(t, w.cfg.Neighbours, speakers, "round %d", round)
		}
	}
	for _, id := range w.ids[:39] {
		require.Equal(t, []sbr.ID{w.ids[39]}, w.sees(id))
	}
}

func TestTracker_WhatSerfSaysCounts(t *testing.T) {
	cfg := reachability.DefaultSettings()
	cfg.Neighbours = 0 // no probes at all
	tr := reachability.New(cfg, "a")
	tr.Add("a")
	tr.Add("b")
	require.Empty(t, tr.Probes())
	tr.SetFailed("b", true)
	tr.SetFailed("nobody", true)
	require.Equal(t, []sbr.Reachability{{ID: "b", Unreachable: true}}, tr.Form(1, false).Changed)
	require.Empty(t, tr.Form(2, false).Changed)
	tr.SetFailed("b", false)
	require.Equal(t, []sbr.Reachability{{ID: "b"}}, tr.Form(3, false).Changed)
	tr.Add("c")
	tr.Reported(3, "c", 0, []sbr.ID{"b"}, nil) // the other members have probes
	require.Empty(t, tr.Form(3, false).Changed)
	tr.Remove("b")
	tr.Remove("b")
	require.Empty(t, tr.Form(4, false).Changed)
}

func TestTracker_ReportsExpireAndStrangersAreNotHeard(t *testing.T) {
	cfg := reachability.DefaultSettings()
	tr := reachability.New(cfg, "a")
	for _, id := range []sbr.ID{"b", "c"} {
		tr.Add(id)
	}
	tr.Reported(0, "stranger", 0, []sbr.ID{"b"}, nil)
	require.Empty(t, tr.Form(0, false).Reports)
	tr.Reported(0, "c", 0, []sbr.ID{"b", "stranger"}, nil)
	require.Equal(t, []sbr.Report{{Observer: "c", Subject: "b"}}, tr.Form(1, false).Reports)
	require.Empty(t, tr.Form(cfg.ReportTTL(), false).Reports)
	tr.Reported(0, "c", 0, []sbr.ID{"b"}, nil)
	tr.Reported(1, "c", 0, nil, []sbr.ID{"b"})
	require.Empty(t, tr.Form(2, false).Reports, "taken back")
}

// A member that stood still passes on what it had received before: reports that were taken back long ago.
func TestTracker_AReportFromBeforeIsNotHeard(t *testing.T) {
	cfg := reachability.DefaultSettings()
	for name, c := range map[string]struct {
		age  time.Duration
		want int
	}{
		"of long ago":                  {10*time.Second - 1, 0},
		"it was overtaken on its way":  {10 * time.Second, 1},
		"newer":                        {20 * time.Second, 1},
		"of a version without the age": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tr := reachability.New(cfg, "a")
			for _, id := range []sbr.ID{"b", "c"} {
				tr.Add(id)
			}
			tr.Reported(0, "c", time.Second, []sbr.ID{"b"}, nil)
			tr.Reported(0, "c", 10*time.Second+3*cfg.Interval, nil, []sbr.ID{"b"})
			tr.Reported(1, "c", c.age, []sbr.ID{"b"}, nil)
			require.Len(t, tr.Form(2, false).Reports, c.want)
		})
	}
}

func TestSettings_EveryProblemAtOnce(t *testing.T) {
	require.NoError(t, reachability.DefaultSettings().Validate())
	require.NoError(t, reachability.Settings{}.Validate(), "no probes need no times")
	err := reachability.Settings{Neighbours: 3, Timeout: 0, Interval: 0, Tries: 0}.Validate()
	for _, key := range []string{"probe.timeout", "probe.interval", "probe.tries"} {
		require.ErrorContains(t, err, key)
	}
	require.ErrorContains(t, reachability.Settings{Neighbours: -1}.Validate(), "probe.neighbours")
}

// In a cluster of usual size an opinion is formed of each report at once, in a large one twice a second at
// most.
func TestTracker_GathersReportsInALargeCluster(t *testing.T) {
	tr := reachability.New(reachability.DefaultSettings(), "self")
	for i := range 48 {
		require.Zero(t, tr.Gather(), "%d others", i)
		tr.Add(sbr.ID(fmt.Sprintf("n%d", i)))
	}
	require.Equal(t, 500*time.Millisecond, tr.Gather())
}

func BenchmarkForm(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tr := reachability.New(reachability.DefaultSettings(), "self")
			for i := range n {
				tr.Add(sbr.ID(fmt.Sprint(i)))
			}
			for b.Loop() {
				tr.Form(0, false)
			}
		})
	}
}

// A member counts as heard while it reports a member (Settings.AllHeard): not for reports about a member that
// is gone.
func TestTracker_ReportsAboutAMemberThatIsGoneCountNoLonger(t *testing.T) {
	cfg := reachability.DefaultSettings()
	cfg.AllHeard, cfg.Neighbours = true, 1
	tr := reachability.New(cfg, "self")
	ids := []sbr.ID{"silent", "gone"}
	for i := range 30 {
		ids = append(ids, sbr.ID(fmt.Sprintf("n%d", i)))
	}
	for _, id := range ids {
		tr.Add(id)
	}
	tr.Reported(0, "silent", 0, []sbr.ID{"gone"}, nil)
	tr.Remove("gone")
	for range cfg.TriesAmong(len(ids)) {
		tr.Probed("silent", false)
	}
	for _, id := range ids[2:] {
		tr.Reported(0, id, 0, []sbr.ID{"silent"}, nil)
	}
	o := tr.Form(1, true)
	require.Len(t, o.Reports, 31)
	require.Empty(t, o.Bad, "enough others tell it")
}

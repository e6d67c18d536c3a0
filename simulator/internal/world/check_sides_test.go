package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// smallest is a world of three members without a watch, the least of whom is how many must be there before
// they arm.
func smallest(t *testing.T, least int) *World {
	t.Helper()
	o := DefaultOptions()
	o.Trace, o.Nodes = true, 3
	o.Resolver.MinMembers = least
	o.Resolver.Watched = false
	o.Strategy = strategies.LeaseMajority{}
	w, err := New(o)
	require.NoError(t, err)
	return w
}

// Two sides that are both up break S1, but for a member that cannot arm, because fewer than min-members are
// there.
func TestOneSide_WhoIsNoSideYet(t *testing.T) {
	const armed, cut = time.Minute, 4 * time.Minute // by then everybody has armed, or what happened before is decided
	for name, tc := range map[string]struct {
		least  int
		play   func(w *World)
		end    time.Duration
		state  sbr.State // of n3 at the end
		broken bool
	}{
		"both have armed": {3, func(w *World) {
			w.At(cut, func() { w.Partition([]int{0, 1}, []int{2}) })
		}, cut, sbr.StateUp, true},
		"both have armed, and fewer than min-members are left": {3, func(w *World) {
			w.At(armed, w.Nodes()[0].Crash)
			w.At(cut, func() { w.Partition([]int{1}, []int{2}) })
		}, cut, sbr.StateUp, true},
		"it has not armed, and could": {3, func(w *World) {
			w.At(time.Second, func() { w.Partition([]int{0, 1}, []int{2}) })
		}, 2 * time.Second, sbr.StateArming, true},
		"nobody has armed, nor can": {4, func(w *World) {
			w.At(armed, func() { w.Partition([]int{0, 1}, []int{2}) })
		}, 2 * cut, sbr.StateArming, false},
		"the other one has armed, it cannot": {3, func(w *World) {
			w.At(armed, w.Nodes()[0].Crash)
			w.At(2*armed, w.Nodes()[2].Crash)
			w.At(3*armed, w.Nodes()[2].Restart) // the verdict about the crashed member was written
			w.At(cut, func() { w.Partition([]int{1}, []int{2}) })
		}, 2 * cut, sbr.StateArming, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := smallest(t, tc.least)
			tc.play(w)
			w.Run(tc.end)
			require.Equal(t, tc.state, w.nodes[2].proc.r.State(), w.Story())
			(&oneSide{}).rested(w)
			if !tc.broken {
				require.Empty(t, w.Violations(), w.Story())
				return
			}
			require.NotEmpty(t, w.Violations(), w.Story())
			require.Equal(t, "S1", w.Violations()[0].Promise)
		})
	}
}

// A member that can be told its fate is held to it, armed or not.
func TestOneSide_EnemiesThatReachEachOther(t *testing.T) {
	w := smallest(t, 4)
	w.Run(time.Minute)
	p, q := w.nodes[0].proc, w.nodes[1].proc
	require.True(t, p.forming())
	p.r.Step(p.clock(), sbr.Told{From: q.id, Verdict: sbr.Verdict{Token: 1, Survivors: []sbr.ID{p.id}, Down: []sbr.ID{q.id}}})
	q.r.Step(q.clock(), sbr.Told{From: p.id, Verdict: sbr.Verdict{Token: 2, Survivors: []sbr.ID{q.id}, Down: []sbr.ID{p.id}}})
	(&oneSide{}).rested(w)
	require.Equal(t, "S1 broken at 60.000s: n1#1 and n2#1 are both up and have downed each other", w.Violations()[0].String())
}

// Three links that work one way, in a circle: every member hears of every other, so Serf's suspicions are refuted, and
// without own probes no member notices. With probes the members that stay up must reach each other.
func TestOneSide_WhoHearsOfEachOtherWithoutProbes(t *testing.T) {
	for probes, broken := range map[bool]bool{false: false, true: true} {
		w := smallest(t, 3)
		w.Run(time.Minute)
		if w.opts.Probe = (reachability.Settings{}); probes {
			w.opts.Probe = reachability.DefaultSettings()
		}
		for i := range 3 {
			w.setCut((i+1)%3, i)
		}
		w.net.valid = false
		require.Len(t, w.up(), 3)
		(&oneSide{}).rested(w)
		require.Equal(t, broken, len(w.Violations()) > 0, "probes: %t", probes)
		w.setCut(0, 1)
		(&oneSide{}).rested(w)
		require.NotEmpty(t, w.Violations(), "what n1 says gets to nobody")
	}
}

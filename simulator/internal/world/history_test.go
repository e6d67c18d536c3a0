package world

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// recorded is a world of five with a history: a partition, a restart, a pause, a store that fails for one
// node.
func recorded(t *testing.T, seed uint64, history bool) *World {
	t.Helper()
	o := DefaultOptions()
	o.Seed, o.Trace = seed, history
	o.Resolver.Watched, o.Probe = true, reachability.DefaultSettings()
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	w, err := New(o)
	require.NoError(t, err)
	w.At(10*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) })
	w.At(11*time.Second, func() { w.SetStore(StoreFault{Access: Silent}, 4) })
	w.At(45*time.Second, func() { w.Nodes()[1].Pause(5 * time.Second) })
	w.At(90*time.Second, func() { w.Heal() })
	w.At(100*time.Second, func() { w.Nodes()[3].Restart() })
	w.At(110*time.Second, func() { w.Nodes()[2].Leave() })
	w.At(115*time.Second, func() { w.Nodes()[1].Crash() })
	w.At(116*time.Second, func() { w.Cut(0, 3, false) })
	w.Run(118 * time.Second)
	return w
}

// Replayed to the end, the views are those that the membership has.
func TestHistory_Views(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		w := recorded(t, seed, true)
		sights, failures := make(map[[2]string]string), 0
		for _, c := range w.History().Changes {
			switch {
			case c.As != "":
				sights[[2]string{*c.Node, *c.Sees}] = c.As
				if c.As == seesFailed {
					failures++
				}
			case c.State == stateStarting:
				for _, s := range w.nodes {
					sights[[2]string{*c.Node, s.Name}] = seesUnknown
				}
			}
		}
		require.GreaterOrEqual(t, failures, 12, "each of the five failed whom it could not reach")
		for i, o := range w.nodes {
			for j, s := range w.nodes {
				if i == j || !o.Up() {
					continue
				}
				want := seesUnknown
				if o.proc.knows(s.proc) {
					want = either(o.proc.peer(s.proc).status == failed, seesFailed, seesAlive)
				}
				got := cmp.Or(sights[[2]string{o.Name, s.Name}], seesAlive)
				if got == seesMissed {
					got = seesAlive // as far as the membership knows
				}
				require.Equal(t, want, got, "seed %d: %s of %s", seed, o.Name, s.Name)
			}
		}
	}
}

// A process that starts anew says whom it sees, also where its predecessor had seen the same.
func TestHistory_RestartSeesAnew(t *testing.T) {
	o := DefaultOptions()
	o.Trace = true
	o.Strategy = strategies.LeaseMajority{}
	w, err := New(o)
	require.NoError(t, err)
	w.At(7*time.Second, func() {
		w.Nodes()[2].Crash()
		w.Nodes()[2].Restart()
	})
	w.Run(10 * time.Second)
	var seen []string
	for _, c := range w.History().Changes {
		if c.As == seesAlive && *c.Node == "n3" {
			seen = append(seen, *c.Sees)
		}
	}
	require.ElementsMatch(t, []string{"n1", "n2", "n4", "n5"}, seen)
}

func TestHistory_IsBounded(t *testing.T) {
	w := recorded(t, 1, true)
	r := w.history
	r.settle()
	before := len(r.h.Changes)
	r.size = maxHistory - 1
	r.add(Change{Holder: r.name(1)})
	require.Len(t, r.h.Changes, before+1)
	require.False(t, w.History().Truncated)
	r.add(Change{Holder: r.name(2)})
	require.Len(t, r.h.Changes, before+1)
	require.True(t, w.History().Truncated)
}

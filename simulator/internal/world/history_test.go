package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// recorded is a world of five with a history: a partition, a restart, a pause, a store that fails for one node.
func recorded(t *testing.T, seed uint64, history bool) *World {
	t.Helper()
	o := DefaultOptions()
	o.Seed, o.Trace = seed, history
	o.KeepNames, o.Refuse, o.Resolver.Watched, o.Probe = true, true, true, reachability.DefaultSettings()
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
	w.At(116*time.Second, func() { w.CutOneWay(0, 3) })
	w.Run(118 * time.Second)
	return w
}

// Replayed to the end, the views are those that the membership has.
func TestHistory_Views(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		w := recorded(t, seed, true)
		sights, failures := make(map[[2]int]Sight), 0
		for o := range w.nodes {
			for s := range w.nodes {
				sights[[2]int{o, s}] = Alive
			}
		}
		for _, c := range w.History().Changes {
			switch v := c.What.(type) {
			case Viewed:
				sights[[2]int{v.Observer, v.Subject}] = v.Sight
				if v.Sight == Failed {
					failures++
				}
			case Lived:
				for s := range w.nodes {
					if v.Life == Booting {
						sights[[2]int{v.Node, s}] = Unknown
					}
				}
			}
		}
		require.GreaterOrEqual(t, failures, 12, "each of the five failed whom it could not reach")
		for i, o := range w.nodes {
			for j, s := range w.nodes {
				if i == j || !o.Up() {
					continue
				}
				want := Unknown
				if o.proc.knows(s.proc) {
					want = Alive
					if o.proc.peer(s.proc).status == failed {
						want = Failed
					}
				}
				got := sights[[2]int{i, j}]
				if got == Missed {
					got = Alive // as far as the membership knows
				}
				require.Equal(t, want, got, "seed %d: %s of %s", seed, o.Name, s.Name)
			}
		}
	}
}

// Who starts anew says whom it sees, also where its predecessor had seen the same.
func TestHistory_RestartSeesAnew(t *testing.T) {
	o := DefaultOptions()
	o.Trace, o.KeepNames = true, true
	o.Strategy = strategies.LeaseMajority{}
	w, err := New(o)
	require.NoError(t, err)
	w.At(7*time.Second, func() {
		w.Nodes()[2].Crash()
		w.Nodes()[2].Restart()
	})
	w.Run(10 * time.Second)
	var seen []int
	for _, c := range w.History().Changes {
		if v, ok := c.What.(Viewed); ok && v.Observer == 2 && v.Sight == Alive && !v.Former {
			seen = append(seen, v.Subject)
		}
	}
	require.ElementsMatch(t, []int{0, 1, 3, 4}, seen)
}

func TestHistory_IsBounded(t *testing.T) {
	w := recorded(t, 1, true)
	r := w.history
	r.settle()
	before := len(r.h.Changes)
	r.size = maxHistory - 1
	r.add(Held{1})
	require.Len(t, r.h.Changes, before+1)
	require.False(t, w.History().Truncated)
	r.add(Held{2})
	require.Len(t, r.h.Changes, before+1)
	require.True(t, w.History().Truncated)
}

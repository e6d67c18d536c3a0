package world

import (
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/race"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// large is a cluster as it is played with default settings: with own probes and the watch.
func large(seed uint64, nodes int) Options {
	o := DefaultOptions()
	o.Seed, o.Nodes = seed, nodes
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 6 * time.Second}
	o.Network.Probes, o.Resolver.Watched, o.Refuse, o.KeepNames = true, true, true, true
	return o
}

// sixToFour cuts six tenths of the nodes off from the others.
func sixToFour(nodes int) [][]int {
	all := seq(nodes)
	return [][]int{all[:nodes*6/10], all[nodes*6/10:]}
}

// resolve plays such a cut to its end.
func resolve(t testing.TB, o Options) *World {
	t.Helper()
	groups := sixToFour(o.Nodes)
	o.Sides = groups
	w, err := New(o)
	require.NoError(t, err)
	w.At(10*time.Second, func() { w.Partition(groups...) })
	w.Run(2 * time.Minute)
	require.True(t, w.Settled())
	return w
}

func TestLarge_SplitOfTenThousandIsResolvedInLittleMemory(t *testing.T) {
	nodes := 10_000
	if race.Enabled {
		nodes = 2000
	}
	w := resolve(t, large(1, nodes))
	require.Empty(t, w.FinishSafety())
	require.Len(t, w.Survivors(), nodes*6/10)
	require.Len(t, w.Down(), nodes*4/10)
	require.Equal(t, "n1", w.Survivors()[0])
	require.Less(t, w.Stirred(), time.Minute)
	v, holder := w.Verdict()
	require.EqualValues(t, 1, v.Token)
	require.Len(t, v.Survivors, nodes*6/10)
	require.Empty(t, holder, "released")
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	require.Less(t, sample[0].Value.Uint64(), uint64(2<<30))
}

// What followers are left out of decides nothing: whoever is played in full, the same side wins and the same members go down.
func TestFollowers_SameOutcomeAsWithoutThem(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		o := large(seed, 40)
		full := resolve(t, o)
		o.Resolvers = 10
		few := resolve(t, o)
		require.Nil(t, full.witnesses)
		require.Less(t, len(few.witnesses), 15)
		require.Equal(t, full.Survivors(), few.Survivors())
		require.Equal(t, full.Down(), few.Down())
		require.Empty(t, few.Finish())
	}
}

// Safety does not depend on who is a follower, whatever happens.
func TestRandom_SafetyWithFollowers(t *testing.T) {
	explore(t, 2000, func(seed uint64) plan {
		p := randomPlan(seed)
		p.options.Resolvers, p.alone = 1, true
		p.options.Nodes += int(seed % 8)
		for i := range p.options.Nodes % 3 {
			p.options.Harmed = append(p.options.Harmed, i)
		}
		return p
	})
}

func TestFollowers_ObeyWhoeverDecides(t *testing.T) {
	for _, s := range []sbr.Strategy{
		strategies.KeepMajority{}, strategies.KeepOldest{}, strategies.StaticQuorum{QuorumSize: 21},
		strategies.KeepReferee{Address: "10.0.0.1:7946", DownAllIfLessThanNodes: 1}, strategies.LeaseMajority{},
	} {
		o := large(1, 40)
		o.Strategy, o.Resolvers = s, 10
		w := resolve(t, o)
		require.Len(t, w.Survivors(), 24, "%T", s)
		require.Len(t, w.Down(), 16, "%T", s)
	}
}

// A follower that did not run while its side was downed learns its fate when it runs again, and goes down.
func TestFollowers_PausedThroughEverything(t *testing.T) {
	o := large(1, 40)
	o.Resolvers, o.Resolver.Watched, o.Sides = 10, false, sixToFour(40)
	w, err := New(o)
	require.NoError(t, err)
	var paused *Node
	for _, n := range w.Nodes()[24:] {
		if !n.proc.full {
			paused = n
		}
	}
	w.At(10*time.Second, func() { w.Partition(o.Sides...) })
	w.At(15*time.Second, func() { paused.Pause(3 * time.Minute) })
	w.Run(3 * time.Minute)
	require.True(t, paused.Up())
	w.Run(4 * time.Minute)
	require.False(t, paused.Up())
	require.Contains(t, paused.DownReason(), "verdict 1 by n1 does not list this member")
	require.Empty(t, w.FinishSafety())
}

// A follower sees a partition and decides nothing, however long no witness is left to do it.
func TestFollowers_NeverDecide(t *testing.T) {
	o := large(1, 40)
	o.Resolvers, o.Sides = 10, sixToFour(40)
	w, err := New(o)
	require.NoError(t, err)
	w.At(10*time.Second, func() { w.Partition(o.Sides...) })
	w.At(15*time.Second, func() {
		for i, n := range w.Nodes() {
			if w.witnesses[i] {
				n.Crash()
			}
		}
	})
	w.Run(20 * time.Minute)
	v, _ := w.Verdict()
	require.Zero(t, v.Token)
	require.Len(t, w.Survivors(), 40-len(w.witnesses))
	for _, p := range w.up() {
		require.Equal(t, sbr.StateSuspended, p.r.State())
	}
}

// Over many seeds everybody is a witness; the first of each side always are.
func TestFollowers_WitnessesAreDrawn(t *testing.T) {
	ever := make(map[int]bool)
	for seed := range uint64(150) {
		o := large(seed, 40)
		o.Resolvers, o.Sides, o.Harmed = 10, sixToFour(40), []int{30}
		w, err := New(o)
		require.NoError(t, err)
		for _, i := range []int{0, 1, 2, 24, 25, 26, 30} {
			require.True(t, w.witnesses[i], "seed %d: n%d", seed, i+1)
		}
		for i := range w.witnesses {
			ever[i] = true
		}
	}
	require.Len(t, ever, 40)
}

func TestFollowers_TooManySidesAreRefused(t *testing.T) {
	o := large(1, 1000)
	for i := range 300 {
		o.Sides = append(o.Sides, []int{i})
	}
	_, err := New(o)
	require.EqualError(t, err, "world: 300 sides are too many for a world of more than 128 nodes: it plays at most 200")
}

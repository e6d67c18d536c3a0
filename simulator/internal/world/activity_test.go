package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// measured plays one cut into halves of four, at 20 s, for two minutes.
func measured(t *testing.T, s sbr.Strategy, measure bool, steps ...func(w *World)) *World {
	t.Helper()
	o := DefaultOptions()
	o.Nodes, o.Strategy, o.Measure = 4, s, measure
	w, err := New(o)
	require.NoError(t, err)
	w.At(20*time.Second, func() { w.Partition([]int{0, 1}, []int{2, 3}) })
	for _, step := range steps {
		step(w)
	}
	w.Run(2 * time.Minute)
	return w
}

// removeOthers is what a cluster without a resolver does, and what a badly chosen rule comes to.
type removeOthers struct{}

func (removeOthers) Decide(*sbr.View) sbr.Choice {
	return sbr.Choice{Kind: sbr.DownUnreachable, Reason: "the others are gone"}
}

func TestActivity(t *testing.T) {
	settled := 20*time.Second + DefaultOptions().Times.After + DefaultOptions().Resolver.StableAfter
	rest := 2*time.Minute - settled
	t.Run("a lease leaves one side, the other one is down moments after the verdict", func(t *testing.T) {
		a := measured(t, strategies.LeaseMajority{}, true).Activity()
		require.False(t, a.BothSides)
		require.Less(t, a.DoubleActive.Total(), 3*time.Second)
		require.Zero(t, a.NobodyActive)
	})
	t.Run("sides that both remove the other one run on, for ever", func(t *testing.T) {
		a := measured(t, removeOthers{}, true).Activity()
		require.True(t, a.BothSides)
		require.InDelta(t, rest.Seconds(), a.DoubleActive.Total().Seconds(), 3)
		require.Zero(t, a.NobodyActive)
	})
	t.Run("a heal ends it", func(t *testing.T) {
		heal := func(w *World) { w.At(60*time.Second, w.Heal) }
		a := measured(t, removeOthers{}, true, heal).Activity()
		require.InDelta(t, (60*time.Second - settled).Seconds(), a.DoubleActive.Total().Seconds(), 3)
	})
	t.Run("down-all leaves nobody", func(t *testing.T) {
		a := measured(t, strategies.DownAll{}, true).Activity()
		require.InDelta(t, rest.Seconds(), a.NobodyActive.Total().Seconds(), 3)
		require.False(t, a.BothSides)
	})
	t.Run("before the decision both sides run, and that is not counted", func(t *testing.T) {
		heal := func(w *World) { w.At(30*time.Second, w.Heal) }
		require.Zero(t, measured(t, strategies.LeaseMajority{}, true, heal).Activity())
	})
	t.Run("whoever is stopped is not up", func(t *testing.T) {
		stop := func(w *World) {
			w.At(5*time.Second, func() {
				for _, n := range w.Nodes() {
					n.Pause(4 * time.Second)
				}
			})
		}
		require.Equal(t, 4*time.Second, measured(t, strategies.LeaseMajority{},
			true, stop).Activity().NobodyActive.Total())
	})
}

func TestActivity_MeasuringChangesNothing(t *testing.T) {
	with, without := measured(t, strategies.LeaseMajority{}, true),
		measured(t, strategies.LeaseMajority{}, false)
	require.Equal(t, without.Hash(), with.Hash())
	require.Zero(t, without.Activity())
}

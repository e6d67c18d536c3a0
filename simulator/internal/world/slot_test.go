package world

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// slotted is a world of five with one slot, to which something happens.
func slotted(t testing.TB, seed uint64, lease bool, change func(o *Options), play func(w *World)) *World {
	t.Helper()
	o := DefaultOptions()
	o.Seed, o.Trace = seed, true
	o.KeepNames, o.Refuse, o.Resolver.Watched, o.Probe = true, true, true, reachability.DefaultSettings()
	o.Store.TTL, o.Store.Interval = 30*time.Second, 3*time.Second
	o.Strategy = strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	s := DefaultSlotOptions()
	s.Name, s.UseLease = "backup", lease
	o.Slots = []SlotOptions{s}
	if change != nil {
		change(&o)
	}
	w, err := New(o)
	require.NoError(t, err)
	if play != nil {
		play(w)
	}
	return w
}

// The slot runs where it should at the end, whatever happens to its holder.
func TestSlot_RunsOnTheOldestCandidate(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(w *World)
		on   string
	}{
		"nothing happens":                {func(*World) {}, "n1"},
		"the holder leaves":              {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Leave) }, "n2"},
		"the holder crashes":             {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Crash) }, "n2"},
		"the holder loses":               {func(w *World) { w.At(40*time.Second, func() { w.Partition([]int{0, 1}, []int{2, 3, 4}) }) }, "n3"},
		"the holder wins":                {func(w *World) { w.At(40*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) }) }, "n1"},
		"the holder sleeps for long":     {func(w *World) { w.At(40*time.Second, func() { w.Nodes()[0].Pause(3 * time.Minute) }) }, "n2"},
		"the holder sleeps briefly":      {func(w *World) { w.At(40*time.Second, func() { w.Nodes()[0].Pause(3 * time.Second) }) }, "n1"},
		"the holder crashes and is back": {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Crash); w.At(41*time.Second, w.Nodes()[0].Restart) }, "n2"},
		"another one leaves":             {func(w *World) { w.At(40*time.Second, w.Nodes()[2].Leave) }, "n1"},
		"the holder and the next one go": {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Leave); w.At(40*time.Second, w.Nodes()[1].Leave) }, "n3"},
		"the holder does not reach store": {func(w *World) {
			w.At(40*time.Second, func() { w.SetStore(StoreFault{Access: Silent}, 0) })
			w.At(3*time.Minute, func() { w.SetStore(StoreFault{}, 0) })
		}, "n1"},
	} {
		for _, lease := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, lease), func(t *testing.T) {
				for seed := range uint64(5) {
					w := slotted(t, seed, lease, nil, tc.play)
					w.Run(8 * time.Minute)
					if bad := w.Finish(); len(bad) > 0 || w.Slots()[0].On != tc.on {
						t.Fatalf("%s\n%v\n%+v", w.Story(), bad, w.Slots())
					}
				}
			})
		}
	}
}

package world

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
)

// sharded is a world of five with six shards, to which something happens.
func sharded(t testing.TB, seed uint64, lease bool, change func(o *Options), play func(w *World)) *World {
	t.Helper()
	return slotted(t, seed, lease, func(o *Options) {
		s := DefaultShardsOptions()
		s.Name, s.UseLease, s.Count = "orders", lease, 6
		o.Slots, o.Shards = nil, []ShardsOptions{s}
		if change != nil {
			change(o)
		}
	}, play)
}

// hosts are the nodes on which all shards run; it fails where one does not.
func hosts(t testing.TB, w *World) (on []string) {
	t.Helper()
	o := w.Shards()[0]
	require.Equal(t, o.Shards, o.Running, "some run nowhere\n%s", w.Story())
	return o.On
}

// All shards run where they should at the end, whatever happens to whoever coordinates, and to others.
func TestShards_RunOnWhoIsLeft(t *testing.T) {
	all := []string{"n1", "n2", "n3", "n4", "n5"}
	without := func(gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(gone, n) })
	}
	for name, tc := range map[string]struct {
		play func(w *World)
		on   []string
	}{
		"nothing happens":         {func(*World) {}, all},
		"the coordinator leaves":  {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Leave) }, without("n1")},
		"the coordinator crashes": {func(w *World) { w.At(40*time.Second, w.Nodes()[0].Crash) }, without("n1")},
		"the coordinator loses":   {func(w *World) { w.At(40*time.Second, func() { w.Partition([]int{0, 1}, []int{2, 3, 4}) }) }, without("n1", "n2")},
		"the coordinator wins":    {func(w *World) { w.At(40*time.Second, func() { w.Partition([]int{0, 1, 2}, []int{3, 4}) }) }, without("n4", "n5")},
		"the coordinator sleeps":  {func(w *World) { w.At(40*time.Second, func() { w.Nodes()[0].Pause(3 * time.Minute) }) }, without("n1")},
		"the coordinator naps":    {func(w *World) { w.At(40*time.Second, func() { w.Nodes()[0].Pause(3 * time.Second) }) }, all},
		"another one crashes":     {func(w *World) { w.At(40*time.Second, w.Nodes()[2].Crash) }, without("n3")},
		"two leave, one of them back": {func(w *World) {
			w.At(40*time.Second, w.Nodes()[0].Leave)
			w.At(41*time.Second, w.Nodes()[1].Leave)
			w.At(2*time.Minute, w.Nodes()[0].Restart)
		}, without("n2")},
	} {
		for _, lease := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", name, lease), func(t *testing.T) {
				for seed := range uint64(3) {
					w := sharded(t, seed, lease, nil, tc.play)
					w.Run(10 * time.Minute)
					require.Empty(t, w.Finish(), "%s", w.Story())
					for _, on := range hosts(t, w) {
						require.Contains(t, tc.on, on)
					}
				}
			})
		}
	}
}

// A manager that is closed hands its shards over, and the one that the same process opens then is given some again.
func TestShards_ReopenedManager(t *testing.T) {
	for seed := range uint64(6) {
		w := sharded(t, seed, seed%2 == 0, func(o *Options) { o.Shards[0].ReopensAfter = time.Minute }, nil)
		w.Run(10 * time.Minute)
		require.Empty(t, w.Finish())
		o := w.Shards()[0]
		require.Greater(t, o.Coordinators, 2, "whoever coordinates is closed as well")
		require.Greater(t, o.HandedOver, 6)
	}
}

// A member without the role runs nothing, and knows who does.
func TestShards_Role(t *testing.T) {
	w := sharded(t, 1, false, func(o *Options) {
		o.Shards[0].Role = "db"
		o.Members = []NodeOptions{{}, {Roles: []string{"db"}}, {Roles: []string{"db"}}, {Roles: []string{"db"}}, {}}
	}, nil)
	w.Run(5 * time.Minute)
	require.Empty(t, w.Finish())
	require.Subset(t, []string{"n2", "n3", "n4"}, hosts(t, w))
	require.NotEqual(t, message.Nobody, w.nodes[0].proc.shardHosts[0].table.Of(3))
}

// A write that was in the hand of a run that slept is kept out by the fence, and would have done harm without it.
func TestShards_FenceKeepsOutWhoWakesUp(t *testing.T) {
	rejected, interleaved := 0, 0
	for seed := range uint64(12) {
		w := sharded(t, seed, seed%2 == 0, nil, func(w *World) { w.At(40*time.Second, func() { w.Nodes()[seed%5].Pause(4 * time.Minute) }) })
		w.Run(10 * time.Minute)
		require.Empty(t, w.Finish())
		o := w.Shards()[0]
		rejected += o.Rejected
		interleaved += o.Interleaved
	}
	require.Positive(t, rejected)
	require.Positive(t, interleaved)
}

// What is left unsaid is refused, as for slots.
func TestShards_Refused(t *testing.T) {
	for name, change := range map[string]func(o *Options){
		"without a type": func(o *Options) { o.Shards[0].Name = "" },
		"twice":          func(o *Options) { o.Shards = append(o.Shards, o.Shards[0]) },
		"none":           func(o *Options) { o.Shards[0].Count = 0 },
		"too many":       func(o *Options) { o.Shards[0].Count = message.MaxShards + 1 },
		"no writes":      func(o *Options) { o.Shards[0].WritesEvery = 0 },
		"no retries":     func(o *Options) { o.Shards[0].NumberOfRetries = 0 },
		"backwards":      func(o *Options) { o.Shards[0].ReopensAfter = -1 },
	} {
		o := sharded(t, 1, false, nil, nil).opts
		o.Members = nil
		change(&o)
		_, err := New(o)
		require.Error(t, err, name)
	}
	require.Empty(t, healthy(t, nil).Shards())
}

// Shards that go to a member that comes, and come back when it crashes, begin with what the last run has left, or with nothing.
func TestShards_StateIsThatOfTheLastRun(t *testing.T) {
	handed := 0
	for seed := range uint64(6) {
		w := sharded(t, seed, seed%2 == 0, nil, func(w *World) {
			n := w.Nodes()[2]
			for i := range 3 {
				start := time.Duration(i) * 4 * time.Minute
				w.At(start+time.Minute, n.Crash)
				w.At(start+3*time.Minute, n.Restart)
			}
		})
		w.Run(16 * time.Minute)
		require.Empty(t, w.Finish())
		handed += w.Shards()[0].HandedOver
	}
	require.Greater(t, handed, 10)
}

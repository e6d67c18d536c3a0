package world

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// slotted is a world of five with one slot, to which something happens.
func slotted(t testing.TB, seed uint64, lease bool, change func(o *Options), play func(w *World)) *World {
	t.Helper()
	o := DefaultOptions()
	o.Seed, o.Trace = seed, true
	o.Resolver.Watched, o.Probe = true, reachability.DefaultSettings()
	o.Store.HeartbeatTimeout, o.Store.HeartbeatInterval = 30*time.Second, 3*time.Second
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

// A member without the role runs nothing.
func TestShards_Role(t *testing.T) {
	w := sharded(t, 1, false, func(o *Options) {
		o.Shards[0].Role = "db"
		o.Members = []NodeOptions{{}, {Roles: []string{"db"}}, {Roles: []string{"db"}}, {Roles: []string{"db"}}, {}}
	}, nil)
	w.Run(5 * time.Minute)
	require.Empty(t, w.Finish())
	require.Subset(t, []string{"n2", "n3", "n4"}, hosts(t, w))
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

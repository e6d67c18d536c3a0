package world

import (
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

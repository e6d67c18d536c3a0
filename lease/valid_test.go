package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

// ValidUntil is the moment at which Check turns false, moved by each heartbeat.
func TestValidUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a")
		_, ok := a.ValidUntil()
		require.False(t, ok)
		w.granted(a)
		until, ok := a.ValidUntil()
		require.True(t, ok)
		require.Equal(t, window, time.Until(until))
		time.Sleep(interval)
		synctest.Wait()
		until, ok = a.ValidUntil()
		require.True(t, ok)
		require.Equal(t, window, time.Until(until), "a heartbeat was sent now")

		w.view("a").SetUnavailable(true)
		time.Sleep(time.Until(until) - time.Nanosecond)
		same, ok := a.ValidUntil()
		require.True(t, ok)
		require.Equal(t, until, same)
		require.True(t, a.Check())
		time.Sleep(time.Nanosecond)
		_, ok = a.ValidUntil()
		require.False(t, ok)
		require.False(t, a.Check())
	})
}

func TestValidUntil_ForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.lease("a", func(s *lease.Settings, _ *lease.Options) { s.HeartbeatTimeout = lease.Infinite })
		w.granted(a)
		until, ok := a.ValidUntil()
		require.True(t, ok)
		require.Zero(t, until)
		_ = a.Release(t.Context())
		_, ok = a.ValidUntil()
		require.False(t, ok)
	})
}

package drive_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
)

func TestDeadline_PassesWithTheFirstOfTwoClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d drive.Deadline
		require.True(t, d.Passed(), "none was set")
		require.Zero(t, d.Time())
		at := time.Now().Add(time.Minute)
		d.Set(at)
		require.False(t, d.Passed())
		require.Equal(t, at, d.Time())
		time.Sleep(time.Minute - 1)
		require.False(t, d.Passed())
		time.Sleep(time.Nanosecond)
		require.True(t, d.Passed())
	})
}

// While a machine is suspended its monotonic clock stands still: the wall clock tells.
func TestSince_ASuspendedMachine(t *testing.T) {
	wall := time.Now().Round(0).Add(-time.Hour) // without a monotonic reading only the wall clock counts
	require.GreaterOrEqual(t, drive.Since(wall), time.Hour)
}

package telemetry

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever does not listen to its context is left behind.
func TestShutdown_LeavesBehindWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := false
		tel := &Telemetry{stops: []func(context.Context) error{
			func(context.Context) error { time.Sleep(time.Minute); return nil },
			func(context.Context) error { stopped = true; return nil },
		}}
		began := time.Now()
		require.ErrorIs(t, tel.Shutdown(t.Context()), context.DeadlineExceeded)
		require.Equal(t, shutdownWithin, time.Since(began))
		require.True(t, stopped)
		time.Sleep(time.Minute)
	})
}

package sleep_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 90*time.Second, enough)
		defer cancel()
		began := time.Now()
		require.NoError(t, sleep.For(ctx, time.Minute))
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, enough, sleep.For(ctx, time.Minute))
		require.Equal(t, 90*time.Second, time.Since(began))
		require.NoError(t, sleep.For(ctx, 0))
	})
}

package patience_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/patience"
)

var errOver = errors.New("over")

func TestWithTimeout_EndsAfterTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := patience.WithTimeout(t.Context(), 10*time.Second, errOver)
		defer cancel()
		<-ctx.Done()
		require.Equal(t, 10*time.Second, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), errOver)
	})
}

func TestWithTimeout_EndsWithItsParentAndWhenCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, end := context.WithCancel(t.Context())
		ctx, cancel := patience.WithTimeout(parent, 10*time.Second, errOver)
		end()
		<-ctx.Done()
		cancel()
		ctx, cancel = patience.WithTimeout(t.Context(), 10*time.Second, errOver)
		cancel()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	})
}

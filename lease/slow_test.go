package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// An operation gets the time-out that the configuration promises, however many requests it takes: a store whose round trips fit into it
// is no store that is away.
func TestSlowStore(t *testing.T) {
	for _, roundTrip := range []time.Duration{time.Second, 2 * time.Second, 2300 * time.Millisecond} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.view("a").SetDelay(roundTrip)
				a := w.lease("a")
				began := time.Now()
				w.granted(a)
				require.Equal(t, 2*roundTrip, time.Since(began), "a read and a write")
				require.NoError(t, a.Release(t.Context()))
				w.granted(a)
				time.Sleep(10 * time.Minute)
				require.True(t, a.Check(), "heartbeats")
			})
		})
	}
}

// One request alone may take nearly all of it.
func TestSlowStore_OneRequest(t *testing.T) {
	for roundTrip, ok := range map[time.Duration]bool{4 * time.Second: true, 6 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.view("a").SetDelay(roundTrip)
			_, err := w.lease("a").Read(t.Context())
			require.Equal(t, ok, err == nil, "%v: %v", roundTrip, err)
		})
	}
}

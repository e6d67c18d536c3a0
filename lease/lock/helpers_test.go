package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// d is the duration of the locks in these tests, usable how much of it the holder uses.
const d = lock.DefaultDuration

var usable = lease.Settings{HeartbeatTimeout: d, OperationTimeout: 5 * time.Second}.Window()

// world is one lock and its parties, in virtual time.
type world struct {
	t     *testing.T
	store *leasetest.Memory
	logs  logtest.Log
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, &world{t: t, store: leasetest.NewMemory()}) })
}

// each runs a test for each of the types, in virtual time.
func each(t *testing.T, types []lock.Type, test func(t *testing.T, w *world, kind lock.Type)) {
	t.Helper()
	for _, kind := range types {
		t.Run(kind.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, kind) })
		})
	}
}

// lock returns another lock of that type; its connection is called like its party, and its owner too.
func (w *world) lock(party string, t lock.Type, change ...func(*lock.Config)) *lock.Lock {
	w.t.Helper()
	cfg := lock.Config{Type: t, Owner: party, Logger: w.logs.Logger()}
	for _, c := range change {
		c(&cfg)
	}
	k, err := lock.New(w.store.View(party), cfg)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, k.Close()) })
	return k
}

func keepAlive(c *lock.Config)             { c.KeepAlive = true }
func owner(id string) func(*lock.Config)   { return func(c *lock.Config) { c.Owner = id } }
func (w *world) record() lease.Record      { return w.store.Snapshot().Record }
func (w *world) acquire(k *lock.Lock) bool { return w.sure(k.Acquire(w.t.Context())) }
func (w *world) release(k *lock.Lock) bool { return w.sure(k.Release(w.t.Context())) }
func (w *world) acquireFor(k *lock.Lock, d time.Duration) bool {
	return w.sure(k.AcquireFor(w.t.Context(), d))
}

// sure is an answer that is known.
func (w *world) sure(answer bool, err error) bool {
	w.t.Helper()
	require.NoError(w.t, err)
	return answer
}

func never(t *testing.T) func(context.Context) error {
	return func(context.Context) error { t.Error("it ran"); return nil }
}

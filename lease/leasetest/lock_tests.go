package leasetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/lock"
)

// What a lock makes of a lease is tested in package lock. These tests show that it does so over this store.
var lockTests = []namedTest{
	{"each type of lock", func(t *testing.T, b *bench) {
		for kind, want := range map[lock.Type]struct{ again, others, freesOthers bool }{
			lock.SingleEntrant: {false, false, false}, lock.Reentrant: {true, false, false}, lock.Overriding: {true, true, true},
		} {
			x, a := b.lock(lock.Config{Type: kind, Owner: "x"}), b.lock(lock.Config{Owner: "a"})
			move := func(want bool, do func(context.Context) (bool, error), what string) {
				t.Helper()
				done, err := do(t.Context())
				require.NoError(t, err, "%s: %s", kind, what)
				require.Equal(t, want, done, "%s: %s", kind, what)
			}
			move(true, x.Acquire, "x takes it")
			move(want.again, x.Acquire, "again")
			move(false, a.Acquire, "a does not get it")
			move(false, a.Release, "nor frees it")
			move(true, x.Release, "x frees it")
			move(false, x.Release, "once")
			move(true, a.AcquireForever, "a takes it")
			move(want.others, x.Acquire, "x takes it from a")
			move(want.freesOthers, x.Release, "x frees it")
			move(!want.freesOthers, a.Release, "a frees it, if it still has it")
		}
	}},
	{"a lock for its default duration, another one, for ever", func(t *testing.T, b *bench) {
		clock := NewClock()
		x, a := b.lock(lock.Config{Owner: "x"}), b.lock(lock.Config{Owner: "a", Clock: clock})
		for _, d := range []time.Duration{lock.DefaultDuration, 7 * time.Second, lock.Forever} {
			taken, err := x.AcquireFor(t.Context(), d)
			require.NoError(t, err)
			require.True(t, taken)
			for _, step := range []struct {
				pause time.Duration
				free  bool
			}{{0, false}, {min(d, time.Hour) - time.Millisecond, false}, {time.Millisecond, d != lock.Forever}} {
				clock.Advance(step.pause)
				taken, err = a.Acquire(t.Context())
				require.NoError(t, err)
				require.Equal(t, step.free, taken, "%s", d)
			}
			_, err = a.ForceRelease(t.Context())
			require.NoError(t, err)
			_, err = x.Release(t.Context())
			require.NoError(t, err)
		}
	}},
}

// lock returns a lock over a connection of its own; it is closed at the end of the test.
func (b *bench) lock(c lock.Config) *lock.Lock {
	b.t.Helper()
	store := b.open(c.Owner)
	k, err := lock.New(store, c)
	if _, shared := store.(lease.Limiter); shared && err != nil {
		b.t.Skipf("no lock takes a store that others share: %v", err)
	}
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = k.Close() })
	return k
}

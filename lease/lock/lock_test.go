package lock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
)

func TestConnectionFailure_IsAnErrorAndNoAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, kind := range []lock.Type{lock.SingleEntrant, lock.Reentrant, lock.Overriding} {
			k := w.lock("a", kind, func(c *lock.Config) { c.Name = "jobs" })
			view := w.store.View("a")
			view.SetUnavailable(true)
			start := time.Now()
			ok, err := k.Acquire(t.Context())
			assert.False(t, ok)
			require.ErrorIs(t, err, leasetest.ErrInjected)
			assert.True(t, strings.HasPrefix(err.Error(), `could not acquire lock "jobs": `), err.Error())
			assert.LessOrEqual(t, time.Since(start), 5*time.Second)
			said := len(w.logs.With("could not acquire lock"))
			assert.False(t, k.TryAcquire(t.Context()))
			assert.Greater(t, len(w.logs.With("could not acquire lock")), said)
			_, err = k.Release(t.Context())
			require.ErrorContains(t, err, `could not release lock "jobs": `)
			_, err = k.ForceRelease(t.Context())
			require.Error(t, err)
			view.Heal()
			assert.True(t, w.acquire(k), "it works again")
			assert.True(t, w.release(k))
		}
	})
}

// A single-entrant holder asks again while the store is gone: it still holds the lock, and cannot say more.
func TestConnectionFailure_OfAHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.SingleEntrant)
		require.True(t, w.acquire(k))
		w.store.View("a").SetUnavailable(true)
		_, err := k.Acquire(t.Context())
		require.Error(t, err)
		assert.True(t, k.Held())
	})
}

func TestALostAnswer_IsTakenOnByTheNextAcquire(t *testing.T) {
	each(t, kinds, func(t *testing.T, w *world, kind lock.Type) {
		k := w.lock("a", kind)
		w.store.View("a").CommitLate(leasetest.Always, time.Minute)
		_, err := k.Acquire(t.Context())
		require.Error(t, err)
		assert.False(t, k.Held(), "don't know is not yes")
		w.store.View("a").Heal()
		assert.True(t, w.acquire(k))
		time.Sleep(2 * time.Minute)
		assert.True(t, k.Held(), "what arrives late changes nothing")
	})
}

func TestDuration_MustBeWholeMilliseconds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.Reentrant)
		for _, bad := range []time.Duration{0, -time.Second, time.Nanosecond, 999 * time.Microsecond,
			time.Second + 1} {
			ok, err := k.AcquireFor(t.Context(), bad)
			assert.False(t, ok)
			require.ErrorIs(t, err, lease.ErrRefused, "%v", bad)
			require.ErrorContains(t, err, "could not acquire lock: ")
			require.ErrorContains(t, err, "duration is "+bad.String())
			require.ErrorIs(t, k.AcquireWaitFor(t.Context(), bad), lease.ErrRefused)
		}
		assert.Zero(t, w.store.View("a").Counters(), "nothing was sent")
		assert.True(t, w.acquireFor(k, time.Minute+time.Millisecond))
		assert.Equal(t, time.Minute+time.Millisecond, w.record().TTL)
	})
}

func TestKeepAlive_TellsTheHolderOfALossForeverToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.lock("a", lock.SingleEntrant, keepAlive)
		require.True(t, w.sure(a.AcquireForever(t.Context())))
		time.Sleep(10 * time.Hour)
		require.True(t, a.Held())
		require.True(t, w.acquire(w.lock("admin", lock.Overriding)))
		time.Sleep(13 * time.Second)
		assert.False(t, a.Held())
	})
}

func TestAcquireWait_UntilItIsFree(t *testing.T) {
	type ending func(w *world, holder *lock.Lock)
	for name, end := range map[string]ending{
		"released":          func(w *world, holder *lock.Lock) { w.release(holder) },
		"freed by force":    func(w *world, _ *lock.Lock) { w.sure(w.lock("admin", lock.Overriding).Release(w.t.Context())) },
		"its time was over": func(*world, *lock.Lock) { time.Sleep(d - time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.lock("a", lock.SingleEntrant), w.lock("b", lock.SingleEntrant)
				require.True(t, w.acquire(a))
				done := make(chan error, 1)
				go func() { done <- b.AcquireWaitFor(t.Context(), time.Hour) }()
				time.Sleep(time.Minute)
				require.Empty(t, done)
				end(w, a)
				synctest.Wait()
				require.Len(t, done, 1)
				require.NoError(t, <-done)
				assert.True(t, b.Held())
				assert.Equal(t, time.Hour, w.record().TTL)
			})
		})
	}
}

// As with a sync.Mutex, another goroutine may release what this one waits for.
func TestAcquireWait_ForOneself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		k := w.lock("a", lock.SingleEntrant)
		require.NoError(t, k.AcquireWait(t.Context()))
		done := make(chan error, 1)
		go func() { done <- k.AcquireWait(t.Context()) }()
		time.Sleep(time.Minute)
		require.Empty(t, done)
		require.True(t, w.release(k))
		synctest.Wait()
		require.NoError(t, <-done)
		assert.EqualValues(t, 2, k.Token())
	})
}

func TestAcquireWait_EndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.True(t, w.acquire(w.lock("a", lock.SingleEntrant)))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("enough"))
		defer cancel()
		err := w.lock("b", lock.SingleEntrant).AcquireWait(ctx)
		require.ErrorIs(t, err, lock.ErrHeld)
		assert.EqualError(t, err, `could not acquire lock: lease: held by "a" (token 1): enough`)
	})
}

func TestClose_EndsWaitingAndReleasesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.lock("a", lock.SingleEntrant), w.lock("b", lock.SingleEntrant)
		require.True(t, w.acquire(a))
		done := make(chan error, 1)
		go func() { done <- b.AcquireWait(t.Context()) }()
		time.Sleep(time.Second)
		require.NoError(t, b.Close())
		synctest.Wait()
		require.ErrorIs(t, <-done, lock.ErrClosed)
		require.NoError(t, a.Close())
		assert.False(t, a.Held())
		assert.Equal(t, "a", w.record().Holder)
		_, err := a.Acquire(t.Context())
		assert.ErrorIs(t, err, lock.ErrClosed)
	})
}

func TestOwner_Policies(t *testing.T) {
	open := func(id string) *lock.Lock {
		k, err := lock.New(leasetest.NewMemory().View("x"), lock.Config{Owner: id})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, k.Close()) })
		return k
	}
	t.Run("random: another one for each lock", func(t *testing.T) {
		assert.NotEqual(t, open("").Owner(), open("").Owner())
		assert.NotEmpty(t, open("").Owner())
	})
	t.Run("of the process: always the same, and not empty", func(t *testing.T) {
		assert.Equal(t, lock.ProcessOwner(), open(lock.ProcessOwner()).Owner())
		assert.NotEmpty(t, lock.ProcessOwner())
		assert.NotEqual(t, lock.ProcessOwner(), open("").Owner())
	})
	t.Run("static", func(t *testing.T) { assert.Equal(t, "billing", open("billing").Owner()) })
}

func TestConfig_TheClockIsTheCallers(t *testing.T) {
	clock, store := leasetest.NewClock(), leasetest.NewMemory()
	k, err := lock.New(store.View("x"), lock.Config{Clock: clock})
	require.NoError(t, err)
	defer k.Close()
	ok, err := k.Acquire(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	assert.True(t, clock.Now().Equal(store.Snapshot().Record.Acquired))
	clock.Advance(usable)
	assert.False(t, k.Held())
}

func TestConfig_Validate(t *testing.T) {
	require.NoError(t, lock.Config{}.Validate())
	require.NoError(t, lock.DefaultConfig().Validate())
	require.NoError(t, lock.Config{Duration: lock.Forever}.Validate())
	bad := lock.Config{Type: 7, Duration: time.Nanosecond, OperationTimeout: -1}
	for _, err := range []error{bad.Validate(),
		func() error { _, err := lock.New(leasetest.NewMemory().View("x"), bad); return err }()} {
		require.ErrorContains(t, err, "type is type(7)")
		require.ErrorContains(t, err, "duration is 1ns: it must be at least 1ms")
		require.ErrorContains(t, err, "operation-timeout is -1ns")
	}
	_, err := lock.New(nil, lock.Config{})
	require.ErrorContains(t, err, "a store is required")
	require.ErrorContains(t, lock.Config{Duration: 1500 * time.Microsecond}.Validate(), "whole milliseconds")
}

// limited is a store whose other users may have rules of their own.
type limited struct {
	*leasetest.Faulty
	window time.Duration
	err    error
}

func (l limited) Window(lease.Settings) (time.Duration, error) { return l.window, l.err }

func TestNew_RefusesAStoreWithOtherRules(t *testing.T) {
	refusal := errors.New("no such time")
	_, err := lock.New(limited{Faulty: leasetest.NewMemory().View("x"), err: refusal}, lock.Config{})
	require.ErrorIs(t, err, refusal)
	_, err = lock.New(limited{Faulty: leasetest.NewMemory().View("x"), window: time.Minute}, lock.Config{})
	require.ErrorContains(t, err, "a rule of their own")
}

// A store may be able to limit and not do so: lease/kubernetes with native leases.
func TestNew_AcceptsAStoreThatLimitsNothing(t *testing.T) {
	k, err := lock.New(limited{Faulty: leasetest.NewMemory().View("x"), window: lease.Infinite}, lock.Config{})
	require.NoError(t, err)
	defer k.Close()
	ok, err := k.Acquire(t.Context())
	require.NoError(t, err)
	assert.True(t, ok)
}

// The semantics of the three types, told in stories. "x" is a lock of the type, "twin" another object of its
// owner, "a" somebody else's single-entrant lock. The answers are those of a single-entrant, a re-entrant and
// an overriding x: Y is true, n is false. That nothing else is true either is what
// TestProperty_TheTableAndNothingElse shows.
var semantics = []struct{ story, moves, single, reentrant, overriding string }{
	// acquire
	{"absent", "x+", "Y", "Y", "Y"},
	{"released", "a+ a- x+", "YYY", "YYY", "YYY"},
	{"another's live lock", "a+ x+", "Yn", "Yn", "YY"},
	{"another's, at the moment it expires", "a+ x+ almost x+ now x+", "YnnY", "YnnY", "YYYY"},
	{"one's own again", "x+ x+", "Yn", "YY", "YY"},
	{"one's own again, by another object", "x+ twin+", "Yn", "YY", "YY"},
	{"one's own, at the moment it expires", "x+ almost x+ now x+", "YnY", "YYY", "YYY"},
	{"the duration starts anew with another acquire", "x+ half x+ half a+", "Ynn", "YYn", "YYn"},
	// release
	{"one's own, and a second time", "x+ x- x-", "YYn", "YYn", "YYn"},
	{"once for all entries", "x+ x+ x- x- a+", "YnYnY", "YYYnY", "YYYnY"},
	{"without an acquire", "x-", "n", "n", "n"},
	{"one's own, expired", "x+ almost now x-", "Yn", "Yn", "Yn"},
	{"one's own, although it may not be used any more", "x+ almost x-", "YY", "YY", "YY"},
	{"another's live lock", "a+ x- a-", "YnY", "YnY", "YYn"},
	{"another's, expired", "a+ x- almost now x- x+", "YnnY", "YnnY", "YYnY"},
	{"that of another object with the same owner", "x+ twin- x-", "YYn", "YYn", "YYn"},
	{"by force: whoever's, once", "x! a+ x! x! x+", "nYYnY", "nYYnY", "nYYnY"},
}

func TestSemantics(t *testing.T) {
	for _, c := range semantics {
		for kind, want := range map[lock.Type]string{
			lock.SingleEntrant: c.single, lock.Reentrant: c.reentrant, lock.Overriding: c.overriding,
		} {
			t.Run(c.story+", "+kind.String(), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) { assert.Equal(t, want, w.play(kind, c.moves)) })
			})
		}
	}
}

// play makes the moves: LOCK+ acquires, LOCK- releases, LOCK! frees by force, and the others let time pass:
// half of the duration, all but a nanosecond, or that nanosecond.
func (w *world) play(kind lock.Type, moves string) (answers string) {
	locks := map[string]*lock.Lock{
		"x": w.lock("x", kind), "twin": w.lock("twin", kind, owner("x")), "a": w.lock("a", lock.SingleEntrant),
	}
	pauses := map[string]time.Duration{"half": d / 2, "almost": d - time.Nanosecond, "now": time.Nanosecond}
	for move := range strings.FieldsSeq(moves) {
		if pause, waits := pauses[move]; waits {
			time.Sleep(pause)
			continue
		}
		k := locks[strings.TrimRight(move, "+-!")]
		does := map[byte]func(context.Context) (
			bool, error){'+': k.Acquire, '-': k.Release, '!': k.ForceRelease}[move[len(move)-1]]
		if w.sure(does(w.t.Context())) {
			answers += "Y"
		} else {
			answers += "n"
		}
	}
	return answers
}

package leasetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var mine = lease.Record{Holder: "a", Token: 1}

// within calls f with a context that ends after a second of virtual time, and returns how long it took.
func within(t *testing.T, f func(ctx context.Context)) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	f(ctx)
	return time.Since(start)
}

func TestFaulty_WithoutFaultsIsTheStore(t *testing.T) {
	leasetest.Run(t, func(*testing.T) leasetest.Harness {
		s := leasetest.NewMemory()
		return leasetest.Harness{
			Open:   func(_ testing.TB, party string) lease.Store { return s.View(party) },
			Delete: func(testing.TB) { s.Delete() },
			Interrupt: func(testing.TB) {
				for _, party := range []string{"a", "b", "w"} {
					s.View(party).SetUnavailable(true)
					time.AfterFunc(10*time.Millisecond, s.View(party).Heal)
				}
			},
		}
	})
}

// What becomes of one write: what the client gets, after how long, and what the store holds then and later.
func TestFaulty_EachFaultOfAWrite(t *testing.T) {
	const late = 3 * time.Second
	for _, c := range []struct {
		fault            leasetest.Fault
		err              error
		took             time.Duration
		committed, later bool
	}{
		{fault: leasetest.Unavailable, err: leasetest.ErrInjected},
		{fault: leasetest.LoseRequest, err: context.DeadlineExceeded, took: time.Second},
		{fault: leasetest.LoseResponse, err: context.DeadlineExceeded, took: time.Second, committed: true, later: true},
		{fault: leasetest.BreakResponse, err: leasetest.ErrInjected, committed: true, later: true},
		{fault: leasetest.Conflict, err: lease.ErrConflict},
		{fault: leasetest.Refuse, err: lease.ErrRefused},
		{fault: leasetest.CommitLate, err: context.DeadlineExceeded, took: time.Second, later: true},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := leasetest.NewMemory()
				f := leasetest.NewFaulty(inner.View("a"))
				defer f.Close()
				if f.Inject(leasetest.Writes, c.fault, 1); c.fault == leasetest.CommitLate {
					f.CommitLate(1, late)
				}
				took := within(t, func(ctx context.Context) {
					_, err := f.Write(ctx, mine, "")
					require.ErrorIs(t, err, c.err)
					require.ErrorIs(t, err, leasetest.ErrInjected)
					if c.fault != leasetest.Conflict && c.fault != leasetest.Refuse {
						require.NotErrorIs(t, err, lease.ErrConflict, "unknown")
						require.NotErrorIs(t, err, lease.ErrRefused, "unknown")
					}
				})
				assert.Equal(t, c.took, took)
				assert.Equal(t, c.committed, inner.Snapshot().Record == mine)
				time.Sleep(late)
				synctest.Wait()
				assert.Equal(t, c.later, inner.Snapshot().Record == mine)
				_, err := f.Write(t.Context(), mine, inner.Snapshot().Version)
				require.NoError(t, err, "only one was hit")
				assert.Equal(t, leasetest.Counters{Writes: 2}, f.Counters())
			})
		})
	}
}

func TestFaulty_EachFaultOfARead(t *testing.T) {
	for fault, took := range map[leasetest.Fault]time.Duration{
		leasetest.Unavailable: 0, leasetest.BreakResponse: 0, leasetest.LoseRequest: time.Second,
		leasetest.LoseResponse: time.Second,
	} {
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := leasetest.NewFaulty(leasetest.NewMemory().View("a"))
				f.Inject(leasetest.Reads, fault, leasetest.Always)
				for range 3 {
					assert.Equal(t, took, within(t, func(ctx context.Context) {
						_, err := f.Read(ctx)
						require.ErrorIs(t, err, leasetest.ErrInjected)
					}))
				}
				_, err := f.Write(t.Context(), mine, "")
				require.NoError(t, err, "writes are spared")
				f.Heal()
				got, err := f.Read(t.Context())
				require.NoError(t, err)
				assert.Equal(t, mine, got.Record)
			})
		})
	}
}

func TestFaulty_ALateWriteHoldsToItsCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := leasetest.NewMemory()
		f := leasetest.NewFaulty(inner.View("a"))
		defer f.Close()
		f.CommitLate(leasetest.Always, time.Minute)
		within(t, func(ctx context.Context) { _, _ = f.Write(ctx, mine, "") })
		_, err := f.Read(t.Context())
		require.NoError(t, err, "a read is not hit")
		_, err = inner.View("b").Write(t.Context(), lease.Record{Holder: "b"}, "")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		assert.Equal(t, "b", inner.Snapshot().Record.Holder)
	})
}

func TestFaulty_CloseGivesLateWritesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := leasetest.NewMemory()
		f := leasetest.NewFaulty(inner.View("a"))
		f.CommitLate(1, time.Hour)
		within(t, func(ctx context.Context) { _, _ = f.Write(ctx, mine, "") })
		f.Close()
		time.Sleep(2 * time.Hour)
		assert.Zero(t, inner.Snapshot())
	})
}

func TestFaulty_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := leasetest.NewMemory()
		f := leasetest.NewFaulty(inner.View("a"))
		f.SetDelay(800 * time.Millisecond)
		var committed time.Duration
		start := time.Now()
		inner.OnCommit(func(lease.Record) { committed = time.Since(start) })
		took := within(t, func(ctx context.Context) {
			_, err := f.Write(ctx, mine, "")
			require.NoError(t, err)
		})
		assert.Equal(t, 800*time.Millisecond, took)
		assert.Equal(t, 400*time.Millisecond, committed)
		f.SetDelay(1200 * time.Millisecond)
		took = within(t, func(ctx context.Context) {
			_, err := f.Write(ctx, lease.Record{Token: 2}, inner.Snapshot().Version)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		assert.Equal(t, time.Second, took)
		assert.EqualValues(t, 2, inner.Snapshot().Record.Token, "the answer was too slow, the write was not")
	})
}

func TestFaulty_OneFaultAfterAnother(t *testing.T) {
	inner := leasetest.NewMemory()
	f := leasetest.NewFaulty(inner.View("a"))
	f.Inject(leasetest.Writes, leasetest.Conflict, 1)
	f.Inject(leasetest.Writes, leasetest.Refuse, 1)
	f.Inject(leasetest.Writes, leasetest.Unavailable, 2)
	f.Inject(leasetest.Writes, leasetest.Unavailable, 1) // instead
	for _, want := range []error{lease.ErrConflict, lease.ErrRefused, leasetest.ErrInjected, nil} {
		_, err := f.Write(t.Context(), mine, "")
		require.ErrorIs(t, err, want)
	}
}

func TestFaulty_OnRequest(t *testing.T) {
	f := leasetest.NewFaulty(leasetest.NewMemory().View("a"))
	var seen []bool
	f.OnRequest(func(write bool) {
		seen = append(seen, write)
		f.Inject(leasetest.All, leasetest.Unavailable, leasetest.Always)
	})
	_, err := f.Write(t.Context(), mine, "")
	require.NoError(t, err, "the next one is hit")
	_, err = f.Read(t.Context())
	require.ErrorIs(t, err, leasetest.ErrInjected)
	assert.Equal(t, []bool{true, false}, seen)
}

func TestFaulty_ADeadContextSendsNothing(t *testing.T) {
	inner := leasetest.NewMemory()
	f := leasetest.NewFaulty(inner.View("a"))
	f.Inject(leasetest.Writes, leasetest.CommitLate, leasetest.Always)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Write(ctx, mine, "")
	require.ErrorIs(t, err, context.Canceled)
	f.Close()
	assert.Zero(t, inner.Snapshot())
}

func TestFaulty_WatchIsSilencedAndNeverEndsOnAnOldState(t *testing.T) {
	silences := map[string]func(*leasetest.Faulty){
		"silenced":    func(f *leasetest.Faulty) { f.SilenceWatch(true) },
		"unavailable": func(f *leasetest.Faulty) { f.Inject(leasetest.All, leasetest.Unavailable, leasetest.Always) },
	}
	for name, silence := range silences {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := leasetest.NewMemory()
				f := leasetest.NewFaulty(inner.View("a"))
				ctx, cancel := context.WithCancel(t.Context())
				var mu sync.Mutex
				var last uint64
				newest := func() uint64 {
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					return last
				}
				ended := make(chan error, 1)
				go func() {
					ended <- f.Watch(ctx, func(s lease.Snapshot) {
						mu.Lock()
						defer mu.Unlock()
						last = s.Record.Token
					})
				}()
				inner.Restore(lease.Record{Token: 1})
				require.EqualValues(t, 1, newest())
				silence(f)
				inner.Restore(lease.Record{Token: 2})
				require.EqualValues(t, 1, newest())
				inner.Restore(lease.Record{Token: 3})
				f.Heal()
				require.EqualValues(t, 3, newest())
				silence(f)
				inner.Restore(lease.Record{Token: 4})
				synctest.Wait()
				cancel()
				require.ErrorIs(t, <-ended, context.Canceled)
				require.EqualValues(t, 3, newest())
				assert.Equal(t, 1, f.Counters().Watches)
			})
		})
	}
}

// bare hides everything but the contract.
type bare struct{ lease.Store }

type limiting struct{ lease.Store }

func (limiting) Window(lease.Settings) (time.Duration, error) { return time.Minute, nil }

// To hide that a store limits the trust in a heartbeat would make a second holder possible.
func TestFaulty_CanDoWhatTheStoreCan(t *testing.T) {
	none := leasetest.NewFaulty(bare{memory.NewStore()})
	require.ErrorIs(t, none.Watch(t.Context(), func(lease.Snapshot) {}), errors.ErrUnsupported)
	_, err := none.Identity(t.Context())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	settings := lease.DefaultSettings()
	for want, store := range map[time.Duration]lease.Store{settings.Window(): bare{memory.NewStore()},
		time.Minute: limiting{memory.NewStore()}} {
		window, err := leasetest.NewFaulty(store).Window(settings)
		require.NoError(t, err)
		assert.Equal(t, want, window)
	}
}

func TestMemory_OneNameIsOneConnection(t *testing.T) {
	m := leasetest.NewMemory()
	assert.Same(t, m.View("a"), m.View("a"))
	assert.NotSame(t, m.View("a"), m.View("b"))
}

package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// watching collects what a Watch of l reports; stop ends it and returns its error.
func watching(t *testing.T, l *lease.Lease) (seen func() []lease.Record, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	records := make(chan []lease.Record, 1)
	records <- nil
	done := make(chan error, 1)
	go func() {
		done <- l.Watch(ctx, func(r lease.Record) { records <- append(<-records, r) })
	}()
	seen = func() []lease.Record {
		r := <-records
		records <- r
		return r
	}
	stop = func() error { cancel(); return <-done }
	t.Cleanup(cancel)
	return seen, stop
}

// plainStore hides the Watch of a view.
type plainStore struct{ lease.Store }

// unwatchable refuses to be watched.
type unwatchable struct{ lease.Store }

func (unwatchable) Watch(context.Context, func(lease.Snapshot)) error {
	return errors.Join(errors.New("no right to watch"), lease.ErrRefused)
}

func TestWatch_ReportsThePresentAndChanges(t *testing.T) {
	stores := map[string]func(*leasetest.Faulty) lease.Store{
		"watcher":     func(v *leasetest.Faulty) lease.Store { return v },
		"polled":      func(v *leasetest.Faulty) lease.Store { return plainStore{v} },
		"unwatchable": func(v *leasetest.Faulty) lease.Store { return unwatchable{v} },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				a, b := w.lease("a"), w.leaseOver(open(w.view("b")), "b")
				seen, stop := watching(t, b)
				settle := func() { time.Sleep(time.Second); synctest.Wait() }
				settle()
				require.Len(t, seen(), 1)
				assert.Zero(t, seen()[0], "no record is reported as well")
				require.Equal(t, sbr.Granted, linear.AnswerOf(a.Acquire(t.Context(), verdict(0, "a", "a"))).Kind)
				settle()
				require.Len(t, seen(), 2)
				assert.Equal(t, w.record(), seen()[1])
				seen()[1].Verdict.Survivors[0] = "x"
				w.view("b").SetUnavailable(true)
				_ = a.Release(t.Context())
				settle()
				require.Len(t, seen(), 2, "cut off")
				w.view("b").Heal()
				settle()
				require.Len(t, seen(), 3)
				assert.Equal(t, w.record(), seen()[2])
				assert.ErrorIs(t, stop(), context.Canceled)
			})
		})
	}
}

// Each outage is told once, and so is its end, however the store is watched.
func TestWatch_TellsOfEachInterruptionAndOfItsEnd(t *testing.T) {
	for name, open := range map[string]func(*leasetest.Faulty) lease.Store{
		"watcher": func(v *leasetest.Faulty) lease.Store { return v },
		"polled":  func(v *leasetest.Faulty) lease.Store { return plainStore{v} },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, w *world) {
				v, told := w.view("a"), make(chan error, 1000)
				a := w.leaseOver(open(v), "a", func(_ *lease.Settings, o *lease.Options) {
					o.OnWatch = func(err error) { told <- err }
				})
				_, stop := watching(t, a)
				time.Sleep(time.Minute)
				require.Empty(t, told)
				for outage := range 2 {
					v.SetUnavailable(true)
					time.Sleep(time.Minute)
					synctest.Wait() // a read may begin at this moment
					require.NotEmpty(t, told)
					for len(told) > 0 {
						require.Error(t, <-told)
					}
					v.Heal()
					time.Sleep(time.Minute)
					synctest.Wait()
					for len(told) > 1 { // of a request that was under way
						require.Error(t, <-told)
					}
					require.Len(t, told, 1)
					require.NoError(t, <-told)
					require.Len(t, w.logs.With("watching was interrupted"), outage+1)
				}
				_ = stop()
			})
		})
	}
}

// Reads are no stream: where there should be one, it stays interrupted.
func TestWatch_ReadsDoNotEndTheInterruptionOfAStream(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		told := make(chan error, 1000)
		a := w.leaseOver(unwatchable{w.view("a")}, "a", func(_ *lease.Settings, o *lease.Options) {
			o.OnWatch = func(err error) { told <- err }
		})
		_, stop := watching(t, a)
		time.Sleep(time.Minute)
		_ = stop()
		require.NotEmpty(t, told)
		for len(told) > 0 {
			require.ErrorIs(t, <-told, lease.ErrRefused)
		}
		require.Len(t, w.logs.With("watching was interrupted"), 1)
	})
}

func TestWatch_EndsWithTheLease(t *testing.T) {
	for _, polled := range []bool{false, true} {
		story(t, func(t *testing.T, w *world) {
			var s lease.Store = w.view("a")
			if polled {
				s = plainStore{s}
			}
			a := w.leaseOver(s, "a")
			time.AfterFunc(time.Minute, a.Close)
			assert.ErrorIs(t, a.Watch(t.Context(), func(lease.Record) {}), lease.ErrClosed)
		})
	}
}

// fedStore reports what the test feeds it.
type fedStore struct {
	lease.Store
	feed chan lease.Snapshot
}

func (s fedStore) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	for {
		select {
		case got := <-s.feed:
			fn(got)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestWatch_OldReportsAreNotBelieved(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		b := w.lease("b")
		absent := w.store.Snapshot()
		w.granted(b)
		foreign := w.store.Snapshot()
		_ = b.Release(t.Context())
		store := fedStore{Store: w.view("a"), feed: make(chan lease.Snapshot)}
		a := w.leaseOver(store, "a")
		seen, stop := watching(t, a)
		var lost losses
		require.Equal(t, sbr.Granted, lost.follow(linear.AnswerOf(a.Acquire(t.Context(), lease.Proposal{}))).Kind)
		mine := w.store.Snapshot()
		time.Sleep(interval + time.Second)
		heartbeat := w.store.Snapshot()
		for _, old := range []lease.Snapshot{absent, foreign, mine, absent, heartbeat, foreign} {
			n := requests(w.view("a"), func() { store.feed <- old; synctest.Wait() })
			assert.LessOrEqual(t, n.Writes, 1, "at most a heartbeat that finds out")
			require.True(t, a.Check())
		}
		assert.Empty(t, lost.all())
		for _, r := range seen() {
			assert.Equal(t, "a", r.Holder, "what is old is not passed on; a read beside the stream tells the present")
		}
		time.Sleep(ttl)
		assert.True(t, a.Check())
		_ = stop()
	})
}

// Somebody takes over between the commit and its answer, and the watch is faster than the answer: that is no
// grant any more.
func TestWatch_FasterThanTheAnswerToAWrite(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		taken := lease.Record{Holder: "x", Token: 2, Nonce: "n", TTL: ttl}
		a := w.leaseOver(&pausingStore{Faulty: w.view("a"), pause: func() {
			w.store.Restore(taken)
			time.Sleep(time.Millisecond) // the report arrives
		}}, "a")
		_, stop := watching(t, a)
		synctest.Wait()
		out := w.held(a, "x")
		assert.Equal(t, taken, out.Record)
		assert.False(t, a.Check())
		_ = stop()
	})
}

func TestRead_NeverAnswersOlderThanWhatIsKnown(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		v := w.view("a")
		a := w.lease("a")
		_, stop := watching(t, a)
		w.store.Restore(lease.Record{Token: 1})
		synctest.Wait()
		v.SetDelay(time.Second) // the store answers after half a second
		time.AfterFunc(600*time.Millisecond, func() {
			v.Heal()
			w.store.Restore(lease.Record{Holder: "x", Token: 2})
		})
		r, err := a.Read(t.Context())
		require.NoError(t, err)
		assert.Equal(t, lease.Record{Holder: "x", Token: 2}, r)
		_ = stop()
	})
}

// scripted is a store whose streams and reads fail on demand.
type scripted struct {
	*leasetest.Faulty
	stream func(ctx context.Context) error
	opened []time.Time
	fn     func(lease.Snapshot)
}

func (s *scripted) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	s.opened, s.fn = append(s.opened, time.Now()), fn
	return s.stream(ctx)
}

type busy struct{ error }

func (busy) RetryAfter() time.Duration { return 30 * time.Second }

func follow(t *testing.T, s lease.Store, d time.Duration) (seen []lease.Version) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	err := lease.Follow(ctx, s, lease.Pace{}, nil, func(s lease.Snapshot) { seen = append(seen, s.Version) })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	return seen
}

func TestFollow_OpensAStreamAgain(t *testing.T) {
	for name, c := range map[string]struct {
		stream       func(context.Context) error
		opens, reads int
	}{
		"that ends at once":                  {func(context.Context) error { return nil }, 50, 120},
		"that fails, with longer pauses":     {func(context.Context) error { return errors.New("cut off") }, 50, 120},
		"that is forbidden, reading instead": {func(context.Context) error { return lease.ErrRefused }, 15, 75},
		"of a server that wants patience":    {func(context.Context) error { return busy{errors.New("429")} }, 3, 3},
		"that nobody can open":               {func(context.Context) error { return errors.ErrUnsupported }, 1, 62},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{Faulty: leasetest.NewMemory().View("a"), stream: c.stream}
				assert.Len(t, follow(t, s, time.Minute), 1)
				assert.NotZero(t, len(s.opened))
				assert.LessOrEqual(t, len(s.opened), c.opens)
				assert.LessOrEqual(t, s.Counters().Reads, c.reads)
			})
		})
	}
}

// Somebody reads a store that answers nothing but "later".
func TestFollow_LeavesABusyServerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusing{Store: leasetest.NewMemory().View("a")}
		follow(t, s, 20*time.Second)
		assert.LessOrEqual(t, s.requests, 2)
	})
}

// An acquire, too.
func TestAcquire_LeavesABusyServerAlone(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		s := &refusing{Store: w.view("a")}
		a := w.leaseOver(s, "a")
		w.unknown(a)
		require.LessOrEqual(t, s.requests, 2)
	})
}

type refusing struct {
	lease.Store
	requests int
}

func (s *refusing) Read(context.Context) (lease.Snapshot, error) {
	s.requests++
	return lease.Snapshot{}, busy{errors.New("429")}
}

func (s *refusing) Watch(context.Context, func(lease.Snapshot)) error {
	s.requests++
	return busy{errors.New("429")}
}

// A stream that is open, healthy and silent is found out by the reads beside it.
func TestFollow_DoesNotTrustAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leasetest.NewMemory()
		m.Restore(lease.Record{Token: 1})
		s := &scripted{Faulty: m.View("a")}
		began := time.Now()
		s.stream = func(ctx context.Context) error {
			if time.Since(began) > 20*time.Minute {
				return s.Faulty.Watch(ctx, s.fn)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		time.AfterFunc(10*time.Minute, func() { m.Restore(lease.Record{Token: 2}) })
		seen := follow(t, s, time.Hour)
		assert.Equal(t, []lease.Version{"1", "2"}, seen)
		assert.Greater(t, len(s.opened), 1)
		opened := s.opened[len(s.opened)-1].Sub(s.opened[0])
		assert.Less(t, opened, 23*time.Minute, "one that tells is kept")
	})
}

// slowRead is a store whose answers to reads are under way for a second.
type slowRead struct{ *leasetest.Faulty }

func (s slowRead) Read(ctx context.Context) (lease.Snapshot, error) {
	snapshot, err := s.Faulty.Read(ctx)
	time.Sleep(time.Second)
	return snapshot, err
}

func TestFollow_AReadThatTheStreamHasOvertakenIsNotTold(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(m *leasetest.Memory)
		seen   []lease.Version
	}{
		"a write":    {func(m *leasetest.Memory) { m.Restore(lease.Record{Token: 2}) }, []lease.Version{"1", "2"}},
		"a deletion": {func(m *leasetest.Memory) { m.Delete() }, []lease.Version{"1", ""}},
		"a write by a hand, with neither another token nor another time": {
			func(m *leasetest.Memory) { m.Restore(lease.Record{Token: 1, Holder: "b"}) }, []lease.Version{"1", "2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := leasetest.NewMemory()
				m.Restore(lease.Record{Token: 1})
				time.AfterFunc(500*time.Millisecond, func() { tc.change(m) })
				assert.Equal(t, tc.seen, follow(t, slowRead{m.View("a")}, time.Minute))
			})
		})
	}
}

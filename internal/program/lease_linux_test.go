package program_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/program"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

func over(t *testing.T, store *leasetest.Memory, owner string, s lease.Settings, once bool) (
	program.Guard, *lease.Lease) {
	l, err := lease.New(store.View(owner), owner, s, lease.Options{})
	require.NoError(t, err)
	t.Cleanup(l.Close)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	return program.OverLease(l, program.LeaseOptions{Where: "memory:x", StopTimeout: 10 * time.Second,
		Once: once, Log: log}), l
}

// rivals are two guards over one lease, and the lease of the first.
func rivals(t *testing.T, s lease.Settings, once bool) (
	store *leasetest.Memory, a, b program.Guard, first *lease.Lease) {
	store = leasetest.NewMemory()
	a, first = over(t, store, "a", s, once)
	b, _ = over(t, store, "b", s, once)
	return store, a, b, first
}

func TestOverLease_OneTurnAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := lease.DefaultSettings()
		_, a, b, _ := rivals(t, settings, false)
		turn, err := a(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"SBR_TOKEN=1", "SBR_LEASE=memory:x", "SBR_HOLDER=a"}, turn.Facts)
		require.Equal(t, 10*time.Second, turn.Notice)
		require.Equal(t, time.Now().Add(settings.Window()), turn.Valid())

		waited, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = b(waited)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, turn.Over.Err(), "heartbeats keep it")

		next := make(chan *program.Turn)
		go func() {
			turn, _ := b(t.Context())
			next <- turn
		}()
		turn.Done(program.End{})
		turn = <-next
		require.EqualValues(t, 2, turn.Token)
		turn.Done(program.End{})
	})
}

// A lease that is taken away ends the turn at once, not with the next heartbeat.
func TestOverLease_TakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory()
		g, _ := over(t, store, "a", lease.DefaultSettings(), false)
		_, operator := over(t, store, "operator", lease.DefaultSettings(), false)
		turn, err := g(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		began := time.Now()
		_, _, err = operator.ForceRelease(t.Context(), "a")
		require.NoError(t, err)
		<-turn.Over.Done()
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, context.Cause(turn.Over), lease.ErrLost)
		require.False(t, turn.Valid().After(time.Now()))
		turn.Done(program.End{Again: true})
		turn, err = g(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, turn.Token)
		turn.Done(program.End{})
	})
}

// Nobody else may start before the program of a holder that cannot renew must have ended.
func TestOverLease_EndsBeforeOthersBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := lease.DefaultSettings()
		store, a, b, _ := rivals(t, settings, false)
		turn, err := a(t.Context())
		require.NoError(t, err)
		next := make(chan time.Time)
		go func() {
			turn, _ := b(t.Context())
			next <- time.Now()
			turn.Done(program.End{})
		}()
		synctest.Wait()
		store.View("a").SetUnavailable(true)
		<-turn.Over.Done()
		require.Equal(t, time.Now(), turn.Valid())
		ended := time.Now()
		began := <-next
		require.Greater(t, began.Sub(ended), settings.HeartbeatTimeout/8)
		turn.Done(program.End{})
	})
}

func TestOverLease_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, once := range []bool{false, true} {
			store := leasetest.NewMemory()
			g, _ := over(t, store, "a", lease.DefaultSettings(), once)
			store.View("a").Inject(leasetest.Writes, leasetest.Refuse, 1)
			_, err := g(t.Context())
			require.ErrorIs(t, err, lease.ErrRefused)
		}
	})
}

// slowDisk is a store whose first write was not done in time.
type slowDisk struct {
	lease.Store
	was bool
}

func (s *slowDisk) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	if !s.was {
		s.was = true
		return "", fmt.Errorf("%w: %w", lease.ErrRefused, context.DeadlineExceeded)
	}
	return s.Store.Write(ctx, r, prev)
}

// A store that was slow once is asked again, whether the program runs once or always.
func TestOverLease_SlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, once := range []bool{false, true} {
			l, err := lease.New(&slowDisk{Store: leasetest.NewMemory().View("a")}, "a", lease.DefaultSettings(),
				lease.Options{})
			require.NoError(t, err)
			defer l.Close()
			g := program.OverLease(l, program.LeaseOptions{Where: "memory:x", Once: once,
				Log: slog.New(slog.DiscardHandler)})
			turn, err := g(t.Context())
			require.NoError(t, err)
			turn.Done(program.End{})
		}
	})
}

// With Once a process leaves with the next heartbeat of the holder, never earlier.
func TestOverLease_Once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := lease.DefaultSettings()
		_, a, b, holder := rivals(t, settings, true)
		turn, err := a(t.Context())
		require.NoError(t, err)
		began := time.Now()
		_, err = b(t.Context())
		require.ErrorIs(t, err, program.ErrElsewhere)
		require.Equal(t, settings.Interval(), time.Since(began))

		// Its holder is gone: nobody sees a sign of life.
		holder.Close()
		began = time.Now()
		next, err := b(t.Context())
		require.NoError(t, err)
		require.Equal(t, settings.HeartbeatTimeout, time.Since(began))
		require.Equal(t, turn.Token+1, next.Token)
		next.Done(program.End{})
		turn.Done(program.End{})
	})
}

// A holder for ever is waited for until it releases.
func TestOverLease_OnceInfinite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := lease.DefaultSettings()
		settings.HeartbeatTimeout = lease.Infinite
		_, a, b, holder := rivals(t, settings, true)
		turn, err := a(t.Context())
		require.NoError(t, err)
		require.True(t, turn.Valid().IsZero())
		holder.Close()
		errGaveUp := errors.New("gave up")
		waited, cancel := context.WithTimeoutCause(t.Context(), 24*time.Hour, errGaveUp)
		defer cancel()
		_, err = b(waited)
		require.ErrorIs(t, err, errGaveUp)
		turn.Done(program.End{})
	})
}

// A release is a sign that the program has run: without one, somebody else has to run it. A lease that never
// runs out is released all the same.
func TestOverLease_OnceWithoutARun(t *testing.T) {
	for name, c := range map[string]struct {
		timeout time.Duration
		ran     bool
		want    error
	}{
		"it has run":              {time.Minute, true, program.ErrElsewhere},
		"it was not started":      {time.Minute, false, nil},
		"not started, no timeout": {lease.Infinite, false, program.ErrElsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				settings := lease.DefaultSettings()
				settings.HeartbeatTimeout = c.timeout
				_, a, b, holder := rivals(t, settings, true)
				turn, err := a(t.Context())
				require.NoError(t, err)
				time.AfterFunc(time.Second, func() {
					turn.Done(program.End{Ran: c.ran})
					holder.Close() // its process ends
				})
				next, err := b(t.Context())
				require.ErrorIs(t, err, c.want)
				if err == nil {
					next.Done(program.End{Ran: true})
				}
			})
		})
	}
}

func TestNotice(t *testing.T) {
	for _, tc := range []struct {
		name              string
		heartbeat         time.Duration
		interval          time.Duration
		stopTimeout, want time.Duration
	}{
		{"the defaults leave all of it", 120 * time.Second, 12 * time.Second, 10 * time.Second, 10 * time.Second},
		{"half of the time in which heartbeats may fail stays theirs", 120 * time.Second, 12 * time.Second, time.Hour, 44 * time.Second},
		{"a short lease leaves less", 20 * time.Second, time.Second, 10 * time.Second, 5750 * time.Millisecond},
		{"no time at all", 5 * time.Second, 2499 * time.Millisecond, time.Second, 313 * time.Millisecond},
		{"for ever", lease.Infinite, 12 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := lease.Settings{HeartbeatTimeout: tc.heartbeat, HeartbeatInterval: tc.interval,
				OperationTimeout: 5 * time.Second}
			require.Equal(t, tc.want, program.Notice(s, tc.stopTimeout).Round(time.Millisecond))
		})
	}
}

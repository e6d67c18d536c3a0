package drive_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease"
)

// held is a lease with this token.
type held uint64

func (h held) Token() uint64                 { return uint64(h) }
func (h held) ValidUntil() (time.Time, bool) { return time.Time{}, h != 0 }
func function(context.Context) error         { return nil }

// heldUntil is a lease that the monotonic clock lets be held.
type heldUntil struct {
	held
	until time.Time
}

func (h heldUntil) ValidUntil() (time.Time, bool) { return h.until, true }

func until(d time.Duration) *drive.Deadline {
	var at drive.Deadline
	at.Set(time.Now().Add(d))
	return &at
}

func TestRun_DoesNotStartOnceItMayNotWork(t *testing.T) {
	wall := func(d time.Duration) heldUntil { return heldUntil{7, time.Now().Round(0).Add(d)} }
	for name, c := range map[string]struct {
		run  *drive.Run
		want error
	}{
		"the machine was suspended beyond it": {&drive.Run{Token: 7, Holding: wall(-time.Second)}, slot.CauseLeaseLost},
		"its lease goes on":                   {&drive.Run{Token: 7, Holding: wall(time.Hour)}, nil},
		"with its lease":                      {&drive.Run{Token: 7, Holding: held(7)}, nil},
		"the lease is gone":                   {&drive.Run{Token: 7, Holding: held(0)}, slot.CauseLeaseLost},
		"the lease was granted once more":     {&drive.Run{Token: 7, Holding: held(8)}, slot.CauseLeaseLost},
		"without a lease":                     {&drive.Run{Token: 7, Until: until(time.Hour)}, nil},
		"unsure for too long":                 {&drive.Run{Token: 7, Until: until(-time.Second)}, slot.CauseUnsure},
		"never sure":                          {&drive.Run{Token: 7, Until: new(drive.Deadline)}, slot.CauseUnsure},
		"the lease counts where there is one": {&drive.Run{Token: 7, Holding: held(7), Until: until(-time.Second)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			require.ErrorIs(t, c.run.Begin(t.Context()), c.want)
			if c.want == nil {
				c.run.Start(function, func(err error) { ended <- err })
				require.NoError(t, <-ended)
			}
			require.ErrorIs(t, c.run.Check(), drive.ErrNotRunning, "refused, or over")
		})
	}
}

func TestRun_StopTellsTheCause(t *testing.T) {
	r := &drive.Run{Of: "singleton x", Token: 7, Holding: held(7)}
	told, ended := make(chan error, 1), make(chan error, 1)
	require.NoError(t, r.Begin(t.Context()))
	r.Start(func(ctx context.Context) error {
		<-ctx.Done()
		told <- context.Cause(ctx)
		return errors.New("last words")
	}, func(err error) { ended <- err })
	require.NoError(t, r.Check())
	at, ok := r.ValidUntil()
	require.True(t, ok)
	require.Zero(t, at, "for ever")
	require.NoError(t, r.Cause())
	require.NoError(t, r.HandOver([]byte("page 7")))
	require.EqualError(t, r.HandOver(make([]byte, slot.MaxState+1)), "singleton x: 513 bytes of state cannot be handed over, only 512: keep them in a store, under the token")
	require.Equal(t, "page 7", string(r.Left()))
	r.Stop(slot.CauseDown, "a verdict")
	require.EqualError(t, r.Check(), "singleton x: this run may not work any more: down: a verdict")
	require.ErrorIs(t, <-told, slot.CauseDown)
	require.EqualError(t, <-ended, "last words")
	_, ok = r.ValidUntil()
	require.False(t, ok)
}

func TestSettings_ZeroIsTheDefault(t *testing.T) {
	var retry, margin, restart, again time.Duration = 0, 0, time.Minute, -time.Second
	var retries int
	var times lease.Settings
	var log *slog.Logger
	s := &drive.Settings{Of: "singleton", HandOverRetryInterval: &retry, RemovalMargin: &margin,
		RestartAfter: &restart, LeaseRetryInterval: &again,
		NumberOfRetries: &retries, Lease: &times, Logger: &log}
	p := downing.DefaultConfig()
	s.Fill(p)
	require.EqualError(t, s.Validate(p), "singleton: lease-retry-interval is -1s: at least 1ms is needed")
	require.Equal(t, []time.Duration{time.Second, p.Resolver.StableAfter, time.Minute, -time.Second},
		[]time.Duration{retry, margin, restart, again})
	require.Equal(t, 15, retries)
	require.Equal(t, p.Lease, times)
	require.NotNil(t, log)
}

func TestDeadline_PassesWithTheFirstOfTwoClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d drive.Deadline
		require.True(t, d.Passed(), "none was set")
		require.Zero(t, d.Time())
		at := time.Now().Add(time.Minute)
		d.Set(at)
		require.False(t, d.Passed())
		require.Equal(t, at, d.Time())
		time.Sleep(time.Minute - 1)
		require.False(t, d.Passed())
		time.Sleep(time.Nanosecond)
		require.True(t, d.Passed())
	})
}

// While a machine is suspended its monotonic clock stands still: the wall clock tells.
func TestSince_ASuspendedMachine(t *testing.T) {
	wall := time.Now().Round(0).Add(-time.Hour) // without a monotonic reading only the wall clock counts
	require.GreaterOrEqual(t, drive.Since(wall), time.Hour)
}

func TestGo_EveryEndIsTold(t *testing.T) {
	full := errors.New("disk full")
	ends := make(chan error)
	call := func(f func() error) error {
		drive.Go(f, func(err error) { ends <- err })
		return <-ends
	}
	require.NoError(t, call(func() error { return nil }))
	require.ErrorIs(t, call(func() error { return full }), full)
	require.ErrorIs(t, call(func() error { runtime.Goexit(); return nil }), drive.ErrExited)
	err := call(func() error { panic("a bug") })
	require.EqualError(t, err, "panic: a bug")
	require.Contains(t, drive.Attributes(err)[3], "run_test.go", "the stack says where")
	require.Len(t, drive.Attributes(full), 2)
}

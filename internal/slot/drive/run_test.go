package drive_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease"
)

// held is a lease with this token.
type held uint64

func (h held) Token() uint64                 { return uint64(h) }
func (h held) ValidUntil() (time.Time, bool) { return time.Time{}, h != 0 }
func function(context.Context) error         { return nil }
func until(d time.Duration) *drive.Deadline {
	var at drive.Deadline
	at.Set(time.Now().Add(d))
	return &at
}

func TestRun_DoesNotStartOnceItMayNotWork(t *testing.T) {
	for name, c := range map[string]struct {
		run  *drive.Run
		want error
	}{
		"with its lease":                      {&drive.Run{Token: 7, Holding: held(7)}, nil},
		"the lease is gone":                   {&drive.Run{Token: 7, Holding: held(0)}, drive.ErrLeaseLost},
		"the lease was granted once more":     {&drive.Run{Token: 7, Holding: held(8)}, drive.ErrLeaseLost},
		"without a lease":                     {&drive.Run{Token: 7, Until: until(time.Hour)}, nil},
		"unsure for too long":                 {&drive.Run{Token: 7, Until: until(-time.Second)}, drive.ErrUnsure},
		"never sure":                          {&drive.Run{Token: 7, Until: new(drive.Deadline)}, drive.ErrUnsure},
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
	require.NoError(t, r.HandOver([]byte("page 7"), 10))
	require.EqualError(t, r.HandOver([]byte("page 7"), 5), "singleton x: 6 bytes of state cannot be handed over, only 5: keep them in a store, under the token")
	require.Equal(t, "page 7", string(r.Left()))
	r.Stop(drive.ErrDowned, "a verdict")
	require.EqualError(t, r.Check(), "singleton x: this run may not work any more: downed: a verdict")
	require.ErrorIs(t, <-told, drive.ErrDowned)
	require.EqualError(t, <-ended, "last words")
	_, ok = r.ValidUntil()
	require.False(t, ok)
}

func TestSettings_ZeroIsTheDefault(t *testing.T) {
	var retry, margin, restart, again time.Duration = 0, 0, time.Minute, -time.Second
	var retries int
	var times lease.Settings
	var log *slog.Logger
	s := &drive.Settings{Of: "singleton", HandOverRetryInterval: &retry, RemovalMargin: &margin, RestartAfter: &restart, LeaseRetryInterval: &again,
		NumberOfRetries: &retries, Lease: &times, Logger: &log}
	p := downing.DefaultConfig()
	s.Fill(p)
	require.EqualError(t, s.Validate(p), "singleton: lease-retry-interval is -1s: at least 1ms is needed")
	require.Equal(t, []time.Duration{time.Second, p.Resolver.StableAfter, time.Minute, -time.Second}, []time.Duration{retry, margin, restart, again})
	require.Equal(t, 15, retries)
	require.Equal(t, p.Lease, times)
	require.NotNil(t, log)
}

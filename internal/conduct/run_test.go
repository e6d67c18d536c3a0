package conduct_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/conduct"
)

// held is a lease with this token.
type held uint64

func (h held) Token() uint64                 { return uint64(h) }
func (h held) ValidUntil() (time.Time, bool) { return time.Time{}, h != 0 }
func function(context.Context) error         { return nil }
func until(d time.Duration) *conduct.Deadline {
	var at conduct.Deadline
	at.Set(time.Now().Add(d))
	return &at
}

func TestRun_DoesNotStartOnceItMayNotWork(t *testing.T) {
	for name, c := range map[string]struct {
		run  *conduct.Run
		want error
	}{
		"with its lease":                      {&conduct.Run{Token: 7, Holding: held(7)}, nil},
		"the lease is gone":                   {&conduct.Run{Token: 7, Holding: held(0)}, conduct.ErrLeaseLost},
		"the lease was granted once more":     {&conduct.Run{Token: 7, Holding: held(8)}, conduct.ErrLeaseLost},
		"without a lease":                     {&conduct.Run{Token: 7, Until: until(time.Hour)}, nil},
		"unsure for too long":                 {&conduct.Run{Token: 7, Until: until(-time.Second)}, conduct.ErrUnsure},
		"never sure":                          {&conduct.Run{Token: 7, Until: new(conduct.Deadline)}, conduct.ErrUnsure},
		"the lease counts where there is one": {&conduct.Run{Token: 7, Holding: held(7), Until: until(-time.Second)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			require.ErrorIs(t, c.run.Begin(t.Context()), c.want)
			if c.want == nil {
				c.run.Start(function, func(err error) { ended <- err })
				require.NoError(t, <-ended)
			}
			require.ErrorIs(t, c.run.Check(), conduct.ErrNotRunning, "refused, or over")
		})
	}
}

func TestRun_StopTellsTheCause(t *testing.T) {
	r := &conduct.Run{Of: "singleton x", Token: 7, Holding: held(7)}
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
	r.Stop(conduct.ErrDowned, "a verdict")
	require.EqualError(t, r.Check(), "singleton x: this run may not work any more: downed: a verdict")
	require.ErrorIs(t, <-told, conduct.ErrDowned)
	require.EqualError(t, <-ended, "last words")
	_, ok = r.ValidUntil()
	require.False(t, ok)
}

func TestSettings_ZeroIsTheDefault(t *testing.T) {
	var a, b, c time.Duration = 0, time.Second, -time.Second
	settings := []conduct.Setting{{Key: "a", Value: &a, Default: time.Minute}, {Key: "b", Value: &b, Default: time.Minute}, {Key: "c", Value: &c}}
	require.EqualError(t, conduct.NotNegative("singleton", settings), "singleton: c is -1s: it must not be negative")
	conduct.Fill(settings)
	require.Equal(t, []time.Duration{time.Minute, time.Second, -time.Second}, []time.Duration{a, b, c})
}

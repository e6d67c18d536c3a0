package demo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/demo"
)

// The demonstration passes for each shape that its help names, on real Serf in virtual time.
func TestRun_OneSideStaysUpAndTheDownedIsRefused(t *testing.T) {
	for _, split := range []string{"3/2", "1/4", "2/2", "2/2/1"} {
		t.Run(split, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := demo.DefaultOptions()
				opt.Split = split
				began := time.Now()
				res, err := demo.Run(context.Background(), opt,
					func(e demo.Event) { t.Log(e.At, e.Node, e.Kind, e.Detail) })
				require.NoError(t, err)
				require.True(t, res.Passed)
				require.NotEmpty(t, res.Survivors)
				require.NotEmpty(t, res.Down)
				t.Logf("took %v, resolved after %v, double-active %v", time.Since(began), res.ResolvedAfter,
					res.DoubleActive)
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// A member that stands still through the whole partition learns its fate when it continues, before it does
// anything else.
func TestRun_PausedMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := demo.DefaultOptions()
		opt.Pause = "n5"
		res, err := demo.Run(context.Background(), opt, nil)
		require.NoError(t, err)
		require.True(t, res.Passed)
		require.Contains(t, res.Down, "n5")
		time.Sleep(2 * time.Minute)
	})
}

func TestOptions_EveryProblemAtOnce(t *testing.T) {
	opt := demo.Options{Split: "1", Pause: "n12", Namespace: "shop"}
	err := opt.Validate()
	for _, want := range []string{"at least two sides", "stable-after", "n12", "system",
		`namespace "shop" without a kubeconfig: the lease is in memory then`} {
		require.ErrorContains(t, err, want)
	}
	for _, bad := range []string{"", "3", "a/b", "0/5", "3/-2"} {
		opt := demo.DefaultOptions()
		opt.Split = bad
		require.Error(t, opt.Validate(), bad)
	}
}

// The timeline says which times are not the defaults; with Defaults all are.
func TestRun_SaysWhatItShortened(t *testing.T) {
	for defaults, want := range map[bool]string{
		false: "not the default times: stable-after 5s (20s), down-all-when-unstable 20s (15s), " +
			"settle-after 1s (5s), grace 5s (15s), telling 2s (10s), and Serf probes faster; --defaults has the real ones",
		true: "with the default times, stable-after 20s among them",
	} {
		synctest.Test(t, func(t *testing.T) {
			opt := demo.DefaultOptions()
			opt.Defaults = defaults
			res, err := demo.Run(context.Background(), opt, nil)
			require.NoError(t, err)
			require.True(t, res.Passed)
			require.Equal(t, want, res.Events[1].Detail)
			require.Equal(t, defaults, time.Duration(res.ResolvedAfter) > 20*time.Second)
			time.Sleep(2 * time.Minute)
		})
	}
}

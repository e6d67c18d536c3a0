package demo_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/demo"
	"github.com/serf-sbr/serf-sbr/internal/kubetest"
)

// The demonstration passes for each shape that its help names, on real Serf in virtual time.
func TestRun_OneSideStaysUpAndTheDownedIsRefused(t *testing.T) {
	for _, split := range []string{"3/2", "1/4", "2/2", "2/2/1"} {
		t.Run(split, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := demo.DefaultOptions()
				var err error
				opt.Split, err = demo.ParseSplit(split)
				require.NoError(t, err)
				began := time.Now()
				res, err := demo.Run(context.Background(), opt, func(e demo.Event) { t.Log(e.At.Round(time.Millisecond), e.Node, e.Kind, e.Detail) })
				require.NoError(t, err)
				require.True(t, res.Passed)
				require.NotEmpty(t, res.Survivors)
				require.NotEmpty(t, res.Down)
				t.Logf("took %v, resolved after %v, double-active %v", time.Since(began), res.ResolvedAfter, res.DoubleActive)
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// The same demonstration keeps its lease in a real kube-apiserver, with credentials for nothing but that lease.
func TestRun_RealAPIServer(t *testing.T) {
	cluster := kubetest.Shared(t)
	opt := demo.DefaultOptions()
	opt.Namespace = cluster.Namespace(t)
	var err error
	opt.Kubeconfig, err = cluster.LeastPrivilegeKubeconfig(t.Context(), opt.Namespace, "demo-sbr")
	require.NoError(t, err)
	opt.StableAfter = 2 * time.Second
	res, err := demo.Run(t.Context(), opt, nil)
	require.NoError(t, err)
	require.True(t, res.Passed)
	require.NotEmpty(t, res.Survivors)
	require.Equal(t, uint64(1), res.Verdict.Token)
	var out strings.Builder
	require.NoError(t, res.JSON(&out))
	require.Contains(t, out.String(), `"passed": true`)
}

// A member that stands still through the whole partition learns its fate when it continues, before it does anything else.
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
	opt := demo.Options{Nodes: 9, Split: []int{1}, Strategy: "keep-calm", Pause: "n12"}
	err := opt.Validate()
	for _, want := range []string{"at least two sides", "add up", "keep-calm", "stable-after", "n12", "system"} {
		require.ErrorContains(t, err, want)
	}
	for _, bad := range []string{"", "3", "a/b", "0/5", "3/-2"} {
		sides, err := demo.ParseSplit(bad)
		require.True(t, err != nil || len(sides) < 2, bad)
	}
}

func TestMain(m *testing.M) { os.Exit(kubetest.M(m).Run()) }

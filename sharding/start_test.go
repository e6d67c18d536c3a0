package sharding_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// A provider that has just been started has not looked at its members yet: the manager waits for that.
func TestStart_RightAfterTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, clustertest.Options{Config: clustertest.Quick})
		r := newCrew(t, c, 2)
		defer c.Stop()
		defer r.stop()
		c.Start("n1")
		require.Zero(t, c.Member("n1").Provider.Peers())
		r.start("n1")
	})
}

// One that is not started never looks.
func TestStart_WithoutAProviderThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := downing.DefaultConfig()
		cfg.System, cfg.Strategy = "payments", "keep-majority"
		p, err := downing.New(cfg)
		require.NoError(t, err)
		m, err := sharding.New(p, sharding.Config{Type: "orders", Shards: []string{"a"}, Run: func(context.Context, *sharding.Shard) error { return nil }})
		require.NoError(t, err)
		require.ErrorIs(t, m.Start(t.Context()), downing.ErrNotMember)
	})
}

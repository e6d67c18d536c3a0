package sharding_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// With one record for several leases no shard would run, and a crash would never be resolved: nothing starts.
func TestStart_RefusesARecordThatServesAnotherUse(t *testing.T) {
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick}, func(t *testing.T, c *clustertest.Cluster) {
		c.Form(1)
		own, shards := leasetest.NewMemory(), leasetest.NewMemory()
		for want, store := range map[string]func(name string) *leasetest.Memory{
			"the resolver of payments": func(string) *leasetest.Memory { return c.Store },
			"the shard 0 of orders of payments, and cannot be that of the shard 1 of orders of payments": func(string) *leasetest.Memory { return own },
			"the shard 0 of orders of payments, and cannot be that of the singleton shards.orders of payments": func(name string) *leasetest.Memory {
				if name == "payments-shard-orders-1" {
					return shards
				}
				return own
			},
		} {
			cfg := sharding.DefaultConfig()
			cfg.Type, cfg.Shards, cfg.Logger = "orders", sharding.Numbered(64), clustertest.Logger("n1")
			cfg.Run = func(context.Context, *sharding.Shard) error { return nil }
			cfg.Store = func(name string) (lease.Store, error) { return store(name).View("n1"), nil }
			m, err := sharding.New(c.Member("n1").Provider, cfg)
			require.NoError(t, err)
			err = m.Start(t.Context())
			require.ErrorIs(t, err, lease.ErrInUse)
			require.ErrorContains(t, err, want)
			<-m.Done()
		}
	})
}

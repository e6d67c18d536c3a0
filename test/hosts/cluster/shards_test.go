//go:build linux

package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sharding"
)

func TestShards_LeasesAndResources(t *testing.T) {
	s := &Shards{Type: "work", Count: 2, Guard: ByMembers}
	require.Equal(t, []string{"work-0", "work-1"}, s.Resources())
	require.Empty(t, s.leases())
	s.Guard = ByBoth
	require.Equal(t, []string{"hosts-shards-work", "hosts-shard-work-0", "hosts-shard-work-1"}, s.leases())
	require.Empty(t, (*Shards)(nil).leases())
}

func TestShards_Settled(t *testing.T) {
	s := &Shards{Count: 3}
	seen := func(running int, owners ...string) *sharding.Table {
		x := &sharding.Table{Recovered: true}
		for i, name := range owners {
			r := sharding.Row{Owner: sharding.Owner{Name: name, State: sharding.Moving}}
			if i < running {
				r.State = sharding.Running
			}
			x.Shards = append(x.Shards, r)
		}
		return x
	}
	require.NoError(t, s.settled(seen(3, "n1", "n1", "n2"), 2))
	require.ErrorContains(t, s.settled(seen(2, "n1", "n1", "n2"), 2), "running 2")
	require.ErrorContains(t, s.settled(seen(3, "n1", "n1", "n1"), 3), `3 shards are on "n1"`)
	require.ErrorContains(t, s.settled(seen(3, "n1", "n2", ""), 2), `1 shards are on ""`)
	silent := seen(3, "n1", "n1", "n2")
	silent.Silent = []string{"n2"}
	require.ErrorContains(t, s.settled(silent, 2), "silent [n2]")
}

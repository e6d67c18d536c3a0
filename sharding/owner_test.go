package sharding_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// Other programs route by it, and shards have state: it never changes.
func TestShardOf_NeverChanges(t *testing.T) {
	// XXH64, seed 0: ef46db3751d8e999, d24ec4f1a98c6e5b, 44bc2cf5ad770999
	for key, want := range map[string]string{
		"": "25", "a": "27", "abc": "25",
	} {
		require.Equal(t, want, sharding.ShardOf(key, 64), key)
	}
	require.Equal(t, "0", sharding.ShardOf("abc", 1))
	require.Equal(t, "249", sharding.ShardOf("abc", 1000)) // 0x44bc2cf5ad770999 is 4952883123889572249
}

// A member without Run is given nothing, not even the coordinator's part, and knows where to send requests.
func TestOwner_AMemberThatOnlyRoutes(t *testing.T) {
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick},
		func(t *testing.T, cl *clustertest.Cluster) {
			c := newCrew(t, cl, 8)
			c.change = func(name string, cfg *sharding.Config) {
				if name == "n1" {
					cfg.Run = nil
				}
			}
			c.startAll(3)
			defer c.stop()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, shard := range sharding.Numbered(8) {
				o, err := c.managers["n1"].Wait(ctx, shard)
				require.NoError(t, err)
				require.NotEqual(t, "n1", o.Name)
				require.Equal(t, "http://"+o.Name, o.Endpoint)
				require.NotZero(t, o.Token)
			}
			require.Zero(t, c.register.on()["n1"])
			require.NoError(t, c.managers["n1"].Ready())
			require.False(t, c.managers["n1"].Table().Recovered)
			_, err := c.managers["n1"].Wait(ctx, "8")
			require.ErrorIs(t, err, sharding.ErrNoShard)
		})
}

// An owner has begun to run the shard, under the token that Owner has; a member that joins late sees the
// same.
func TestOwner_ChangesWhenTheRunStarts(t *testing.T) {
	eachWay(t, 3, 24, func(t *testing.T, c *crew) {
		time.Sleep(time.Minute)
		moving := 0
		var early []sharding.Owner
		changes := c.managers["n2"].Changes(t.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for owners := range changes {
				tokens := c.register.newest()
				for _, o := range owners {
					if o.State == sharding.Moving {
						moving++
					}
					if o.Token > tokens[o.Shard] && o.Name != "n2" { // what starts here is known here at that moment
						early = append(early, o)
					}
				}
			}
		}()
		require.NoError(t, c.managers["n3"].Stop(t.Context()))
		c.settles(10 * time.Second)
		require.NoError(t, c.Member("n3").Serf.Leave())
		c.Start("n4")
		c.start("n4")
		time.Sleep(time.Minute)
		for _, name := range []string{"n1", "n2", "n4"} {
			for _, o := range c.managers[name].Owners() {
				runs, token := c.register.of(o.Shard)
				require.Equal(t, sharding.Owner{
					Shard: o.Shard, ID: o.ID, Name: runs, Endpoint: "http://" + runs, Token: token,
					State: sharding.Running,
				}, o, name)
				require.True(t, strings.HasPrefix(string(o.ID), o.Name))
			}
		}
		require.NoError(t, c.managers["n2"].Stop(t.Context()))
		<-watched
		require.Empty(t, early)
		require.NotZero(t, moving)
	})
}

// A list of shards changes in one manager after the other, without a restart of the members: then each shard of
// the new list runs, everybody knows where, and each member has some.
func TestOwner_AfterTheListOfShardsHasChanged(t *testing.T) {
	eachWay(t, 3, 4, func(t *testing.T, c *crew) {
		names := clustertest.Names(3)
		renew := func() {
			for _, name := range names {
				require.NoError(t, c.managers[name].Stop(t.Context()))
				c.start(name)
				time.Sleep(30 * time.Second)
			}
		}
		for range 3 {
			renew() // the tokens grow
		}
		list := append(sharding.Numbered(4), "00") // it comes second, so that the places of the others change
		c.shards, c.change = len(list), func(_ string, cfg *sharding.Config) { cfg.Shards = list }
		renew()
		time.Sleep(5 * time.Minute)
		require.Equal(t, len(list), c.register.all())
		require.Len(t, c.register.on(), len(names), "%v", c.register.on())
		for _, name := range names {
			for _, shard := range list {
				runs, token := c.register.of(shard)
				o, ok := c.managers[name].Owner(shard)
				require.True(t, ok)
				require.Equal(t, []any{runs, token}, []any{o.Name, o.Token}, "shard %s as %s sees it", shard, name)
			}
		}
	})
}

// Shard 0 belongs to members with the role large, on whichever member the coordinator runs; the other shards
// go where they would go anyway.
func TestTarget_PinsAShardToARole(t *testing.T) {
	large := func(name string, conf *serf.Config) {
		if name == "n2" || name == "n3" {
			conf.Tags[downing.TagRole] = "large,east"
		}
	}
	clustertest.Virtual(t, clustertest.Options{Config: clustertest.Quick, Serf: large},
		func(t *testing.T, cl *clustertest.Cluster) {
			c := newCrew(t, cl, 6)
			c.change = func(_ string, cfg *sharding.Config) {
				cfg.Target = func(_ []string, members []allocation.Member, _ map[string]sbr.ID) map[string]sbr.ID {
					for _, m := range members {
						if slices.Contains(m.Roles, "large") {
							return map[string]sbr.ID{"0": m.ID}
						}
					}
					return nil
				}
			}
			c.startAll(4)
			defer c.stop()
			c.settles(time.Minute)
			time.Sleep(time.Minute)
			runs, _ := c.register.of("0")
			require.Equal(t, "n2", runs)
			require.NoError(t, c.managers["n2"].Stop(t.Context()))
			c.settles(10 * time.Second)
			time.Sleep(time.Minute)
			runs, _ = c.register.of("0")
			require.Equal(t, "n3", runs)
		})
}

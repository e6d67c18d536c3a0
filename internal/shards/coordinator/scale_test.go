package coordinator_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

func settled(t *testing.T, shards, hosts int) *world {
	w := newWorld(t, 1, shards, false)
	w.jitter = 20 * time.Millisecond
	for i := range hosts {
		w.join(sbr.ID(fmt.Sprintf("n%03d#1", i)))
	}
	w.pass(15 * time.Second)
	require.Equal(t, shards, w.running())
	return w
}

// owners returns who runs what.
func owners(w *world) map[int]sbr.ID {
	all := make(map[int]sbr.ID)
	for _, n := range w.nodes {
		for s, r := range n.runs {
			if !n.crashed && !r.stopping {
				all[s] = n.id
			}
		}
	}
	return all
}

// A member that leaves a cluster of 20 with 1,000 shards: within 5 s its shards, and no others, run elsewhere.
func TestScale_OnlyTheShardsOfAMemberThatLeavesMove(t *testing.T) {
	w := settled(t, 1000, 20)
	before, starts := owners(w), maps.Clone(w.starts)
	clear(w.sent)
	w.node("n007#1").leave()
	left := w.now
	for w.running() < 1000 || !w.node("n007#1").gone {
		w.pass(50 * time.Millisecond)
		require.Less(t, w.now, left+5*time.Second)
	}
	t.Logf("settled after %v; messages delivered: %v", w.now-left, w.sent)
	for s, owner := range before {
		moved := w.starts[s] - starts[s]
		if owner == "n007#1" {
			require.Equal(t, 1, moved, "shard %d", s)
		} else {
			require.Zero(t, moved, "shard %d of %s", s, owner)
		}
	}
}

// A member that joins gets shards one at a time; each stands still for a moment only, and never two of them.
func TestScale_RebalancingMovesOneAtATime(t *testing.T) {
	w := settled(t, 100, 4)
	w.join("new#1")
	least := w.shards
	end := w.now + 20*time.Second
	for w.now < end && len(w.queue) > 0 {
		w.pass(time.Millisecond)
		least = min(least, w.running())
	}
	require.Equal(t, 100, w.running())
	require.Equal(t, 99, least, "one shard under way at most")
	require.NotEmpty(t, w.node("new#1").runs)
}

// Limits hold: no more shards without owner are under way than MaxRecoveries allows.
func TestScale_RecoveriesAreLimited(t *testing.T) {
	w := newWorld(t, 1, 50, false)
	w.limits = allocation.DefaultConfig()
	w.limits.MaxRecoveries = 5
	w.filter = func(_, _ sbr.ID, m *message.Message) bool {
		require.LessOrEqual(t, len(m.Orders), 5)
		return false
	}
	for i := range 3 {
		w.join(sbr.ID(fmt.Sprintf("n%d#1", i)))
	}
	most := 0
	for w.running() < 50 {
		w.pass(time.Millisecond)
		require.Less(t, w.now, 10*time.Second)
		most = max(most, w.chief.coord.Status().Moving)
	}
	require.Equal(t, 5, most)
}

// The largest cluster: 4,096 shards on 2 members do not fit into one message, and a new coordinator learns them all page by page.
func TestScale_ReportsInPages(t *testing.T) {
	w := newWorld(t, 1, message.MaxShards, false)
	w.limits.MaxRecoveries = message.MaxShards
	w.join("n1#1")
	w.join("n2#1")
	w.pass(10 * time.Second)
	require.Equal(t, message.MaxShards, w.running())
	starts := len(w.starts)
	w.appoint(w.node("n2#1"))
	w.pass(2 * time.Second)
	st := w.chief.coord.Status()
	require.True(t, st.Recovered)
	require.Equal(t, message.MaxShards, st.Running)
	require.Equal(t, starts, len(w.starts), "nothing was started again")
	for s, n := range w.starts {
		require.Equal(t, 1, n, "shard %d", s)
	}
}

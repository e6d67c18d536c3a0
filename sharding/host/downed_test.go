package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sharding/host"
)

// A member that is down says nothing more while its runs end, and has no deadline that it does not keep: what drives it would never sleep.
func TestDowned_SaysNothingAndComesToRest(t *testing.T) {
	b := following(t, nil)
	b.pass(0, true)
	for shard := range 2 {
		require.Equal(t, 1, starts(b.order("n1", 5, uint64(2+shard), shard, "", "me")))
		b.order("n1", 5, uint64(12+shard), shard, "me", "n2")
		b.handOver("n2", 5, uint64(12+shard), shard)
	}
	b.step(host.Downed{Why: "a verdict"})
	for shard := range 2 {
		require.Empty(t, only[host.Answer](b.ends(shard, 1)))
		require.Empty(t, only[host.Answer](b.pass(time.Second, false)))
		at, ok := b.m.NextDeadline()
		require.False(t, ok && at <= b.now, "the deadline %v has come, and nothing is done about it", at)
	}
	require.True(t, b.m.Finished())
}

package host_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestDown_StopsAllFirstAndSaysNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.order("n1", 5, 3, 1, "n2", "me")
	e := b.step(slot.Downed{Why: "a verdict"})
	require.Equal(t, slot.CauseDown, cause(t, e))
	require.Zero(t, starts(b.handedOver("n2", 5, 3, 1)))
	require.Empty(t, b.asks("n1", message.Message{Kind: message.Report, Term: 5, Number: message.Number(5, 50)}))
	require.False(t, b.m.Finished())
	for _, x := range append(b.ends(0, 1), b.pass(time.Hour, true)...) {
		require.IsType(t, slot.Explain{}, x)
	}
	require.True(t, b.m.Finished())
}

func TestLeave_RunsUntilAskedAndTakesNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.order("n1", 5, 3, 1, "n2", "me")
	require.Empty(t, only[slot.Stop](b.step(slot.Resign{Patience: 10 * time.Second})))
	require.Zero(t, starts(b.handedOver("n2", 5, 3, 1)))
	a := answer(t, b.order("n1", 5, 4, 2, "", "me"))
	require.Equal(t, slot.Idle, a.Entries[0].Phase)
	require.Equal(t, message.Number(5, 4), a.Entries[0].Seen, "so that the coordinator knows that nothing comes of it")
	require.True(t, a.Leaving)
	require.Equal(t, slot.CauseResigned, cause(t, b.pass(10*time.Second, true)))
	e := b.ends(0, 1)
	require.Equal(t, message.Resigned, only[slot.Ask[message.Message]](e)[0].Message.Kind)
	require.True(t, b.m.Finished())
}

func TestLeave_AloneStopsAtOnce(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.view.Peers = b.view.Peers[:1]
	b.pass(time.Second, true)
	require.Equal(t, slot.CauseResigned, cause(t, b.step(slot.Resign{Patience: 10 * time.Second})))
}

func TestMargin_IsTold(t *testing.T) {
	b := newBench(t, nil)
	peers := b.view.Peers
	b.view.Peers = slices.Clone(peers)
	b.view.Peers[2].Down = true
	b.pass(time.Second, true)
	require.Equal(t, 20*time.Second, b.report("n1", 5, 1).Wait)
	b.view.Peers = peers[:2]
	b.pass(5*time.Second, true)
	require.Equal(t, 15*time.Second, b.report("n1", 5, 2).Wait, "its removal does not begin another one")
}

func TestMargin_NotOfWhoHasResigned(t *testing.T) {
	b := newBench(t, nil)
	b.asks("n2", message.Message{Kind: message.Resigned})
	b.view.Peers = b.view.Peers[:2]
	b.pass(time.Second, true)
	require.Zero(t, b.report("n1", 5, 1).Wait)
}

// A member that is down says nothing more while its runs end, and has no deadline that it does not keep: what drives it would never sleep.
func TestDowned_SaysNothingAndComesToRest(t *testing.T) {
	b := following(t, nil)
	b.pass(0, true)
	for shard := range 2 {
		require.Equal(t, 1, starts(b.order("n1", 5, uint64(2+shard), shard, "", "me")))
		b.order("n1", 5, uint64(12+shard), shard, "me", "n2")
		b.handOver("n2", 5, uint64(12+shard), shard)
	}
	b.step(slot.Downed{Why: "a verdict"})
	for shard := range 2 {
		require.Empty(t, only[slot.Answer[message.Message]](b.ends(shard, 1)))
		require.Empty(t, only[slot.Answer[message.Message]](b.pass(time.Second, false)))
		at, ok := b.m.NextDeadline()
		require.False(t, ok && at <= b.now, "the deadline %v has come, and nothing is done about it", at)
	}
	require.True(t, b.m.Finished())
}

// A node that has left is gone for the others, who then wait for the margin alone: without leases its runs are over before.
func TestLeave_OfTheNodeIsOverBeforeTheMargin(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*host.Config)
		ends   bool
	}{{"without leases", nil, true}, {"a lease holds the others back", withLease, false}} {
		t.Run(tc.name, func(t *testing.T) {
			b := following(t, tc.change)
			b.order("n1", 5, 2, 0, "", "me")
			if !tc.ends {
				b.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 7})
			}
			b.view.Peers[0].Leaving = true
			require.Empty(t, only[slot.Stop](b.pass(time.Millisecond, true)), "until somebody asks")
			stops := only[slot.Stop](b.pass(slot.DefaultRules().Margin/2, false))
			if !tc.ends {
				require.Empty(t, stops)
				return
			}
			require.Len(t, stops, 1)
			require.Equal(t, slot.CauseResigned, stops[0].Cause)
		})
	}
}

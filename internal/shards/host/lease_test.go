package host_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestLease_NothingRunsWithoutIt(t *testing.T) {
	b := following(t, withLease)
	e := b.order("n1", 5, 2, 0, "", "me")
	require.Equal(t, []slot.AcquireLease{{Shard: 0, Attempt: 1}}, only[slot.AcquireLease](e))
	require.Zero(t, starts(e))
	b.step(slot.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Held})
	require.Empty(t, only[slot.AcquireLease](b.pass(4*time.Second, true)))
	require.Len(t, only[slot.AcquireLease](b.pass(time.Second, true)), 1)
	require.Zero(t, starts(b.step(slot.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 6})), "of an older attempt")
	require.Equal(t, uint64(7), only[slot.Start](b.step(slot.LeaseAnswer{Shard: 0, Attempt: 2, Outcome: sbr.Granted, Token: 7}))[0].Token)
}

func TestLease_Lost(t *testing.T) {
	b := following(t, withLease)
	b.order("n1", 5, 2, 0, "", "me")
	b.step(slot.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 7})
	require.Empty(t, only[slot.Stop](b.step(slot.LeaseLost{Shard: 0, Attempt: 9})))
	require.Equal(t, slot.CauseLeaseLost, cause(t, b.step(slot.LeaseLost{Shard: 0, Attempt: 1})))
	require.Len(t, only[slot.ReleaseLease](b.ends(0, 1)), 1)
	require.Empty(t, only[slot.AcquireLease](b.step(slot.LeaseReleased{Shard: 0, Attempt: 1})))
	require.Len(t, only[slot.AcquireLease](b.pass(5*time.Second, true)), 1)
	s := only[slot.Start](b.step(slot.LeaseAnswer{Shard: 0, Attempt: 2, Outcome: sbr.Granted, Token: 8}))
	require.Equal(t, []slot.Start{{Shard: 0, Run: 2, Token: 8, State: []byte("mine")}}, s)
}

// A store that was restored from a backup grants tokens that were used before: whatever the shard protects would refuse them, or, worse,
// take them for those of the run before.
func TestLease_TokenThatDoesNotGrowStartsNothing(t *testing.T) {
	refused := func(t *testing.T, b *bench, attempt, token uint64) {
		t.Helper()
		e := b.step(slot.LeaseAnswer{Shard: 0, Attempt: attempt, Outcome: sbr.Granted, Token: token})
		require.Zero(t, starts(e), "token %d", token)
		require.Equal(t, []slot.ReleaseLease{{Shard: 0, Attempt: attempt}}, only[slot.ReleaseLease](e))
		require.Equal(t, slot.TopicStuck, only[slot.Explain](e)[0].Topic)
		require.Empty(t, only[slot.AcquireLease](b.step(slot.LeaseReleased{Shard: 0, Attempt: attempt})))
		require.Equal(t, []slot.AcquireLease{{Shard: 0, Attempt: attempt + 1}}, only[slot.AcquireLease](b.pass(5*time.Second, true)), "it is asked for again")
		require.Equal(t, 1, starts(b.step(slot.LeaseAnswer{Shard: 0, Attempt: attempt + 1, Outcome: sbr.Granted, Token: 5})))
	}
	for _, token := range []uint64{0, 3, 4, math.MaxInt64 + 1} {
		b := following(t, withLease)
		b.order("n1", 5, 2, 0, "", "me")
		b.step(slot.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 4})
		b.step(slot.LeaseLost{Shard: 0, Attempt: 1})
		b.ends(0, 1)
		b.step(slot.LeaseReleased{Shard: 0, Attempt: 1})
		b.pass(5*time.Second, true)
		refused(t, b, 2, token)

		b = following(t, withLease)
		b.pass(0, true)
		b.order("n1", 5, 2, 0, "n2", "me")
		b.handedOverUnder("n2", 5, 2, 4)
		refused(t, b, 1, token)
	}
}

func TestLease_GivenBackBeforeTheHandOver(t *testing.T) {
	b := following(t, withLease)
	b.order("n1", 5, 2, 0, "", "me")
	b.step(slot.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 7})
	b.handOver("n2", 5, 3, 0)
	require.Empty(t, only[slot.Answer[message.Message]](b.ends(0, 1)))
	require.Len(t, only[slot.Answer[message.Message]](b.step(slot.LeaseReleased{Shard: 0, Attempt: 1})), 1)
}

func TestTrust_UnsureStopsAndStaysStopped(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	at, ok := b.m.Until()
	require.True(t, ok)
	require.Equal(t, slot.DefaultRules().Trust, at)
	require.Empty(t, only[slot.Stop](b.pass(slot.DefaultRules().Trust-1, false)))
	require.Equal(t, slot.CauseUnsure, cause(t, b.pass(1, false)))
	b.ends(0, 1)
	require.Zero(t, starts(b.pass(time.Second, true)))
	require.Equal(t, 1, starts(b.order("n1", 5, 3, 0, "", "me")), "until it is told to")
}

func TestTrust_NothingStartsWhileUnsure(t *testing.T) {
	b := following(t, nil)
	b.pass(time.Minute, false)
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")))
	require.Equal(t, 1, starts(b.pass(time.Second, true)))
}

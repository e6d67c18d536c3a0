package host_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestAnotherList_StopsEverything(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	q := message.Message{Kind: message.Report, Digest: 7, Term: 6, Number: message.Number(6, 1)}
	e := b.asks("n2", q)
	require.Equal(t, slot.CauseOrdered, cause(t, e))
	require.True(t, answer(t, e).Busy)
	b.ends(0, 1)
	require.False(t, answer(t, b.asks("n2", q)).Busy)
}

func TestNews_ToldUntilNoted(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.pass(time.Minute, false) // unsure
	b.ends(0, 1)
	told := only[slot.Ask[message.Message]](b.pass(time.Second, true))
	require.Len(t, told, 1)
	require.Equal(t, sbr.ID("n1"), told[0].To)
	require.Equal(t, slot.Idle, told[0].Message.Entries[0].Phase)
	again := only[slot.Ask[message.Message]](b.pass(time.Second, true))
	require.Len(t, again, 1)
	b.step(slot.Answered[message.Message]{From: "n1",
		Message: message.Message{Kind: message.Noted, Digest: digest, Term: 5, Seq: again[0].Message.Seq}})
	require.Empty(t, only[slot.Ask[message.Message]](b.pass(time.Minute, true)))
}

func TestRunEnded_ByItselfStartsAgain(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	require.Zero(t, starts(b.step(slot.RunEnded{Shard: 0, Run: 1, Rest: 2 * time.Second, State: make([]byte, message.MaxState+1)})))
	require.Equal(t, slot.Active, b.report("n1", 5, 9).Entries[0].Phase, "for others it runs on")
	s := only[slot.Start](b.pass(2*time.Second, true))
	require.Equal(t, []slot.Start{{Shard: 0, Run: 2, Token: message.Number(5, 2)}},
		s, "without the state, which was too long")
}

func TestClone_SharesNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	// without the effects of the last step
	written := func(m *host.Machine) string { return fmt.Sprintf("%+v", *m.Clone()) }
	before := written(b.m)
	c := b.m.Clone()
	require.Equal(t, before, written(c))
	c.Step(b.now, slot.Downed{})
	c.Step(b.now, slot.RunEnded{Shard: 0, Run: 1})
	require.Equal(t, before, written(b.m))
	require.NotEqual(t, before, written(c))
	phase, _ := b.m.Shard(0)
	require.Equal(t, slot.Active, phase)
	phase, _ = c.Shard(0)
	require.Equal(t, slot.Idle, phase)
}

func TestOrder_StartsAtOnceWhatNobodyHas(t *testing.T) {
	b := following(t, nil)
	e := b.order("n1", 5, 2, 0, "", "me")
	require.Equal(t, []slot.Start{{Shard: 0, Run: 1, Token: message.Number(5, 2)}}, only[slot.Start](e))
	require.Equal(t, []message.Entry{{Shard: 0, Phase: slot.Active, Number: message.Number(5, 2),
		Seen: message.Number(5, 2)}}, answer(t, e).Entries)
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")), "the same again")
}

// A new machine gets the orders of its predecessor. It takes nothing by them, and says so: the coordinator
// waits for nothing else.
func TestOrder_FromBeforeTheReportIsAnsweredAndNotFollowed(t *testing.T) {
	b := newBench(t, nil)
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")))
	b.report("n1", 5, 9)
	e := b.order("n1", 5, 8, 0, "", "me")
	require.Zero(t, starts(e))
	require.Equal(t, []message.Entry{{Shard: 0, Phase: slot.Idle, Seen: message.Number(5, 8)}},
		answer(t, e).Entries)
	require.Equal(t, 1, starts(b.order("n1", 5, 10, 0, "", "me")))
}

func TestOrder_OfAnOlderCoordinatorIsRefused(t *testing.T) {
	b := following(t, nil)
	require.False(t, b.report("n2", 6, 1).Refused)
	require.Zero(t, starts(b.order("n1", 5, 90, 0, "", "me")))
	a := b.report("n1", 5, 91)
	require.True(t, a.Refused)
	require.EqualValues(t, 6, a.Term)
	require.True(t, b.report("n1", 6, 1).Refused, "two cannot have the same term")
	require.Equal(t, 1, starts(b.order("n2", 6, 2, 0, "", "me")))
}

func TestOrder_OfAnOlderTermIsRefusedByTheNextMachine(t *testing.T) {
	b := newBench(t, func(c *host.Config) { c.Known = host.Known{Term: 6, Coordinator: "n2", Seq: 70} })
	require.True(t, b.report("n1", 5, 1).Refused)
	require.Greater(t, b.report("n2", 6, 1).Seq, uint64(70))
}

func TestOrder_WaitsForTheFormerHost(t *testing.T) {
	b := following(t, nil)
	e := b.order("n1", 5, 2, 0, "n2", "me")
	require.Zero(t, starts(e))
	require.Equal(t, sbr.ID("n2"), only[slot.Ask[message.Message]](e)[0].To)
	require.Zero(t, starts(b.handedOver("n1", 5, 2, 0)), "from another member")
	require.Zero(t, starts(b.handedOver("n2", 5, 1, 0)), "to another order")
	require.Len(t, only[slot.Ask[message.Message]](b.pass(time.Second, true)), 1, "asked again")
	s := only[slot.Start](b.handedOver("n2", 5, 2, 0))
	require.Equal(t, []slot.Start{{Shard: 0, Run: 1, Token: message.Number(5, 2), State: []byte("left"),
		From: "n2"}}, s)
}

func TestOrder_AMemberWithoutManagerRunsNothing(t *testing.T) {
	b := following(t, nil)
	q := only[slot.Ask[message.Message]](b.order("n1", 5, 2, 0, "n2", "me"))[0].Message
	require.Equal(t, 1, starts(b.step(slot.Answered[message.Message]{From: "n2", Message: q, Unserved: true})))
}

func TestOrder_TakenAwayBeforeItWasStarted(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "n2", "me")
	b.order("n1", 5, 3, 0, "me", "n1")
	require.Zero(t, starts(b.handedOver("n2", 5, 2, 0)))
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "n2", "me")), "late, and repeated")
	require.Len(t, only[slot.Answer[message.Message]](b.handOver("n1", 5, 3, 0)), 1)
}

func TestOrder_ThatGivesARunningShardToOthersStopsIt(t *testing.T) {
	for name, c := range map[string]struct {
		from, to sbr.ID
		stops    bool
	}{
		"from here: when it is asked for": {"me", "n2", false},
		"from elsewhere":                  {"n2", "n1", true},
		"from nobody":                     {"", "n1", true},
		"to nobody, from here":            {"me", "", true},
		"to nobody, from elsewhere":       {"n2", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := following(t, nil)
			b.order("n1", 5, 2, 0, "", "me")
			e := b.order("n1", 5, 3, 0, c.from, c.to)
			require.Equal(t, c.stops, len(only[slot.Stop](e)) > 0)
		})
	}
}

func TestLease_NothingRunsWithoutIt(t *testing.T) {
	b := following(t, withLease)
	e := b.order("n1", 5, 2, 0, "", "me")
	require.Equal(t, []slot.AcquireLease{{Shard: 0, Attempt: 1}}, only[slot.AcquireLease](e))
	require.Zero(t, starts(e))
	b.step(slot.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Held})
	require.Empty(t, only[slot.AcquireLease](b.pass(4*time.Second, true)))
	require.Len(t, only[slot.AcquireLease](b.pass(time.Second, true)), 1)
	require.Zero(t, starts(b.step(slot.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 6})),
		"of an older attempt")
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

// A store that was restored from a backup grants tokens that were used before: whatever the shard protects
// would refuse them, or, worse, take them for those of the run before.
func TestLease_TokenThatDoesNotGrowStartsNothing(t *testing.T) {
	refused := func(t *testing.T, b *bench, attempt, token uint64) {
		t.Helper()
		e := b.step(slot.LeaseAnswer{Shard: 0, Attempt: attempt, Outcome: sbr.Granted, Token: token})
		require.Zero(t, starts(e), "token %d", token)
		require.Equal(t, []slot.ReleaseLease{{Shard: 0, Attempt: attempt}}, only[slot.ReleaseLease](e))
		require.Equal(t, slot.TopicStuck, only[slot.Explain](e)[0].Topic)
		require.Empty(t, only[slot.AcquireLease](b.step(slot.LeaseReleased{Shard: 0, Attempt: attempt})))
		require.Equal(t, []slot.AcquireLease{{Shard: 0, Attempt: attempt + 1}},
			only[slot.AcquireLease](b.pass(5*time.Second, true)), "it is asked for again")
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
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")),
		"another member may have been ordered to take it since")
	require.Equal(t, 1, starts(b.order("n1", 5, 3, 0, "", "me")), "until it is told to")
}

func TestTrust_NothingStartsWhileUnsure(t *testing.T) {
	b := following(t, nil)
	b.pass(time.Minute, false)
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")))
	require.Equal(t, 1, starts(b.pass(time.Second, true)))
}

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

// As long as this member may not run the shard itself it lets the present host run it.
func TestTaking_AsksTheFormerHostOnlyOnceItMayRun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*host.Config)
		unable func(*bench)
		able   func(*bench)
	}{
		{"not armed", nil, func(b *bench) { b.view.Armed = false }, func(b *bench) { b.view.Armed = true }},
		{"not armed, with leases", withLease, func(b *bench) { b.view.Armed = false }, func(b *bench) { b.view.Armed = true }},
		{"not sure of its place", nil, func(b *bench) { b.view.Sure = -1 }, func(b *bench) { b.view.Sure = b.now }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := following(t, tc.change)
			tc.unable(b)
			b.step(slot.Viewed{View: b.view})
			require.Empty(t, asked(b.order("n1", 5, 2, 0, "n2", "me")))
			at, ok := b.m.NextDeadline()
			require.False(t, ok, "there is nothing to do at %v", at)
			require.Empty(t, asked(b.pass(time.Second, false)))
			tc.able(b)
			require.Equal(t, []sbr.ID{"n2"}, asked(b.step(slot.Viewed{View: b.view})))
		})
	}
}

// asked are those that were asked to hand over.
func asked(effects []slot.Effect) (of []sbr.ID) {
	for _, e := range only[slot.Ask[message.Message]](effects) {
		if e.Message.Kind == message.HandOver {
			of = append(of, e.To)
		}
	}
	return of
}

func TestHandOver_AnswersOnceTheRunHasEnded(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	require.Equal(t, slot.CauseHandOver, cause(t, b.handOver("n2", 5, 3, 0)))
	require.Empty(t, only[slot.Answer[message.Message]](b.pass(time.Second, true)))
	a := answer(t, b.ends(0, 1))
	require.Equal(t, []message.Handed{{Shard: 0, Number: message.Number(5, 3), State: []byte("mine")}}, a.Handed)
	require.True(t, answer(t, b.handOver("n2", 5, 1, 0)).Handed[0].Refused, "by an older order")
}

func TestHandOver_ByTheOrderUnderWhichItRunsHereIsNotFollowed(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	require.Empty(t, only[slot.Stop](b.handOver("n2", 5, 2, 0)), "it names this member alone")
}

func TestHandOver_OfAnOlderTermIsIgnored(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.report("n2", 6, 1)
	require.Empty(t, b.handOver("n2", 5, 3, 0))
}

func TestHandOver_SeveralInOneAnswer(t *testing.T) {
	b := following(t, nil)
	for s := range 3 {
		b.order("n1", 5, uint64(2+s), s, "", "me")
	}
	takes := []message.Take{{Shard: 0, Number: message.Number(5, 9)}, {Shard: 1, Number: message.Number(5, 10)},
		{Shard: 2, Number: message.Number(5, 11)}}
	require.Len(t, only[slot.Stop](b.asks("n2", message.Message{Kind: message.HandOver, Term: 5, Takes: takes})),
		3)
	require.Empty(t, only[slot.Answer[message.Message]](b.ends(0, 1)))
	require.Empty(t, only[slot.Answer[message.Message]](b.ends(2, 1)))
	require.Len(t, answer(t, b.pass(100*time.Millisecond, true)).Handed, 2, "the third takes longer")
}

// The state that a run has left here is for the new owner, and for a later run here. Once the shard may have
// run elsewhere the state is out of date.
func TestState_OfAnOlderRunIsNotInherited(t *testing.T) {
	begin := func(t *testing.T) *bench {
		b := following(t, nil)
		b.pass(0, true)
		require.Equal(t, 1, starts(b.order("n1", 5, 2, 0, "", "me")))
		return b
	}
	state := func(e []slot.Effect) []byte {
		s := only[slot.Start](e)
		require.Len(t, s, 1)
		return s[0].State
	}
	t.Run("handed over, and the other one has crashed", func(t *testing.T) {
		b := begin(t)
		b.order("n1", 5, 3, 0, "me", "n2")
		b.handOver("n2", 5, 3, 0)
		ended := only[slot.Answer[message.Message]](b.ends(0, 1)) // to the coordinator, and to n2
		require.Equal(t, []byte("mine"), ended[len(ended)-1].Message.Handed[0].State)
		require.Equal(t, []byte("mine"), answer(t, b.handOver("n2", 5, 3, 0)).Handed[0].State,
			"the answer was lost")
		require.Nil(t, state(b.order("n1", 5, 4, 0, "", "me")))
	})
	t.Run("handed over by two orders", func(t *testing.T) {
		b := begin(t)
		b.order("n1", 5, 3, 0, "me", "n2")
		b.handOver("n2", 5, 3, 0)
		b.ends(0, 1)
		b.order("n1", 5, 4, 0, "me", "n1")
		require.Nil(t, answer(t, b.handOver("n1", 5, 4, 0)).Handed[0].State, "n2 may have run it since")
	})
	t.Run("stopped unsure, and given away unheard", func(t *testing.T) {
		b := begin(t)
		b.pass(time.Minute, false)
		b.ends(0, 1)
		b.pass(time.Second, true)
		require.Nil(t, state(b.order("n1", 5, 9, 0, "", "me")))
	})
	t.Run("ended by itself", func(t *testing.T) {
		b := begin(t)
		b.step(slot.RunEnded{Shard: 0, Run: 1, State: []byte("mine"), Rest: time.Second})
		require.Equal(t, []byte("mine"), state(b.pass(time.Second, true)))
	})
	t.Run("ordered anew to the same member", func(t *testing.T) {
		b := begin(t)
		b.order("n1", 5, 3, 0, "me", "")
		b.ends(0, 1)
		require.Equal(t, []byte("mine"), state(b.order("n1", 5, 4, 0, "me", "me")))
	})
}

// A lease counts its grants: between a run and one whose token does not follow on it there may have been
// another one.
func TestState_WithLeasesOnlyTheNextRunInherits(t *testing.T) {
	for name, c := range map[string]struct {
		token uint64
		state []byte
		from  sbr.ID
	}{
		"the next grant":       {4, []byte("left"), "n2"},
		"somebody else had it": {5, nil, ""},
	} {
		t.Run("handed over, "+name, func(t *testing.T) {
			b := following(t, withLease)
			b.pass(0, true)
			b.order("n1", 5, 2, 0, "n2", "me")
			b.handedOverUnder("n2", 5, 2, 3)
			s := only[slot.Start](b.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: c.token}))
			require.Len(t, s, 1)
			require.Equal(t, c.state, s[0].State)
			require.Equal(t, c.from, s[0].From)
		})
	}
	for name, c := range map[string]struct {
		token uint64
		state []byte
	}{"the next grant": {4, []byte("mine")}, "somebody else had it": {5, nil}} {
		t.Run("lost and got again, "+name, func(t *testing.T) {
			b := following(t, withLease)
			b.pass(0, true)
			b.order("n1", 5, 2, 0, "", "me")
			b.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 3})
			b.step(slot.LeaseLost{Attempt: 1, Why: "not renewed"})
			b.ends(0, 1)
			b.step(slot.LeaseReleased{Attempt: 1})
			b.pass(time.Minute, true)
			s := only[slot.Start](b.step(slot.LeaseAnswer{Attempt: 2, Outcome: sbr.Granted, Token: c.token}))
			require.Len(t, s, 1)
			require.Equal(t, c.state, s[0].State)
		})
	}
	t.Run("what is handed over says under which token", func(t *testing.T) {
		b := following(t, withLease)
		b.pass(0, true)
		b.order("n1", 5, 2, 0, "", "me")
		b.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 3})
		b.order("n1", 5, 3, 0, "me", "n2")
		b.handOver("n2", 5, 3, 0)
		b.ends(0, 1)
		answers := only[slot.Answer[message.Message]](b.step(slot.LeaseReleased{Attempt: 1}))
		require.Equal(t, uint64(3), answers[len(answers)-1].Message.Handed[0].Token)
	})
}

func TestLeave_RunsUntilAskedAndTakesNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.order("n1", 5, 3, 1, "n2", "me")
	require.Empty(t, only[slot.Stop](b.step(slot.Resign{Patience: 10 * time.Second})))
	require.Zero(t, starts(b.handedOver("n2", 5, 3, 1)))
	a := answer(t, b.order("n1", 5, 4, 2, "", "me"))
	require.Equal(t, slot.Idle, a.Entries[0].Phase)
	require.Equal(t, message.Number(5, 4), a.Entries[0].Seen,
		"so that the coordinator knows that nothing comes of it")
	require.True(t, a.Leaving)
	require.Equal(t, slot.CauseResigned, cause(t, b.pass(10*time.Second, true)))
	e := b.ends(0, 1)
	require.Equal(t, message.Resigned, only[slot.Ask[message.Message]](e)[0].Message.Kind)
	require.True(t, b.m.Finished())
}

// The new owner may leave as well: it never asks, and waits for this member in turn.
func TestLeave_IsToldWhateverIsOrdered(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.order("n1", 5, 3, 0, "me", "n2")
	bids := func(e []slot.Effect) bool {
		return slices.ContainsFunc(only[slot.Ask[message.Message]](e), func(a slot.Ask[message.Message]) bool {
			return a.To == "" && a.Message.Kind == message.State && a.Message.Leaving
		})
	}
	require.True(t, bids(b.step(slot.Resign{Patience: 10 * time.Second})))
	require.False(t, bids(b.pass(900*time.Millisecond, true)))
	require.True(t, bids(b.pass(100*time.Millisecond, true)), "one may be lost")
	b.asks("n1", message.Message{Kind: message.State, Term: 5, Seq: 9, Leaving: true})
	bid := message.Message{Kind: message.State, Digest: digest, Term: 5, Leaving: true}
	e := b.step(slot.Answered[message.Message]{From: "n2", Message: bid, Unserved: true})
	require.Equal(t, slot.CauseResigned, cause(t, e), "one leaves, the other has left")
	require.False(t, bids(b.pass(time.Minute, true)))
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

// A member that is down says nothing more while its runs end, and has no deadline that it does not keep: what
// drives it would never sleep.
func TestDowned_StopsAllSaysNothingAndComesToRest(t *testing.T) {
	b := following(t, nil)
	b.pass(0, true)
	for shard := range 2 {
		require.Equal(t, 1, starts(b.order("n1", 5, uint64(2+shard), shard, "", "me")))
	}
	b.order("n1", 5, 13, 1, "me", "n2")
	b.handOver("n2", 5, 13, 1)
	b.order("n1", 5, 4, 2, "n2", "me")
	require.Equal(t, slot.CauseDown, cause(t, b.step(slot.Downed{Why: "a verdict"})))
	require.Zero(t, starts(b.handedOver("n2", 5, 4, 2)))
	require.Empty(t, b.asks("n1", message.Message{Kind: message.Report, Term: 5, Number: message.Number(5, 50)}))
	for shard := range 2 {
		require.False(t, b.m.Finished())
		for _, e := range append(b.ends(shard, 1), b.pass(time.Hour, false)...) {
			require.IsType(t, slot.Explain{}, e)
		}
		at, ok := b.m.NextDeadline()
		require.False(t, ok && at <= b.now, "the deadline %v has come, and nothing is done about it", at)
	}
	require.True(t, b.m.Finished())
}

// A node that has left is gone for the others, who then wait for the margin alone: without leases its runs
// are over before.
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

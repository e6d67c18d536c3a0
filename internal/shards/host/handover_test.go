package host_test

import (
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
	takes := []message.Take{{Shard: 0, Number: message.Number(5, 9)}, {Shard: 1, Number: message.Number(5, 10)}, {Shard: 2, Number: message.Number(5, 11)}}
	require.Len(t, only[slot.Stop](b.asks("n2", message.Message{Kind: message.HandOver, Term: 5, Takes: takes})), 3)
	require.Empty(t, only[slot.Answer[message.Message]](b.ends(0, 1)))
	require.Empty(t, only[slot.Answer[message.Message]](b.ends(2, 1)))
	require.Len(t, answer(t, b.pass(100*time.Millisecond, true)).Handed, 2, "the third takes longer")
}

package host_test

import (
	"fmt"
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
	b.step(slot.Answered[message.Message]{From: "n1", Message: message.Message{Kind: message.Noted, Digest: digest, Term: 5, Seq: again[0].Message.Seq}})
	require.Empty(t, only[slot.Ask[message.Message]](b.pass(time.Minute, true)))
}

func TestRunEnded_ByItselfStartsAgain(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	require.Zero(t, starts(b.step(slot.RunEnded{Shard: 0, Run: 1, Rest: 2 * time.Second, State: make([]byte, message.MaxState+1)})))
	require.Equal(t, slot.Active, b.report("n1", 5, 9).Entries[0].Phase, "for others it runs on")
	s := only[slot.Start](b.pass(2*time.Second, true))
	require.Equal(t, []slot.Start{{Shard: 0, Run: 2, Token: message.Number(5, 2)}}, s, "without the state, which was too long")
}

func TestClone_SharesNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	written := func(m *host.Machine) string { return fmt.Sprintf("%+v", *m.Clone()) } // without the effects of the last step
	before := written(b.m)
	c := b.m.Clone()
	require.Equal(t, before, written(c))
	c.Step(b.now, slot.Downed{})
	c.Step(b.now, slot.RunEnded{Shard: 0, Run: 1})
	require.Equal(t, before, written(b.m))
	require.NotEqual(t, before, written(c))
	require.Len(t, b.m.Status(), 1)
	require.Empty(t, c.Status())
}

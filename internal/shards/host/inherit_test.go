package host_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What a run has left here is for whoever takes over, and for a run that follows it here. Once the shard may have run elsewhere it is out of date.
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
		require.Equal(t, []byte("mine"), answer(t, b.handOver("n2", 5, 3, 0)).Handed[0].State, "the answer was lost")
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

// A lease counts its grants: between a run and one whose token does not follow on it there may have been another one.
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

package handover_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// bound has asked z to end its run.
func bound(t *testing.T, change func(*handover.Config), peers ...slot.Peer) *alone {
	a := newAlone(t, change, append(peers, younger)...)
	for _, p := range peers {
		a.hear(p.ID, handover.Clear, nil)
	}
	a.hear("z", handover.Running, nil)
	require.Equal(t, slot.Taking, a.m.Phase())
	return a
}

// Who has said that nothing speaks against it, and wants the slot now, has to ask for it: until then it is no
// reason to keep what nobody runs.
func TestBound_ARefusalThatComesAfterAYesIsNone(t *testing.T) {
	hidden := older
	hidden.Candidate = false
	a := bound(t, nil, hidden)
	a.hear("b", handover.Refuse, nil)
	a.hear("z", handover.HandedOver, nil)
	require.Len(t, only[slot.Start](a.got), 1)

	a = newAlone(t, nil, hidden, younger)
	a.hear("b", handover.Clear, nil)
	a.hear("b", handover.Refuse, nil)
	a.hear("z", handover.Running, nil)
	require.Empty(t, only[slot.Ask[handover.Message]](a.got), "nobody was asked to end yet: nothing is lost")
	a.hear("z", handover.Clear, nil)
	require.Empty(t, only[slot.Start](a.got))
}

func TestBound_IsOverWithTheTurn(t *testing.T) {
	attached := older
	attached.Candidate = false
	gaveUp := bound(t, nil, attached)
	require.Equal(t, handover.HandedOver, gaveUp.asked(older, handover.HandOver, 1).Kind)
	ran := bound(t, nil, attached)
	ran.hear("z", handover.HandedOver, nil)
	ran.asked(older, handover.HandOver, 1)
	ran.step(slot.RunEnded{Run: 1})
	for _, a := range []*alone{gaveUp, ran} {
		a.see(attached, younger)
		a.now += 2 * time.Second
		a.see(attached, younger)
		require.Equal(t, slot.Taking, a.m.Phase())
		a.see(older, younger)
		require.Equal(t, slot.Idle, a.m.Phase(), "it has not asked anybody to stop this time")
	}
}

func TestBound_NotWithoutItsPlace(t *testing.T) {
	a := bound(t, nil)
	a.step(slot.Viewed{View: slot.View{Sure: a.now, Peers: a.v.Peers}})
	require.Equal(t, slot.Idle, a.m.Phase())
}

func TestBound_WithALeaseFromWhenItAsksForIt(t *testing.T) {
	attached := older
	attached.Candidate = false
	a := newAlone(t, useLease, attached)
	a.hear("b", handover.Clear, nil)
	require.Equal(t, slot.Acquiring, a.m.Phase())
	a.see(older)
	require.Equal(t, handover.Running, a.asked(older, handover.Take, 1).Kind)
	a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 3})
	require.Len(t, only[slot.Start](a.got), 1)
}

func TestBound_ResignsOnlyOnceItHasTakenOver(t *testing.T) {
	a := bound(t, nil, further)
	a.step(slot.Resign{Patience: 3 * time.Second})
	require.Equal(t, handover.Resigning, only[slot.Ask[handover.Message]](a.got)[0].Message.Kind)
	require.False(t, a.m.Finished())
	require.Equal(t, handover.Running, a.asked(further, handover.Take, 1).Kind, "it refuses nobody")
	a.hear("z", handover.HandedOver, nil)
	require.Len(t, only[slot.Start](a.got), 1)
	a.asked(further, handover.HandOver, 1)
	require.Len(t, only[slot.Stop](a.got), 1)
	a.step(slot.RunEnded{Run: 1})
	require.True(t, a.m.Finished())
}

func TestBound_ResignsBeforeItHasTakenOver(t *testing.T) {
	resigned := func(t *testing.T, a *alone) {
		asks := only[slot.Ask[handover.Message]](a.got)
		require.Equal(t, handover.Resigned, asks[len(asks)-1].Message.Kind)
		require.True(t, a.m.Finished())
	}
	t.Run("its successor asks it first", func(t *testing.T) {
		a := bound(t, nil, further)
		a.step(slot.Resign{Patience: 3 * time.Second})
		require.Equal(t, handover.HandedOver, a.asked(further, handover.HandOver, 1).Kind)
		resigned(t, a)
	})
	t.Run("its patience is over", func(t *testing.T) {
		for _, change := range []func(*handover.Config){nil, useLease} {
			a := bound(t, change, further)
			if change != nil {
				a.hear("z", handover.HandedOver, nil)
				require.Equal(t, slot.Acquiring, a.m.Phase())
			}
			a.step(slot.Resign{Patience: 300 * time.Millisecond})
			at, ok := a.m.NextDeadline()
			require.True(t, ok)
			require.Equal(t, 300*time.Millisecond, at)
			a.now = at
			a.see(further, younger)
			resigned(t, a)
		}
	})
	t.Run("there is no time", func(t *testing.T) {
		a := bound(t, nil, further)
		a.step(slot.Resign{})
		require.Len(t, only[slot.Ask[handover.Message]](a.got), 1)
		resigned(t, a)
		a = bound(t, nil, further)
		a.step(slot.Resign{Patience: 3 * time.Second})
		a.step(slot.Resign{})
		resigned(t, a)
	})
	t.Run("there is nobody else", func(t *testing.T) {
		a := bound(t, nil)
		a.step(slot.Asked[handover.Message]{From: "z",
			Message: handover.Message{Kind: handover.Resigning, Round: 1}})
		a.step(slot.Resign{Patience: 3 * time.Second})
		resigned(t, a)
	})
}

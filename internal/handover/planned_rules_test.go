package handover_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// second is older than m and younger than b.
var second = slot.Peer{ID: "c", Born: 3, Candidate: true}

// answered is what became of a question, by the number that alone.asked has given it.
func (a *alone) answered(ref uint64) (kinds []handover.Kind) {
	for _, answer := range only[slot.Answer[handover.Message]](a.got) {
		if answer.Ref == ref {
			kinds = append(kinds, answer.Message.Kind)
		}
	}
	return kinds
}

func TestTake_IsAnsweredOnceTheOlderOneIsKnownToGo(t *testing.T) {
	for _, c := range []struct {
		name string
		hear func(a *alone)
		want []handover.Kind
	}{
		{"it says so", func(a *alone) {
			a.step(slot.Asked[handover.Message]{Ref: 9, From: older.ID,
				Message: handover.Message{Kind: handover.Resigned, Round: 1}})
		}, []handover.Kind{handover.Clear}},
		{"the view says so", func(a *alone) {
			gone := older
			gone.Leaving = true
			a.see(gone, second)
		}, []handover.Kind{handover.Clear}},
		{"the one that asks resigns first", func(a *alone) {
			a.step(slot.Asked[handover.Message]{Ref: 9, From: second.ID,
				Message: handover.Message{Kind: handover.Resigned, Round: 1}})
			a.step(slot.Asked[handover.Message]{Ref: 9, From: older.ID,
				Message: handover.Message{Kind: handover.Resigned, Round: 1}})
		}, nil},
		{"so late that it asks again", func(a *alone) {
			a.now += time.Second + 1
			a.see(older, second)
			a.see(second)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAlone(t, nil, older, second)
			require.Zero(t, a.asked(second, handover.Take, 1).Kind)
			a.see(older, second)
			require.Empty(t, a.got, "as long as nothing is new")
			c.hear(a)
			require.Equal(t, c.want, a.answered(1))
			a.see(second)
			require.Empty(t, a.answered(1), "once")
		})
	}
}

func TestTake_IsNotAnsweredByWhoIsDown(t *testing.T) {
	a := newAlone(t, nil, older, second)
	require.Zero(t, a.asked(second, handover.Take, 1).Kind)
	a.step(slot.Downed{})
	a.see(second)
	require.Empty(t, a.answered(1))
}

func TestTake_IsAnsweredByEachClone(t *testing.T) {
	a := newAlone(t, nil, older, second)
	require.Zero(t, a.asked(second, handover.Take, 1).Kind)
	original := a.m
	a.m = original.Clone()
	a.step(slot.Asked[handover.Message]{From: second.ID,
		Message: handover.Message{Kind: handover.Resigned, Round: 1}})
	a.see(second)
	require.Empty(t, a.answered(1), "it does not want it any more")
	a.m = original
	a.see(second)
	require.Equal(t, []handover.Kind{handover.Clear}, a.answered(1))
}

func TestTake_OfAMemberThatIsBoundAndResignsIsAnswered(t *testing.T) {
	a := newAlone(t, nil, older)
	a.step(slot.Asked[handover.Message]{From: older.ID,
		Message: handover.Message{Kind: handover.Resigning, Round: 7}})
	require.Equal(t, slot.Taking, a.m.Phase())
	require.Equal(t, handover.Clear, a.asked(older, handover.Take, 7).Kind)
	a.see(older)
	require.Equal(t, slot.Taking, a.m.Phase(), "it still resigns")
	require.Equal(t, handover.Clear, a.asked(older, handover.Take, 8).Kind)
	a.see(older)
	require.Equal(t, slot.Idle, a.m.Phase(), "a new manager does not")
}

func TestTake_WithALeaseNobodyHasToHaveHeard(t *testing.T) {
	a := newAlone(t, useLease, older, second)
	require.Equal(t, handover.Clear, a.asked(second, handover.Take, 1).Kind)
}

func TestTake_ThatIsOlderThanTheWordThatItsSenderGoesIsLate(t *testing.T) {
	a := newAlone(t, nil, older)
	a.step(slot.Asked[handover.Message]{From: older.ID,
		Message: handover.Message{Kind: handover.Resigned, Round: 7}})
	require.Equal(t, slot.Taking, a.m.Phase())
	require.Zero(t, a.asked(older, handover.Take, 7).Kind)
	require.Equal(t, slot.Taking, a.m.Phase(), "nobody gives way to it")
	require.Equal(t, handover.Clear, a.asked(older, handover.Take, 8).Kind, "a new manager")
	require.Equal(t, slot.Idle, a.m.Phase())

	a = newAlone(t, nil, older)
	a.step(slot.Asked[handover.Message]{From: older.ID,
		Message: handover.Message{Kind: handover.Resigned, Round: 7}})
	a.now += time.Second
	require.Equal(t, handover.Clear, a.asked(older, handover.Take, 7).Kind,
		"whose clock is behind that of the one before: it asks again")
}

func TestRefused_AsksAgainAtOnceWhenTheOtherOneGoes(t *testing.T) {
	for _, goes := range []handover.Kind{handover.Resigning, handover.Resigned} {
		a := newAlone(t, nil, younger)
		a.hear("z", handover.Refuse, nil)
		a.step(slot.Asked[handover.Message]{From: "z", Message: handover.Message{Kind: goes, Round: 1}})
		asks := only[slot.Ask[handover.Message]](a.got)
		require.Len(t, asks, 1, goes.String())
		require.Equal(t, sbr.ID("z"), asks[0].To)
		require.Equal(t, handover.Take, asks[0].Message.Kind)
		a.hear("z", handover.Clear, nil)
		require.Len(t, only[slot.Start](a.got), 1)
	}
}

func TestHandOver_IsAskedAgainAtOnceWhenNothingIsLeftToHandOver(t *testing.T) {
	a := newAlone(t, nil, younger)
	a.hear("z", handover.Running, nil)
	a.step(slot.Asked[handover.Message]{From: "z",
		Message: handover.Message{Kind: handover.Resigning, Round: 1}})
	require.Empty(t, only[slot.Ask[handover.Message]](a.got), "its run has to end first")
	a.step(slot.Asked[handover.Message]{From: "z", Message: handover.Message{Kind: handover.Resigned, Round: 1}})
	asks := only[slot.Ask[handover.Message]](a.got)
	require.Len(t, asks, 1)
	require.Equal(t, handover.HandOver, asks[0].Message.Kind)
}

func TestLeaving_SaysThatNothingRuns(t *testing.T) {
	for _, others := range [][]slot.Peer{{older}, {younger}} { // idle, and taking
		a := newAlone(t, nil, others...)
		leaver := myself
		leaver.Leaving = true
		a.step(slot.Viewed{View: slot.View{Armed: true, Sure: a.now,
			Peers: append([]slot.Peer{leaver}, others...)}})
		asks := only[slot.Ask[handover.Message]](a.got)
		require.Equal(t, handover.Resigned, asks[len(asks)-1].Message.Kind)
		require.True(t, a.m.Finished())
	}
}

// A question may come from a manager that was closed since: a member that yields to it asks whether the
// manager is still there.
func TestGivingWay_AsksWhoIsNotSeenAsACandidate(t *testing.T) {
	hidden := slot.Peer{ID: "b", Born: 1}
	for _, c := range []struct {
		name   string
		answer slot.Answered[handover.Message]
		want   slot.Phase
	}{
		{"it has no manager", slot.Answered[handover.Message]{From: "b", Unserved: true}, slot.Taking},
		{"it runs nothing and does not want to", slot.Answered[handover.Message]{From: "b", Message: handover.Message{Kind: handover.Clear}}, slot.Taking},
		{"it wants the slot", slot.Answered[handover.Message]{From: "b", Message: handover.Message{Kind: handover.Refuse}}, slot.Idle},
		{"it runs it", slot.Answered[handover.Message]{From: "b", Message: handover.Message{Kind: handover.Running}}, slot.Idle},
		{"another one has no manager", slot.Answered[handover.Message]{From: "z", Unserved: true}, slot.Idle},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAlone(t, nil, hidden, younger)
			before := a.round()
			require.Equal(t, handover.Clear, a.asked(older, handover.Take, 1).Kind)
			asks := only[slot.Ask[handover.Message]](a.got)
			require.Len(t, asks, 1)
			require.Equal(t, sbr.ID("b"), asks[0].To)
			require.Equal(t, handover.Take, asks[0].Message.Kind)
			a.step(slot.Answered[handover.Message]{From: "b", Unserved: true,
				Message: handover.Message{Round: before}})
			require.Equal(t, slot.Idle, a.m.Phase(), "that is what it had answered before it asked")
			c.answer.Message.Round = asks[0].Message.Round
			a.step(c.answer)
			require.Equal(t, c.want, a.m.Phase())
		})
	}
	a := bound(t, nil, hidden)
	a.step(slot.Resign{Patience: time.Minute})
	require.Equal(t, handover.HandedOver, a.asked(older, handover.HandOver, 1).Kind)
	asks := only[slot.Ask[handover.Message]](a.got)
	require.Len(t, asks, 1)
	require.Equal(t, handover.Resigned, asks[0].Message.Kind, "who goes does not want to know")
	for name, peers := range map[string][]slot.Peer{"a candidate": {older}, "nobody": {younger}} {
		a := newAlone(t, nil, hidden, younger)
		a.see(peers...)
		a.asked(older, handover.Take, 1)
		require.Empty(t, only[slot.Ask[handover.Message]](a.got), name)
	}
}

func TestGivingWay_PausesUntilItIsSeenForWhom(t *testing.T) {
	hidden := slot.Peer{ID: "b", Born: 1}
	gone := hidden
	gone.Leaving = true
	for _, c := range []struct {
		name string
		hear func(a *alone)
	}{
		{"a candidate that is none any more", func(a *alone) {
			a.see(older)
			a.see(hidden)
		}},
		{"a member that leaves", func(a *alone) { a.see(gone) }},
		{"one that resigns", func(a *alone) {
			a.step(slot.Asked[handover.Message]{From: "b",
				Message: handover.Message{Kind: handover.Resigned, Round: 1}})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAlone(t, nil, hidden)
			require.Equal(t, slot.Taking, a.m.Phase())
			require.Equal(t, handover.Clear, a.asked(older, handover.Take, 1).Kind)
			a.see(hidden)
			require.Equal(t, slot.Idle, a.m.Phase())
			c.hear(a)
			require.Equal(t, slot.Taking, a.m.Phase())
		})
	}
}

// Others take a node that has left for gone, and start after the margin.
func TestLeaving_WithoutALeaseTheRunEndsWithinHalfTheMargin(t *testing.T) {
	leaver := myself
	leaver.Leaving = true
	for name, c := range map[string]struct {
		change func(*handover.Config)
		want   func(handover.Config) time.Duration
	}{
		"without a lease": {func(c *handover.Config) { c.Margin = 4 * time.Second }, func(handover.Config) time.Duration { return 2 * time.Second }},
		"a margin longer than the patience": {func(c *handover.Config) { c.Margin = time.Hour }, func(c handover.Config) time.Duration {
			return time.Duration(c.NumberOfRetries) * c.HandOverRetryInterval
		}},
		"with a lease": {useLease, func(c handover.Config) time.Duration {
			return time.Duration(c.NumberOfRetries) * c.HandOverRetryInterval
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(self, myself.Born)
			if c.change != nil {
				c.change(&cfg)
			}
			a := newAlone(t, c.change)
			if cfg.UseLease {
				a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1})
			}
			require.Equal(t, slot.Active, a.m.Phase())
			a.see(younger)
			began := a.now
			for a.m.Phase() == slot.Active {
				a.step(slot.Viewed{View: slot.View{Armed: true, Sure: a.now, Peers: []slot.Peer{leaver, younger}}})
				if at, ok := a.m.NextDeadline(); ok && a.m.Phase() == slot.Active {
					a.now = at
				}
			}
			require.Equal(t, c.want(cfg), a.now-began)
		})
	}
}

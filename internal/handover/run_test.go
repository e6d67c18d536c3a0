package handover_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestState_OfTheNewestRunCounts(t *testing.T) {
	for _, order := range [][]sbr.ID{{"z", "y"}, {"y", "z"}} {
		a := newAlone(t, nil, younger, further)
		a.hear("z", handover.Running, func(m *handover.Message) { m.Token = 9 })
		a.hear("y", handover.Running, func(m *handover.Message) { m.Token = 5 })
		for _, id := range order {
			a.hear(id, handover.HandedOver, func(m *handover.Message) {
				if m.Token = 9; id == "z" { // y has heard of 9 as well, so its own state is withheld
					m.State = []byte("newest")
				}
			})
		}
		starts := only[slot.Start](a.got)
		require.Len(t, starts, 1)
		require.Equal(t, "newest", string(starts[0].State))
		require.Equal(t, sbr.ID("z"), starts[0].From)
	}
}

// A run that takes long to end hands over after the lease was asked for instead. What it has left counts if the
// lease says that no other run was in between.
func TestState_OfARunThatEndsLate(t *testing.T) {
	for token, want := range map[uint64]string{5: "page 7", 6: ""} {
		a := newAlone(t, useLease, younger)
		a.hear("z", handover.Running, nil)
		for a.m.Phase() == slot.Taking {
			a.now += time.Second
			a.see(younger)
		}
		require.Equal(t, slot.Acquiring, a.m.Phase())
		a.hear("z", handover.HandedOver, func(m *handover.Message) { m.Token, m.State = 4, []byte("page 7") })
		a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: token})
		starts := only[slot.Start](a.got)
		require.Len(t, starts, 1)
		require.Equal(t, want, string(starts[0].State))
	}
}

func TestState_IsNotKeptBeyondAnotherRun(t *testing.T) {
	t.Run("of a run handed over", func(t *testing.T) {
		a := newAlone(t, nil, younger, further)
		a.hear("z", handover.Running, nil)
		a.hear("y", handover.Clear, nil)
		a.see(younger, further, slot.Peer{ID: "x", Born: 11}) // one more to ask
		a.hear("z", handover.HandedOver, func(m *handover.Message) { m.Token, m.State = 3, []byte("old") })
		require.Equal(t, handover.Running, a.asked(older, handover.Take, 1).Kind, "it is about to")
		require.Equal(t, "old", string(a.asked(older, handover.HandOver, 1).State),
			"whoever is let through gets it")
		require.Equal(t, "old", string(a.asked(older, handover.HandOver, 1).State), "also if it has to ask again")
		a.now = 2 * time.Second
		a.see()
		a.now = 30 * time.Second
		a.see()
		starts := only[slot.Start](a.got)
		require.Len(t, starts, 1)
		require.Nil(t, starts[0].State, "b may have run since")
		require.Empty(t, starts[0].From)
	})
	t.Run("of the own run", func(t *testing.T) {
		a := newAlone(t, nil)
		a.see(older)
		a.asked(older, handover.HandOver, 1)
		a.step(slot.RunEnded{Run: 1, State: []byte("mine")})
		require.Equal(t, "mine", string(only[slot.Answer[handover.Message]](a.got)[0].Message.State))
		require.Equal(t, "mine", string(a.asked(older, handover.HandOver, 1).State), "its answer was lost")
		a.see()
		a.now = 30 * time.Second
		a.see()
		require.Nil(t, only[slot.Start](a.got)[0].State, "b may have run since")
	})
	t.Run("nor given to two members", func(t *testing.T) {
		a := newAlone(t, nil)
		a.see(older)
		a.asked(older, handover.HandOver, 1)
		a.step(slot.RunEnded{Run: 1, State: []byte("mine")})
		oldest := slot.Peer{ID: "a", Born: 0, Candidate: true}
		oldest.Born = -1
		a.see(older, oldest)
		require.Nil(t, a.asked(oldest, handover.Take, 1).State)
		require.Nil(t, a.asked(older, handover.HandOver, 1).State)
	})
	t.Run("with a lease that others had meanwhile", func(t *testing.T) {
		a := newAlone(t, useLease)
		a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 4})
		a.step(slot.LeaseLost{Attempt: 1})
		a.step(slot.RunEnded{Run: 1, State: []byte("mine")})
		a.step(slot.LeaseReleased{Attempt: 1})
		a.step(slot.LeaseAnswer{Attempt: 2, Outcome: sbr.Granted, Token: 6})
		require.Nil(t, only[slot.Start](a.got)[0].State)
	})
}

// told lets another member mention a token.
func (a *alone) told(token uint64) {
	msg := handover.Message{Kind: handover.Resigned, Token: token}
	a.step(slot.Asked[handover.Message]{From: "q", Message: msg})
}

func TestToken_NeverWraps(t *testing.T) {
	last := uint64(math.MaxInt64)
	for name, spoil := range map[string]func(*alone){
		"asked with": func(a *alone) {
			a.told(math.MaxUint64)
		},
		"of a verdict":    func(a *alone) { a.v.Verdict = last>>16 + 1 },
		"of the lot":      func(a *alone) { a.v.Verdict = math.MaxUint64 },
		"of the last one": func(a *alone) { a.v.Verdict = last >> 16; a.told(last) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlone(t, nil, older)
			spoil(a)
			a.now = 30 * time.Second
			a.see()
			a.now = 60 * time.Second
			a.see()
			require.Empty(t, only[slot.Start](a.got))
			require.NotEqual(t, slot.Active, a.m.Phase())
			explained := only[slot.Explain](a.got)
			require.Equal(t, slot.TopicStuck, explained[len(explained)-1].Topic)
			due, ok := a.m.NextDeadline()
			require.True(t, ok)
			require.Greater(t, due, a.now, "it is tried again later, not at once")
		})
	}
	t.Run("the last one is used", func(t *testing.T) {
		a := newAlone(t, nil, older)
		a.told(last - 1)
		a.see()
		a.now = 30 * time.Second
		a.see()
		require.Equal(t, last, a.m.Token())
		a.step(slot.RunEnded{Run: 1, Again: true})
		require.Zero(t, a.m.Token())
	})
}

// A run that can do nothing more under its token (the coordinator of shards whose numbers are spent) gets
// another one, also with a lease: the lease is given back and taken again.
func TestLease_ATokenThatIsSpentIsNotUsedAgain(t *testing.T) {
	for name, newer := range map[string]uint64{"spent": 1, "a newer one is known": 7, "neither": 0} {
		t.Run(name, func(t *testing.T) {
			a := newAlone(t, useLease)
			a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1})
			a.step(slot.RunEnded{Run: 1, Again: true, Newer: newer})
			require.Len(t, only[slot.ReleaseLease](a.got), int(min(newer, 1)))
		})
	}
}

func TestLease_LossHeardBeforeTheGrant(t *testing.T) {
	a := newAlone(t, useLease)
	a.step(slot.LeaseLost{Attempt: 1, Why: "fast"})
	a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1})
	require.Empty(t, only[slot.Start](a.got))
	a.now = 5 * time.Second
	a.see()
	require.Equal(t, []slot.AcquireLease{{Attempt: 2}}, only[slot.AcquireLease](a.got))
	a.step(slot.LeaseAnswer{Attempt: 2, Outcome: sbr.Granted, Token: 2})
	require.Len(t, only[slot.Start](a.got), 1)
}

func TestLease_GrantInFlightIsGivenBack(t *testing.T) {
	for name, e := range map[string]slot.Event{"resign": slot.Resign{Patience: time.Hour},
		"downed": slot.Downed{}} {
		t.Run(name, func(t *testing.T) {
			a := newAlone(t, useLease)
			require.Equal(t, slot.Acquiring, a.m.Phase())
			a.step(e)
			require.Len(t, only[slot.ReleaseLease](a.got), 1)
			a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1})
			require.Empty(t, only[slot.Start](a.got))
			require.True(t, a.m.Finished())
		})
	}
}

func TestDowned_StopsForGood(t *testing.T) {
	a := newAlone(t, nil)
	require.Equal(t, slot.CauseDown, only[slot.Stop](a.step(slot.Downed{Why: "a verdict"}))[0].Cause)
	a.step(slot.RunEnded{Run: 1})
	require.True(t, a.m.Finished())
	a.see()
	require.Empty(t, a.got)
}

func TestDowned_WhileReleasing(t *testing.T) {
	a := newAlone(t, useLease)
	a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1})
	a.step(slot.LeaseLost{Attempt: 1})
	a.step(slot.RunEnded{Run: 1})
	require.Equal(t, slot.Releasing, a.m.Phase())
	a.step(slot.Downed{})
	require.False(t, a.m.Finished(), "the lease is not given back yet")
	a.step(slot.LeaseReleased{Attempt: 1})
	require.True(t, a.m.Finished())
	require.Empty(t, only[slot.Ask[handover.Message]](a.got), "who is down says nothing")
}

func TestViewed_WithoutSelf(t *testing.T) {
	a := newAlone(t, nil)
	require.Equal(t, slot.Active, a.m.Phase())
	a.step(slot.Viewed{View: slot.View{Armed: true, Peers: []slot.Peer{younger}}})
	require.Equal(t, slot.Active, a.m.Phase())
	a.step(slot.Viewed{View: slot.View{Sure: -1}})
	require.Equal(t, slot.Stopping, a.m.Phase(), "a view that was never sure ends a run")
}

// Where nobody is left that remembers the tokens of a former run, the wall clock orders them: of two lives of
// all members, and of two members that began together and never heard of each other.
func TestToken_OfALaterRunIsLarger(t *testing.T) {
	for _, bits := range []int{29, 40} {
		first := func(began time.Time, after time.Duration, verdict uint64) uint64 {
			cfg := handover.Config{Rules: slot.DefaultRules()}
			cfg.Self, cfg.Born, cfg.CounterBits, cfg.Floor = "a", 1, bits, handover.FloorAt(began.Unix())
			m := handover.New(cfg, 0)
			m.Step(after, slot.Viewed{View: slot.View{Armed: true, Sure: after, Verdict: verdict,
				Peers: []slot.Peer{{ID: "a", Born: 1, Candidate: true}}}})
			require.Equal(t, slot.Active, m.Phase())
			return m.Token()
		}
		then := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
		require.Less(t, first(then, 0, 0), first(then.Add(time.Minute), 0, 0))
		require.Less(t, first(then, 0, 0), first(then, 4*time.Second, 0))
		require.Less(t, first(then.AddDate(60, 0, 0), 0, 7), first(then, 0, 8),
			"a verdict counts more than any clock")
		require.Less(t, first(then.AddDate(99, 0, 0), 0, 7), first(then, 0, 8), "nor one that is wrong")
		last := time.Date(2093, 1, 1, 0, 0, 0, 0, time.UTC)
		require.Less(t, first(last, 0, 0), first(last.Add(time.Minute), 0, 0))
		require.Less(t, first(last, 0, 0), uint64(1)<<bits, "the clock stays within the counter's bits")
		require.Zero(t, handover.FloorAt(0), "a clock that was never set")
		require.Equal(t, first(time.Unix(0, 0), time.Hour, 7), 7<<bits+uint64(1), "a clock that was never set")
	}
}

func TestLease_TokenThatDoesNotGrowStartsNothing(t *testing.T) {
	for _, token := range []uint64{0, 3, 4, math.MaxInt64 + 1} {
		a := newAlone(t, useLease)
		a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 4})
		a.step(slot.LeaseLost{Attempt: 1})
		a.step(slot.RunEnded{Run: 1})
		a.step(slot.LeaseReleased{Attempt: 1})
		a.step(slot.LeaseAnswer{Attempt: 2, Outcome: sbr.Granted, Token: token})
		require.Empty(t, only[slot.Start](a.got), "token %d", token)
		require.Len(t, only[slot.ReleaseLease](a.got), 1)
		a.now += 5 * time.Second
		a.see()
		require.Len(t, only[slot.AcquireLease](a.got), 1, "it is asked for again")
	}
}

package handover_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// config is what the members of a test have in common: DefaultConfig with short names for its times. Nothing
// starts for 20 s after a member is gone, and a run without a lease goes on for 26.25 s after its member was
// last sure.
func config(id sbr.ID, born int64) handover.Config {
	cfg := handover.Config{Rules: slot.DefaultRules()}
	cfg.Self, cfg.Born, cfg.NumberOfRetries = id, born, 3
	return cfg
}

func useLease(c *handover.Config) { c.UseLease = true }

// alone is one machine, m, whose events are in the hands of the test. It knows b, older, and z, younger.
type alone struct {
	t   *testing.T
	now time.Duration
	m   *handover.Machine
	v   slot.View
	got []slot.Effect // of the last event
}

const self = sbr.ID("m")

var (
	older   = slot.Peer{ID: "b", Born: 1, Candidate: true}
	myself  = slot.Peer{ID: self, Born: 5, Candidate: true}
	younger = slot.Peer{ID: "z", Born: 9, Candidate: true}
	further = slot.Peer{ID: "y", Born: 10, Candidate: true}
)

func newAlone(t *testing.T, change func(*handover.Config), peers ...slot.Peer) *alone {
	cfg := config(self, myself.Born)
	if change != nil {
		change(&cfg)
	}
	a := &alone{t: t, m: handover.New(cfg, 0)}
	a.see(peers...)
	return a
}

func (a *alone) step(e slot.Event) []slot.Effect {
	a.got = slices.Clone(a.m.Step(a.now, e))
	return a.got
}

// see shows the machine who is there; itself always is.
func (a *alone) see(peers ...slot.Peer) {
	a.v = slot.View{Armed: true, Verdict: a.v.Verdict, Sure: a.now, Peers: append([]slot.Peer{myself}, peers...)}
	a.step(slot.Viewed{View: a.v})
}

// round is that of the newest question.
func (a *alone) round() uint64 { return a.m.Round() }

func (a *alone) hear(from sbr.ID, k handover.Kind, change func(*handover.Message)) []slot.Effect {
	msg := handover.Message{Kind: k, Round: a.round()}
	if change != nil {
		change(&msg)
	}
	return a.step(slot.Answered[handover.Message]{From: from, Message: msg})
}

func (a *alone) asked(p slot.Peer, k handover.Kind, round uint64) handover.Message {
	a.step(slot.Asked[handover.Message]{Ref: round, From: p.ID,
		Message: handover.Message{Kind: k, Born: p.Born, Round: round}})
	for _, answer := range only[slot.Answer[handover.Message]](a.got) {
		if answer.Ref == round {
			return answer.Message
		}
	}
	return handover.Message{}
}

func only[E slot.Effect](effects []slot.Effect) (list []E) {
	for _, e := range effects {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

func TestMargin_OfWhoAskedBeforeItsTagsArrived(t *testing.T) {
	plain := older
	plain.Candidate = false // its tag is still under way
	a := newAlone(t, nil, plain)
	a.see(plain)
	require.Equal(t, handover.Clear, a.asked(older, handover.Take, 1).Kind)
	a.see()
	a.now = time.Second
	a.see()
	require.Equal(t, slot.Taking, a.m.Phase(), "it may run the slot: this member has agreed")
	require.Equal(t, 20*time.Second, a.m.Status().Until)
}

// The answer "it runs here" was on its way when its sender was downed, and no tag of its slot had come before
// (seed 555018).
func TestMargin_OfWhoWasAskedAndDidNotAnswer(t *testing.T) {
	for name, answered := range map[string]bool{"silent": false, "it runs nothing": true} {
		t.Run(name, func(t *testing.T) {
			plain := younger
			plain.Candidate = false // its tag is still under way
			a := newAlone(t, nil, plain)
			if answered {
				a.hear("z", handover.Clear, nil)
			}
			a.see()
			a.now = time.Second
			a.see()
			require.Equal(t, answered, a.m.Phase() == slot.Active)
		})
	}
}

func TestMargin_NotEndedByAQuestion(t *testing.T) {
	a := newAlone(t, nil, older)
	a.see()
	require.Zero(t, a.asked(older, handover.Take, 7).Kind, "a removed member gets no consent")
	require.Zero(t, a.asked(older, handover.HandOver, 8).Kind)
	require.Equal(t, slot.Taking, a.m.Phase())
	a.asked(older, handover.Resigned, 9)
	require.Equal(t, slot.Active, a.m.Phase(), "it says itself that nothing of it runs")
}

func TestClaim_AnUnreachableNewcomerCausesNoStorm(t *testing.T) {
	far := further
	far.Unreachable = true
	a := newAlone(t, nil)
	a.see(younger, far)
	require.Len(t, only[slot.Ask[handover.Message]](a.got), 1)
	for range 5 {
		a.see(younger, far)
		require.Empty(t, only[slot.Ask[handover.Message]](a.got), "the question is repeated when it is time to")
	}
}

// A member gives way only when it consents. A member that yielded to a kept request would take the slot again
// with each event, and ask all members each time: a storm of messages (seed 865338).
func TestClaim_NobodyGivesWayToAQuestionThatIsKept(t *testing.T) {
	far, asker := further, older
	far.Unreachable = true
	asker.Leaving = true
	a := newAlone(t, nil, far, asker)
	require.Equal(t, slot.Taking, a.m.Phase())
	require.Zero(t, a.asked(asker, handover.Take, 1).Kind, "it is kept: a candidate cannot be reached")
	for range 5 {
		require.Empty(t, only[slot.Ask[handover.Message]](a.step(slot.Viewed{View: a.v})))
	}
}

func TestClaim_ARunningMemberIsAskedUntilItStops(t *testing.T) {
	a := newAlone(t, nil)
	a.see(younger)
	a.hear("z", handover.Running, nil)
	for range 10 {
		a.now += time.Second
		a.see(younger)
		require.Equal(t, handover.HandOver, only[slot.Ask[handover.Message]](a.got)[0].Message.Kind)
	}
	a.hear("z", handover.HandedOver, nil)
	_, due := a.m.NextDeadline()
	a.now += time.Second
	a.see(younger)
	require.Empty(t, only[slot.Ask[handover.Message]](a.got))
	require.True(t, due, "the run's own deadline")
}

// A newcomer that did not know this member for longer than that answers nothing, and may have begun a run
// (seed 222187).
func TestClaim_AMemberThatWasLeftAloneIsAskedWhenItAsks(t *testing.T) {
	a := newAlone(t, nil)
	for range 5 {
		a.see(younger)
		a.now += time.Second
	}
	a.see(younger)
	require.Empty(t, only[slot.Ask[handover.Message]](a.got), "left alone")
	require.Equal(t, handover.Refuse, a.asked(younger, handover.Take, 1).Kind)
	require.Equal(t, handover.Take, only[slot.Ask[handover.Message]](a.got)[0].Message.Kind)
	a.hear("z", handover.Running, nil)
	require.Equal(t, handover.HandOver, only[slot.Ask[handover.Message]](a.got)[0].Message.Kind)
}

func TestAnswers_OfAnOldRoundAreStale(t *testing.T) {
	a := newAlone(t, nil, younger)
	old := a.round()
	a.asked(older, handover.Take, 1) // gives way
	require.Equal(t, slot.Idle, a.m.Phase())
	a.now = time.Second
	a.see(younger)
	require.Equal(t, slot.Taking, a.m.Phase())
	a.hear("z", handover.Clear, func(m *handover.Message) { m.Round = old })
	a.step(slot.Answered[handover.Message]{From: "z", Unserved: true, Message: handover.Message{Round: old}})
	require.Equal(t, slot.Taking, a.m.Phase())
	a.hear("z", handover.Clear, nil)
	require.Equal(t, slot.Active, a.m.Phase())
}

func TestAnswers_ALateClearDoesNotUndoRunning(t *testing.T) {
	a := newAlone(t, nil, younger, further)
	a.hear("z", handover.Running, nil)
	a.hear("z", handover.Clear, nil)
	a.hear("y", handover.Clear, nil)
	require.Equal(t, slot.Taking, a.m.Phase())
	require.Equal(t, handover.HandOver, only[slot.Ask[handover.Message]](a.got)[0].Message.Kind)
}

func TestAnswers_OfStrangersAndOfTheDownedDoNotCount(t *testing.T) {
	out := further
	out.Down = true
	a := newAlone(t, func(c *handover.Config) { c.Margin = 0 }, younger, out)
	a.hear("y", handover.Refuse, nil)
	a.hear("q", handover.Refuse, nil)
	a.hear("z", handover.Clear, nil)
	require.Equal(t, slot.Active, a.m.Phase())
}

func TestClaim_TheYoungerRunWaitsToBeAsked(t *testing.T) {
	a := newAlone(t, nil)
	a.see(older)
	a.hear("b", handover.Running, nil)
	require.Empty(t, only[slot.Ask[handover.Message]](a.got), "the older one asks")
	require.Equal(t, slot.Active, a.m.Phase())
	a.now = time.Second
	a.see(older)
	require.Empty(t, only[slot.Ask[handover.Message]](a.got))
}

func TestStatus_SaysWhatIsMissing(t *testing.T) {
	a := newAlone(t, nil, younger, further)
	a.hear("z", handover.Clear, func(m *handover.Message) { m.Wait = 3 * time.Second })
	s := a.m.Status()
	require.Equal(t, slot.Taking, a.m.Phase())
	require.Equal(t, []sbr.ID{"y"}, s.Asked)
	require.Equal(t, 3*time.Second, s.Until)
}

func TestAwaiting_IsBoundedAndAnsweredOnce(t *testing.T) {
	a := newAlone(t, nil)
	a.see(older)
	for i := range uint64(100) {
		a.step(slot.Asked[handover.Message]{Ref: i, From: "b",
			Message: handover.Message{Kind: handover.HandOver, Born: 1, Round: 7}})
	}
	a.step(slot.RunEnded{Run: 1})
	var refs []uint64
	for _, e := range only[slot.Answer[handover.Message]](a.got) {
		refs = append(refs, e.Ref)
	}
	require.Equal(t, []uint64{97, 98, 99}, refs, "the newest questions are open where they were asked")
	a.see()
	a.now = time.Minute
	a.see()
	require.Equal(t, slot.Active, a.m.Phase())
	a.step(slot.RunEnded{Run: 2})
	require.Empty(t, only[slot.Answer[handover.Message]](a.got), "they are answered once")
}

func TestQuitter_WithANewManagerIsASuccessorAgain(t *testing.T) {
	withdrawn := younger
	withdrawn.Candidate = false
	a := newAlone(t, nil)
	a.see(younger)
	a.asked(younger, handover.Resigned, 1)
	a.see(withdrawn)
	a.see(younger) // a new manager, which does not have to ask for the slot
	a.step(slot.Resign{Patience: time.Minute})
	require.Equal(t, slot.Active, a.m.Phase(), "there is somebody to hand over to")
}

func TestHandedOver_ByAMemberThatStaysLeavesItASuccessor(t *testing.T) {
	a := newAlone(t, nil, younger)
	a.hear("z", handover.Running, nil)
	a.hear("z", handover.HandedOver, nil)
	require.Equal(t, slot.Active, a.m.Phase())
	a.step(slot.Resign{Patience: time.Minute})
	require.Equal(t, slot.Active, a.m.Phase(), "z can take it back")
}

func TestSilent_IsAskedOnOrLeftToTheLease(t *testing.T) {
	for _, lease := range []bool{false, true} {
		a := newAlone(t, func(c *handover.Config) { c.UseLease = lease }, younger, further)
		a.hear("z", handover.Clear, nil)
		for range 2 {
			a.now += time.Second
			a.see(younger, further)
			require.Equal(t, slot.Taking, a.m.Phase())
			require.Equal(t, sbr.ID("y"), only[slot.Ask[handover.Message]](a.got)[0].To)
		}
		a.now += time.Second
		a.see(younger, further)
		require.Equal(t, slot.TopicStuck, only[slot.Explain](a.got)[0].Topic)
		require.Len(t, only[slot.AcquireLease](a.got), map[bool]int{false: 0, true: 1}[lease])
		a.now += time.Second
		a.see(younger, further)
		require.Equal(t, handover.Take, only[slot.Ask[handover.Message]](a.got)[0].Message.Kind, "it is asked on")
	}
}

func TestUnsure_StopsAndStartsAgain(t *testing.T) {
	a := newAlone(t, nil)
	unsure := slot.Viewed{View: slot.View{Armed: true, Peers: []slot.Peer{myself}}}
	a.now = config(self, 0).Trust - 1
	require.Empty(t, a.step(unsure))
	a.now++
	require.Equal(t, slot.CauseUnsure, only[slot.Stop](a.step(unsure))[0].Cause)
	a.step(slot.RunEnded{Run: 1})
	require.Equal(t, slot.Idle, a.m.Phase())
	a.see()
	require.Len(t, only[slot.Start](a.got), 1)
}

func TestResting_IsHandedOverAtOnce(t *testing.T) {
	a := newAlone(t, nil)
	a.see(older)
	a.step(slot.RunEnded{Run: 1, Again: true, Rest: time.Hour, State: []byte("page 7")})
	require.Equal(t, handover.Running, a.asked(older, handover.Take, 1).Kind)
	require.Equal(t, "page 7", string(a.asked(older, handover.HandOver, 2).State))
}

func TestConsent_NotBeforeARunHasEnded(t *testing.T) {
	for _, lease := range []bool{false, true} {
		a := newAlone(t, func(c *handover.Config) { c.UseLease = lease })
		a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1})
		require.Equal(t, slot.Active, a.m.Phase())
		require.Equal(t, handover.Running, a.asked(older, handover.Take, 1).Kind)
		require.Equal(t, handover.Refuse, a.asked(younger, handover.Take, 1).Kind)
		a.step(slot.Resign{}) // it stops
		require.Equal(t, handover.Running, a.asked(older, handover.Take, 2).Kind)
		require.Equal(t, handover.Running, a.asked(younger, handover.Take, 2).Kind)
		require.Empty(t, a.asked(younger, handover.HandOver, 3).Kind, "answered once the run has ended")
		a.step(slot.RunEnded{Run: 1})
		if lease {
			require.Equal(t, handover.Running, a.asked(older, handover.Take, 3).Kind,
				"the lease is not given back yet")
			a.step(slot.LeaseReleased{Attempt: 1})
		}
		require.Equal(t, handover.Clear, a.asked(older, handover.Take, 4).Kind)
	}
}

func TestMargin_AnUnreachableMemberIsWaitedForUntilAVerdict(t *testing.T) {
	for _, lease := range []bool{false, true} {
		far := younger
		far.Unreachable = true
		a := newAlone(t, func(c *handover.Config) { c.UseLease = lease }, far)
		for range 100 {
			a.now += time.Second
			a.see(far)
			require.Equal(t, slot.Taking, a.m.Phase(), "it may run the slot")
		}
		far.Down = true
		a.see(far)
		a.now += 20 * time.Second
		a.see(far)
		require.NotEqual(t, slot.Taking, a.m.Phase())
	}
}

func TestResign_NobodyAsksForTheSlot(t *testing.T) {
	a := newAlone(t, nil)
	a.see(younger)
	a.step(slot.Resign{Patience: 2 * time.Second})
	require.Equal(t, slot.Active, a.m.Phase())
	a.now = 2 * time.Second
	a.see(younger)
	require.Equal(t, slot.CauseResigned, only[slot.Stop](a.got)[0].Cause)
	a.step(slot.RunEnded{Run: 1})
	require.True(t, a.m.Finished())
}

// A member that came during the run may run the slot as well: two parts of a cluster have just met (seed
// 13350901). The next run needs its consent, as the first one did.
func TestRest_WhoCameDuringTheRunIsAskedFirst(t *testing.T) {
	for name, c := range map[string]struct {
		says   handover.Kind
		lease  bool
		starts bool
	}{
		"silent":                  {},
		"runs it":                 {says: handover.Running},
		"the slot is its":         {says: handover.Refuse},
		"consents":                {says: handover.Clear, starts: true},
		"silent; a lease is held": {lease: true, starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlone(t, func(cfg *handover.Config) { cfg.UseLease = c.lease })
			if c.lease {
				a.step(slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1})
			}
			a.see(younger)
			if c.says != 0 {
				a.hear("z", c.says, nil)
			}
			a.step(slot.RunEnded{Run: 1, State: []byte("mine"), Again: true, Rest: time.Second})
			a.now = time.Second
			a.step(slot.Tick{})
			require.Len(t, only[slot.Start](a.got), map[bool]int{true: 1}[c.starts])
			if c.starts {
				return
			}
			require.Equal(t, slot.Taking, a.m.Phase())
			a.hear("z", handover.Clear, nil)
			require.Equal(t, "mine", string(only[slot.Start](a.got)[0].State))
		})
	}
}

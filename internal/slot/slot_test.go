package slot_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// owner is a machine with one slot, which it takes again whenever it can.
type owner struct {
	slot.Base
	slot slot.Slot
}

// goOn does what time and the slot's phase make due.
func (o *owner) goOn() {
	switch s := &o.slot; s.Phase {
	case slot.Idle:
		s.Acquire(o, o.Now)
		s.TryLease(o)
	case slot.Acquiring:
		s.TryLease(o)
	case slot.Active:
		s.Guard(o)
	case slot.Resting:
		if o.Now >= s.RestAt {
			s.Start(o, s.Token, nil, "")
		}
	}
}

func (o *owner) release() {
	if o.slot.Release(o) {
		o.slot.Enter(o, slot.Idle)
	}
}

func (o *owner) take(e slot.Event) {
	s := &o.slot
	switch e := e.(type) {
	case slot.LeaseAnswer:
		if s.Answered(o, e, s.Token) {
			s.Start(o, e.Token, nil, "")
		}
	case slot.LeaseLost:
		if s.LeaseLost(o, e) && s.Phase == slot.Resting {
			o.release()
		}
	case slot.LeaseReleased:
		if s.Released(e) {
			s.Enter(o, slot.Idle)
		}
	case slot.RunEnded:
		if _, present := s.Ended(o, e); present && e.Again && s.Phase == slot.Active {
			s.Rest(o, e.Rest)
		} else if present {
			o.release()
		}
	}
}

// TestProperty_OneRunUnderEachGrant: whatever comes late, twice or never, nothing starts beside a run, under
// no grant, or under a token that is not larger.
func TestProperty_OneRunUnderEachGrant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := slot.DefaultRules()
		rules.Self, rules.UseLease = "m", true
		o := &owner{Base: slot.NewBase(rules, 0)}
		var running, attempt, token, granted uint64
		var newest uint64
		of := func(n uint64) uint64 { return n - min(n, rapid.Uint64Range(0, 2).Draw(t, "late")) }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			o.Begin(o.Now + time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds"))*time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1:
				e := slot.LeaseAnswer{Attempt: of(attempt), Outcome: rapid.SampledFrom([]sbr.Outcome{sbr.Granted,
					sbr.Granted, sbr.Held, sbr.Unknown}).Draw(t, "outcome")}
				e.Token = rapid.Uint64Range(token-min(token, 1), token+2).Draw(t, "token")
				if granted = 0; e.Outcome == sbr.Granted && e.Attempt == attempt {
					granted = e.Token
				}
				o.take(e)
			case 2:
				o.take(slot.LeaseLost{Attempt: of(attempt)})
			case 3:
				o.take(slot.LeaseReleased{Attempt: of(attempt)})
			default:
				e := slot.RunEnded{Run: of(newest), Again: rapid.Bool().Draw(t, "again"), Rest: time.Second}
				if e.Run == running {
					running = 0
				}
				o.take(e)
			}
			resting := o.slot.Phase == slot.Resting
			o.goOn()
			for _, e := range o.Effects() {
				switch e := e.(type) {
				case slot.AcquireLease:
					require.Greater(t, e.Attempt, attempt)
					require.Zero(t, running, "it is asked for while something runs")
					attempt = e.Attempt
				case slot.ReleaseLease:
					require.Zero(t, running, "it is given back while something runs")
				case slot.Start:
					require.Zero(t, running)
					require.Greater(t, e.Run, newest)
					if !resting {
						require.Greater(t, e.Token, token)
						require.Equal(t, granted, e.Token)
					}
					running, newest, token = e.Run, e.Run, e.Token
				}
			}
		}
	})
}

// Not to know who holds the lease is not to hold it, and a grant that was lost before it was heard of is
// none.
func TestAnswered_OnlyAGrantThatStandsCounts(t *testing.T) {
	for name, c := range map[string]struct {
		lost   bool
		answer slot.LeaseAnswer
		want   bool
		topic  slot.Topic
	}{
		"granted":                   {false, slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 6}, true, ""},
		"held":                      {false, slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Held}, false, slot.TopicLease},
		"nobody knows":              {false, slot.LeaseAnswer{Attempt: 1, Token: 6}, false, slot.TopicLease},
		"lost meanwhile":            {true, slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 6}, false, slot.TopicLease},
		"a token that was there":    {false, slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 5}, false, slot.TopicStuck},
		"a token that is too large": {false, slot.LeaseAnswer{Attempt: 1, Outcome: sbr.Granted, Token: 1 << 63}, false, slot.TopicStuck},
		"the answer to another try": {false, slot.LeaseAnswer{Attempt: 2, Outcome: sbr.Granted, Token: 6}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &owner{Base: slot.NewBase(slot.Rules{UseLease: true, LeaseRetryInterval: time.Second}, 0)}
			o.goOn()
			if c.lost {
				o.take(slot.LeaseLost{Attempt: 1})
			}
			o.Begin(time.Second)
			require.Equal(t, c.want, o.slot.Answered(o, c.answer, 5))
			require.Equal(t, c.want, o.slot.Held)
			var topic slot.Topic
			for _, e := range o.Effects() {
				if e, ok := e.(slot.Explain); ok {
					topic = e.Topic
				}
			}
			require.Equal(t, c.topic, topic)
		})
	}
}

// A member that was downed before what it offers has arrived counts as a candidate from then on (seed 3620435).
func TestLook_WhoHasDeparted(t *testing.T) {
	with := func(candidate, down bool) []slot.Peer {
		return []slot.Peer{{ID: "a", Candidate: candidate, Down: down}}
	}
	for name, c := range map[string]struct{ before, now, want []slot.Peer }{
		"it is there":                    {with(true, false), with(true, false), nil},
		"gone":                           {with(true, false), nil, with(true, false)},
		"downed":                         {with(true, false), with(true, true), with(true, false)},
		"downed, and its offer is out":   {with(true, false), with(false, true), with(true, false)},
		"downed before its offer was in": {with(false, false), with(true, true), with(true, false)},
		"downed, it never offered":       {with(false, false), with(false, true), with(false, false)},
		"down when it is seen first":     {nil, with(true, true), with(true, true)},
		"down for longer":                {with(true, true), with(true, true), nil},
		"removed after it was downed":    {with(true, true), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := slot.NewBase(slot.Rules{}, 0)
			b.Look(slot.View{Peers: c.before})
			require.Equal(t, c.want, b.Look(slot.View{Peers: c.now}))
		})
	}
}

// A question that may stay open for longer than questions may would never be asked, and nothing would start.
func TestRules_RefuseWhatCannotBeAsked(t *testing.T) {
	r := slot.DefaultRules()
	r.HandOverRetryInterval = slot.MaxRetryInterval
	require.NoError(t, r.Validate("singleton"))
	require.LessOrEqual(t, 3*r.HandOverRetryInterval, wire.MaxWithin)
	r.HandOverRetryInterval++
	require.ErrorContains(t, r.Validate("singleton"), "hand-over-retry-interval is 3m20.000000001s: at most 3m20s")
}

package handover_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// chaos drives one machine with events that chance makes up, and watches what must hold whatever comes.
type chaos struct {
	*rapid.T
	cfg handover.Config
	m   *handover.Machine
	now time.Duration

	run, started, token uint64
	acquired, lost      uint64
	held, down          bool
	refs                map[uint64]bool
	ref                 uint64
}

func TestMachine_WhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config(self, rapid.Int64Range(0, 3).Draw(t, "born"))
		cfg.UseLease = rapid.Bool().Draw(t, "lease")
		c := &chaos{T: t, cfg: cfg, m: handover.New(cfg, 0), refs: map[uint64]bool{}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			c.next()
		}
	})
}

func (c *chaos) next() {
	if rapid.IntRange(0, 3).Draw(c.T, "time") == 0 {
		c.pass()
	}
	var e slot.Event
	switch rapid.IntRange(0, 10).Draw(c.T, "event") {
	case 0, 1, 2:
		e = slot.Viewed{View: c.view()}
	case 3, 4:
		c.ref++
		e = slot.Asked[handover.Message]{Ref: c.ref, From: c.peerID(), Message: c.message(handover.Take, handover.HandOver, handover.Resigned, handover.Resigning)}
	case 5, 6, 7:
		msg := c.message(handover.Clear, handover.Running, handover.Refuse, handover.HandedOver)
		e = slot.Answered[handover.Message]{From: c.peerID(), Message: msg, Unserved: rapid.IntRange(0, 9).Draw(c.T, "unserved") == 0}
	case 8:
		e = c.ofLease()
	case 9:
		e = slot.RunEnded{Run: c.number(c.started), Again: rapid.Bool().Draw(c.T, "again"), Rest: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(c.T, "rest")}
	default:
		if rapid.IntRange(0, 4).Draw(c.T, "rare") > 0 {
			return
		}
		e = rapid.SampledFrom([]slot.Event{slot.Resign{}, slot.Resign{Patience: 2 * time.Second}, slot.Downed{}}).Draw(c.T, "end")
	}
	c.step(e)
}

// number is that of the newest, or of an older one.
func (c *chaos) number(newest uint64) uint64 {
	return newest - min(newest, rapid.SampledFrom([]uint64{0, 0, 0, 1}).Draw(c.T, "stale"))
}

func (c *chaos) peerID() sbr.ID {
	return rapid.SampledFrom([]sbr.ID{"b", "c", "z", self, "stranger"}).Draw(c.T, "peer")
}

func (c *chaos) view() slot.View {
	v := slot.View{Armed: rapid.IntRange(0, 9).Draw(c.T, "armed") > 0, Sure: c.now, Verdict: rapid.Uint64Range(0, 2).Draw(c.T, "verdict")}
	if rapid.IntRange(0, 4).Draw(c.T, "unsure") == 0 {
		v.Sure = rapid.SampledFrom([]time.Duration{-1, 0, c.now - min(c.now, 10*time.Second)}).Draw(c.T, "sure")
	}
	for i, id := range []sbr.ID{"b", self, "c", "z"} {
		bit := rapid.IntRange(0, 15).Draw(c.T, "flags")
		if bit == 0 {
			continue
		}
		v.Peers = append(v.Peers, slot.Peer{ID: id, Born: int64(i), Candidate: bit != 1, Leaving: bit == 2, Down: bit == 3, Unreachable: bit == 4})
	}
	return v
}

func (c *chaos) message(kinds ...handover.Kind) handover.Message {
	return handover.Message{Kind: rapid.SampledFrom(kinds).Draw(c.T, "kind"), Born: rapid.Int64Range(0, 4).Draw(c.T, "its birth"), Round: c.number(c.m.Round()),
		Token: rapid.Uint64Range(0, 9).Draw(c.T, "token"), Wait: rapid.SampledFrom([]time.Duration{0, 0, 0, 3 * time.Second}).Draw(c.T, "wait")}
}

func (c *chaos) ofLease() slot.Event {
	attempt := c.number(c.acquired)
	switch rapid.IntRange(0, 4).Draw(c.T, "lease") {
	case 0:
		c.held = c.held && attempt != c.acquired
		c.lost = max(c.lost, attempt)
		return slot.LeaseLost{Attempt: attempt}
	case 1:
		return slot.LeaseReleased{Attempt: attempt}
	case 2:
		return slot.LeaseAnswer{Attempt: attempt, Outcome: rapid.SampledFrom([]sbr.Outcome{sbr.Unknown, sbr.Held}).Draw(c.T, "outcome")}
	default:
		c.held = attempt == c.acquired && c.lost < attempt || c.held
		return slot.LeaseAnswer{Attempt: attempt, Outcome: sbr.Granted, Token: c.token + rapid.Uint64Range(0, 3).Draw(c.T, "granted")}
	}
}

func (c *chaos) step(e slot.Event) {
	ended, isEnd := e.(slot.RunEnded)
	if isEnd && ended.Run == c.run {
		c.run = 0
	}
	if _, ok := e.(slot.Downed); ok {
		c.down = true
	}
	resting := c.m.Phase() == slot.Resting || isEnd
	c.carry(c.m.Step(c.now, e), resting)
	c.holds()
}

// pass moves the clock to the next deadline, or a bit.
func (c *chaos) pass() {
	at, ok := c.m.NextDeadline()
	if !ok || rapid.Bool().Draw(c.T, "early") {
		c.now += rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 30 * time.Second}).Draw(c.T, "by")
		c.carry(c.m.Tick(c.now), c.m.Phase() == slot.Resting)
		return
	}
	c.now = max(c.now, at)
	before, resting := written(c.m), c.m.Phase() == slot.Resting
	effects := slices.Clone(c.m.Tick(c.now))
	c.carry(effects, resting)
	if next, ok := c.m.NextDeadline(); ok && next <= c.now {
		require.True(c.T, len(effects) > 0 || string(before) != string(written(c.m)), "a deadline stands still in %v", c.m.Phase())
		c.carry(c.m.Tick(c.now), c.m.Phase() == slot.Resting)
		next, ok = c.m.NextDeadline()
		require.True(c.T, !ok || next > c.now, "two ticks at %v leave a deadline at %v in %v", c.now, next, c.m.Phase())
	}
}

func (c *chaos) carry(effects []slot.Effect, resting bool) {
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case slot.Start:
			require.Zero(c.T, c.run, "a run starts while another one is active")
			require.False(c.T, c.down, "a run starts on a member that is down")
			require.True(c.T, e.Token > c.token || resting && c.cfg.UseLease && e.Token == c.token, "token %d follows %d", e.Token, c.token)
			require.LessOrEqual(c.T, e.Token, uint64(math.MaxInt64))
			require.True(c.T, !c.cfg.UseLease || c.held, "a run starts without the lease")
			c.run, c.started, c.token = e.Run, e.Run, e.Token
		case slot.Stop:
			require.Equal(c.T, c.run, e.Run, "a run is stopped that is not active")
		case slot.AcquireLease:
			require.True(c.T, c.cfg.UseLease && c.run == 0 && !c.down)
			require.Greater(c.T, e.Attempt, c.acquired)
			c.acquired, c.held = e.Attempt, false
		case slot.ReleaseLease:
			require.Zero(c.T, c.run, "the lease is given back while its run is active")
			require.Equal(c.T, c.acquired, e.Attempt)
			c.held = false
		case slot.Answer[handover.Message]:
			require.False(c.T, c.refs[e.Ref], "a question is answered twice")
			c.refs[e.Ref] = true
			require.True(c.T, c.run == 0 || e.Message.Kind == handover.Running || e.Message.Kind == handover.Refuse, "%v while a run is active", e.Message.Kind)
		}
	}
}

// holds checks what can be seen at any moment.
func (c *chaos) holds() {
	phase := c.m.Phase()
	require.Equal(c.T, c.run != 0, phase == slot.Active || phase == slot.Stopping, "a run and the phase %v", phase)
	require.True(c.T, c.run == 0 || c.m.Token() == c.token, "the token of the run")
	if until, ok := c.m.Until(); ok {
		require.Greater(c.T, until, c.now, "a run without a lease outlives its time")
	}
	require.True(c.T, phase != slot.Active || !c.cfg.UseLease || c.held, "a run goes on without its lease")
	require.True(c.T, phase != slot.Active || !c.down, "a run goes on although the member is down")
	clone := c.m.Clone()
	require.Equal(c.T, string(written(c.m)), string(written(clone)))
	require.NotPanics(c.T, func() { clone.Step(c.now+time.Hour, slot.Viewed{}) })
	require.Equal(c.T, fmt.Sprint(phase), fmt.Sprint(c.m.Phase()), "a clone shares nothing")
}

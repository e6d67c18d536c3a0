package lease_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A process that stands still (SIGSTOP, a long garbage collection, a starved machine) and goes on: whatever
// it was doing, the first thing it is told is the truth. The same with a real process and a real SIGSTOP is
// in lease/file.

// paused is a party that can be paused, and another party that wants its lease.
type paused struct {
	*world
	clock *machineClock
	a, b  *lease.Lease
	lost  losses
}

var pausedSettings = func(s *lease.Settings, _ *lease.Options) { *s = historySettings }

func newPaused(t *testing.T) *paused {
	p := &paused{world: newWorld(t), clock: newClock(0, 1)}
	p.a = p.lease("a", pausedSettings, func(_ *lease.Settings, o *lease.Options) { o.Clock = p.clock })
	p.b = p.lease("b", pausedSettings)
	return p
}

func (p *paused) acquire() linear.Answer {
	return p.lost.follow(linear.AnswerOf(p.a.Acquire(p.t.Context(), lease.Proposal{})))
}

// doing is what the process was about when it was stopped. It begins that, and returns with it half done.
var doing = map[string]func(*paused){
	"nothing": func(p *paused) { p.heldSince() },
	"a heartbeat that was not sent": func(p *paused) {
		p.heldSince()
		time.Sleep(historySettings.HeartbeatInterval - time.Nanosecond)
	},
	"a heartbeat that is on its way": func(p *paused) {
		p.heldSince()
		p.view("a").SetDelay(800 * time.Millisecond)
		time.Sleep(historySettings.HeartbeatInterval + 200*time.Millisecond)
	},
	"a heartbeat whose answer is on its way": func(p *paused) {
		p.heldSince()
		p.view("a").SetDelay(800 * time.Millisecond)
		time.Sleep(historySettings.HeartbeatInterval + 600*time.Millisecond)
	},
	"a heartbeat that is repeated": func(p *paused) {
		p.heldSince()
		p.view("a").SetUnavailable(true)
		time.Sleep(historySettings.HeartbeatInterval * 3 / 2)
	},
	"a verdict whose answer is on its way": func(p *paused) {
		p.heldSince()
		p.view("a").SetDelay(400 * time.Millisecond)
		go p.lost.follow(linear.AnswerOf(p.a.Acquire(p.t.Context(), verdict(1, "a", "a"))))
		time.Sleep(300 * time.Millisecond)
	},
}

func (p *paused) heldSince() {
	require.Equal(p.t, sbr.Granted, p.acquire().Kind)
	time.Sleep(3 * historySettings.HeartbeatInterval / 2)
	synctest.Wait()
}

func TestPause_TheFirstAnswerIsTheTruth(t *testing.T) {
	for what, begin := range doing {
		for _, length := range []time.Duration{
			time.Second, historySettings.Window() - 3*time.Second, historySettings.Window(),
			historySettings.HeartbeatTimeout,
			historySettings.HeartbeatTimeout + time.Second, 10 * historySettings.HeartbeatTimeout, time.Hour,
		} {
			t.Run(fmt.Sprintf("%s, %v", what, length), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPaused(t)
					begin(p)
					woken := time.Now().Add(length)
					p.clock.freeze(length)
					taken := p.taken(woken)
					if length >= 10*historySettings.HeartbeatTimeout {
						require.True(t, taken, "locked out")
					}
					p.view("a").Heal()
					// The process goes on here, and before anything else it asks.
					said, token := p.a.Check(), p.a.Token()
					if taken {
						require.False(t, said, "somebody else holds it")
					}
					if length >= historySettings.Window() {
						require.False(t, said, "nothing of it can be known")
					}
					require.Equal(t, said, token != 0)
					p.settle(taken)
				})
			})
		}
	}
}

// taken lets b try until the process goes on, and tells whether it got the lease.
func (p *paused) taken(woken time.Time) (got bool) {
	for time.Now().Before(woken) {
		if !got && p.plain(p.b).Kind == sbr.Granted {
			got = true
		}
		time.Sleep(min(time.Second, time.Until(woken)))
	}
	return got
}

// settle demands that all ends well: one holder, one loss at most, and the lease can be had again.
func (p *paused) settle(taken bool) {
	p.t.Helper()
	for range 10 {
		time.Sleep(historySettings.HeartbeatInterval)
		require.False(p.t, p.a.Check() && p.b.Check())
	}
	require.Equal(p.t, taken, p.b.Check(), "nothing that was under way takes it back")
	require.LessOrEqual(p.t, len(p.lost.all()), 1)
	if taken {
		require.Len(p.t, p.lost.all(), 1)
		require.Equal(p.t, "b", p.record().Holder)
		require.NoError(p.t, p.b.Release(p.t.Context()))
		require.Equal(p.t, sbr.Granted, p.acquire().Kind)
	}
}

// Stopped between the request and the answer of an Acquire, for longer than the grant lasts: it is not told
// that it holds.
func TestPause_AGrantThatCameTooLateIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaused(t)
		p.view("a").SetDelay(200 * time.Millisecond)
		answer := make(chan linear.Answer, 1)
		go func() { answer <- p.acquire() }()
		// read; written; not yet answered
		time.Sleep(time.Millisecond + 2*100*time.Millisecond + 150*time.Millisecond)
		require.Equal(t, "a", p.record().Holder)
		p.clock.freeze(historySettings.HeartbeatTimeout)
		time.Sleep(historySettings.HeartbeatTimeout)
		require.False(t, p.a.Check())
		out := <-answer
		require.Equal(t, sbr.Unknown, out.Kind, "%v", out)
		require.ErrorIs(t, out.Err, lease.ErrTooLate)
		require.False(t, p.a.Check())
		require.Empty(t, p.lost.all(), "what was never granted is not lost")
		p.within(p.b, 2*historySettings.HeartbeatTimeout)
	})
}

// Stopped in the middle of a Release: it had said no before.
func TestPause_ReleaseSaysNoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaused(t)
		p.heldSince()
		p.view("a").SetDelay(800 * time.Millisecond)
		done := make(chan struct{})
		go func() { _ = p.a.Release(t.Context()); close(done) }()
		synctest.Wait()
		require.False(t, p.a.Check())
		require.Equal(t, "a", p.record().Holder, "nothing was written yet")
		p.clock.freeze(time.Hour)
		require.True(t, p.taken(time.Now().Add(time.Hour)))
		<-done
		require.True(t, p.b.Check())
		require.Empty(t, p.lost.all())
	})
}

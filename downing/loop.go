package downing

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// now is the resolver's clock: monotonic, since Start. It stops while this member does not see its node or
// waits to be admitted, so that nothing comes due.
func (e *engine) now() time.Duration {
	switch {
	case e.newcomer:
		return 0
	case e.isBlind():
		return e.blindSince.Sub(e.origin)
	default:
		return e.clock()
	}
}

func (e *engine) clock() time.Duration { return time.Since(e.origin) }

// loop runs the resolver until the member is down or leaves. If anything in it breaks, the member fails safe
// (promise F1).
func (e *engine) loop() {
	defer close(e.looped)
	defer e.inbox.Close()
	defer e.talk.close()
	finished := false
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("sbr: the resolver panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			e.down(fmt.Sprintf("the resolver failed: panic: %v", p))
		} else if !finished {
			e.down("the resolver failed: a hook ended its goroutine") // runtime.Goexit, as t.FailNow in an Observe
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	p := newPauses(e.cfg.PauseAfter)
	for !e.over() {
		e.beats.Add(1)
		p.waiting(e.wait())
		timer.Reset(e.wait())
		select {
		case <-e.inbox.Wake():
		case <-timer.C:
		case <-e.node.done():
			e.serfClosed()
			continue
		}
		e.pause()
		e.wokeAt = time.Now()
		if gap := p.woke(); gap > 0 {
			e.pauses++
			e.rec.add(countPauses)
			e.rec.set(func(now *readings) { now.paused += gap })
			e.step(sbr.Resumed{Gap: gap.Round(time.Millisecond)})
		}
		for _, f := range e.inbox.Take() {
			if e.over() {
				break
			}
			e.beats.Add(1)
			f()
		}
		if !e.over() {
			e.routine()
		}
	}
	finished = true
}

// over reports whether the loop has to end. Loop only.
func (e *engine) over() bool { return e.ended || e.halted.Load() }

// pause calls the hook that may hold the loop up; to the watchdog that is no failure.
func (e *engine) pause() {
	if e.cfg.Pause != nil {
		e.pausing.Store(true)
		defer e.pausing.Store(false)
		e.cfg.Pause()
	}
}

// watchdogLooks is how often in a row the watchdog must find the loop at the same place. It counts its own
// looks and not the time that passed, because a process that was paused finds its loop where it was, and that
// is no failure.
const watchdogLooks = 10

// stuckAfter is how long the loop may make no progress. In peace it makes some with every poll.
func (e *engine) stuckAfter() time.Duration { return max(20*time.Second, 4*e.cfg.PollInterval) }

// watchdog downs the member if its loop is stuck (in a lock of Serf, in a hook): it would miss its verdict
// (promise F1).
func (e *engine) watchdog() {
	look := time.NewTicker(e.stuckAfter() / watchdogLooks)
	defer look.Stop()
	last, still := int64(-1), 0
	for {
		select {
		case <-e.looped:
			return
		case <-look.C:
		}
		if beats := e.beats.Load(); beats != last || e.pausing.Load() {
			last, still = beats, 0
		} else if still++; still >= watchdogLooks {
			e.stuck()
			return
		}
	}
}

// stuck downs the member past its loop, which does nothing more should it ever go on.
func (e *engine) stuck() {
	e.halted.Store(true)
	stacks := make([]byte, 1<<16)
	stacks = stacks[:runtime.Stack(stacks, true)]
	reason := fmt.Sprintf("the resolver failed: it has made no progress for %v", e.stuckAfter())
	o := because(OccurredDown, "down", reason).with(slog.String("stacks", string(stacks)))
	repeated := e.count(&o)
	e.fall(reason)
	e.write(&o, repeated) // may be what is stuck, as Config.Observe may
}

// serfClosed follows the end of the Serf node: a leave of the application, or a failure that leaves the
// member blind.
func (e *engine) serfClosed() {
	if !e.leaving && !e.node.leaving(e.self.Name) {
		e.step(sbr.Failed{Reason: "the Serf node was shut down under it"})
	} else {
		if !e.leaving {
			e.depart()
		}
		e.life.leave()
	}
	e.ended = true
}

// wait is how long the loop may sleep.
func (e *engine) wait() time.Duration {
	at := e.nextPoll
	if e.newcomer || e.isBlind() {
		return max(at-e.clock(), 0)
	}
	if e.cfg.Probe.Neighbours > 0 {
		at = min(at, e.nextProbe)
	}
	if e.again > 0 {
		at = min(at, e.nextAgain)
	}
	if e.gathering {
		at = min(at, e.nextWeigh)
	}
	if d, ok := e.resolver.NextDeadline(); ok {
		at = min(at, d)
	}
	return max(at-e.now(), 0)
}

// routine does what time makes due.
func (e *engine) routine() {
	now := e.clock()
	if now >= e.nextPoll {
		e.poll()
	}
	if e.newcomer || e.isBlind() {
		e.publish()
		return
	}
	if e.gathering && now >= e.nextWeigh {
		e.weigh(false)
	}
	if now >= e.nextProbe {
		e.nextProbe = now + e.cfg.Probe.Interval
		if e.cfg.Probe.Neighbours > 0 && !e.probing {
			e.probe()
		}
	}
	e.tellAgain(now)
	if d, ok := e.resolver.NextDeadline(); ok && e.now() >= d {
		e.carry(e.resolver.Tick(e.now()))
	}
	e.publish()
}

// pauses notices that the process did not run: more time passed than was slept for or worked, or the wall
// clock moved further than the monotonic one (a suspended machine).
type pauses struct {
	limit time.Duration
	until time.Time // when the sleep was to end
	last  time.Time // when it began
	up    time.Time // when the work before it began
}

func newPauses(limit time.Duration) *pauses { return &pauses{limit: limit, up: time.Now()} }

func (p *pauses) waiting(d time.Duration) {
	p.last = time.Now()
	p.until = p.last.Add(d)
}

func (p *pauses) woke() time.Duration {
	now := time.Now()
	worked := p.last.Sub(p.up)
	wall := now.Round(0).Sub(p.last.Round(0)) - now.Sub(p.last)
	p.up = now
	if gap := max(now.Sub(p.until), worked, wall); gap >= p.limit {
		return gap
	}
	return 0
}

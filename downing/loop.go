package downing

import (
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// inbox is the queue of what the loop has to do. Posting never blocks.
type inbox struct {
	mu    *sync.Mutex
	queue *[]func()
	wake  chan struct{}
}

func newInbox() inbox {
	return inbox{mu: new(sync.Mutex), queue: new([]func()), wake: make(chan struct{}, 1)}
}

func (b inbox) post(f func()) {
	b.mu.Lock()
	*b.queue = append(*b.queue, f)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b inbox) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := *b.queue
	*b.queue = nil
	return q
}

// now is the resolver's clock: monotonic, since Start.
func (e *engine) now() time.Duration { return time.Since(e.origin) }

// loop runs the resolver until the member is down or leaves. If anything in it breaks, the member fails safe (promise F1).
func (e *engine) loop() {
	defer close(e.looped)
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("sbr: the resolver panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			e.down(fmt.Sprintf("the resolver failed: panic: %v", p))
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	p := newPauses(e.cfg.PauseAfter)
	for !e.ended {
		p.waiting(e.wait())
		timer.Reset(e.wait())
		select {
		case <-e.inbox.wake:
		case <-timer.C:
		case <-e.node.shutdown:
			e.serfClosed()
			continue
		}
		if e.cfg.Pause != nil {
			e.cfg.Pause()
		}
		if gap := p.woke(); gap > 0 {
			e.step(sbr.Resumed{Gap: gap.Round(time.Millisecond)})
		}
		for _, f := range e.inbox.take() {
			if e.ended {
				return
			}
			f()
		}
		e.routine()
	}
}

// serfClosed follows the end of the Serf node: a leave of the application, or a failure that leaves the member blind.
func (e *engine) serfClosed() {
	if !e.leaving && !e.node.leaving() {
		e.step(sbr.Failed{Reason: "the Serf node was shut down under it"})
	}
	e.ended = true
}

// wait is how long the loop may sleep.
func (e *engine) wait() time.Duration {
	at := e.nextPoll
	if e.cfg.Probe.Neighbours > 0 {
		at = min(at, e.nextProbe)
	}
	if d, ok := e.resolver.NextDeadline(); ok {
		at = min(at, d)
	}
	return max(at-e.now(), 0)
}

// routine does what time makes due.
func (e *engine) routine() {
	now := e.now()
	if now >= e.nextPoll {
		e.poll()
	}
	if e.cfg.Probe.Neighbours > 0 && now >= e.nextProbe && !e.probing {
		e.nextProbe = now + e.cfg.Probe.Interval
		e.probe()
	} else if now >= e.nextProbe {
		e.nextProbe = now + e.cfg.Probe.Interval
	}
	if d, ok := e.resolver.NextDeadline(); ok && e.now() >= d {
		e.carry(e.resolver.Tick(e.now()))
	}
	e.publish()
}

// pauses notices that the process did not run: more time passed than was slept for or worked, or the wall clock moved further
// than the monotonic one (a suspended machine).
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

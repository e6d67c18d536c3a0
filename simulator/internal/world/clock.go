package world

import "time"

// never is a moment that does not come.
const never = time.Duration(1<<63 - 1)

// clock is the process's own monotonic clock.
func (p *process) clock() time.Duration {
	if p.rate == 1 {
		return p.shown + p.w.now - p.since
	}
	return p.shown + time.Duration(float64(p.w.now-p.since)*p.rate)
}

// wall is the first moment of the world at which the process's clock shows t or later.
func (p *process) wall(t time.Duration) time.Duration {
	if p.rate == 1 {
		return p.since + t - p.shown
	}
	at := p.since + time.Duration(float64(t-p.shown)/p.rate)
	for p.shown+time.Duration(float64(at-p.since)*p.rate) < t {
		at++
	}
	return at
}

// setRate changes the rate of the clock, and the moment at which the next deadline comes with it.
func (p *process) setRate(rate float64) {
	p.shown, p.since, p.rate = p.clock(), p.w.now, rate
	if p.stage == stageRunning {
		p.settle(nil)
	}
	p.w.disturb()
	p.eachClient(func(c *client) { c.alarm.plan() })
	p.eachDriver(func(t *driver) { t.alarm.plan() })
}

// together makes steps after which only once the next tick is arranged.
func (p *process) together(steps func()) {
	p.held = true
	steps()
	p.held = false
	p.plan()
}

// maxSpins is how many ticks in a row may pass without the deadline moving on.
const maxSpins = 50

// plan arranges the next tick. Most deadlines move on many times before they come, so an event that comes too
// early is left in place and looks again.
func (p *process) plan() {
	if p.stage != stageRunning || p.paused || p.held {
		return
	}
	p.due, p.replan = never, false
	at, ok := p.r.NextDeadline()
	if !ok {
		return
	}
	if at <= p.clock() {
		if p.spins++; p.spins > maxSpins {
			p.w.violate("liveness", "%s: the deadline %v does not move at %v", p.id, at, p.clock())
			return
		}
	} else {
		p.spins = 0
	}
	p.due = max(p.wall(at), p.w.now)
	p.awaitTick()
}

func (p *process) awaitTick() {
	if p.ticker == 0 || p.due < p.tickAt {
		p.tickAt = p.due
		p.ticker = p.w.schedule(p.due, p, jobTick)
	}
}

// tick lets the resolver's deadline come, unless a later event has replaced this one.
func (p *process) tick(event uint64) {
	if event != p.ticker {
		return
	}
	p.ticker = 0
	switch {
	case p.replan:
		p.plan()
	case p.stage != stageRunning || p.paused || p.due == never:
	case p.due > p.w.now:
		p.awaitTick()
	default:
		p.assure()
		p.settle(p.r.Tick(p.clock()))
	}
}

// ticksSoon reports whether the resolver is called before anything can be due because its view has just
// changed: a view that changes a thousand times in a row is not worth a thousand looks for the next deadline.
func (p *process) ticksSoon() bool {
	return p.ticker != 0 && p.rate == 1 && p.tickAt <= p.w.now+p.stableAfter()
}

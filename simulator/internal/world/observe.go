package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A process observes the others as package downing does: its tracker (package reachability) says which
// members to probe, and weighs what the detector says, what probes find, and what others report.

// observe gives the process its tracker's opinion, and the others what they should hear of it.
func (p *process) observe(refresh bool) {
	if p.stage != stageRunning {
		return
	}
	for _, id := range p.r.Downed() {
		p.tracker.Downed(id)
	}
	o := p.tracker.Form(p.clock(), refresh)
	if o.Observed {
		p.take(sbr.Observations{Reports: o.Reports}, p.clock())
	}
	for _, c := range o.Changed {
		p.w.note(p, "detects", "%s %s", p.w.byID[c.ID], either(c.Unreachable, "failed", "alive"))
		p.step(c)
	}
	if o.Observed {
		p.plan()
	}
	if len(o.Bad)+len(o.Good) > 0 {
		p.report(wire.Report(p.id, p.clock(), o.Bad, o.Good))
	}
	p.arouse()
}

// observeSoon is observe, in a large world when more reports have come.
func (p *process) observeSoon() {
	switch wait := p.tracker.Gather(); {
	case wait == 0:
		p.observe(false)
	case !p.observing:
		p.observing = true
		p.w.after(wait, p, func() {
			p.observing = false
			p.observe(false)
		})
	}
}

// report tells all others which members the process misses, by gossip.
func (p *process) report(m wire.Message) {
	w := p.w
	for _, piece := range wire.Split(m) {
		for _, q := range w.procs {
			if q != p && q.runs() && w.carries(p, q) {
				w.post(p, q, &reporting{from: p, to: q, m: &piece})
			}
		}
	}
}

// reporting is a report on its way to one of the others.
type reporting struct {
	from, to *process
	m        *wire.Message
}

func (r *reporting) act() {
	if p := r.to; p.stage == stageRunning && p.w.carries(r.from, p) {
		p.tracker.Reported(p.clock(), r.from.id, r.m.Age(), r.m.Down, r.m.Up)
		p.probeUrgent()
		p.observeSoon()
	}
}

// arouse arranges the next round of probes, if there is reason for one: in a world where every probe is
// answered and no member is in doubt rounds would change nothing.
func (p *process) arouse() {
	o := &p.w.opts.Probe
	if !o.On() || p.rounder != 0 || !p.attends() || p.calm() {
		return
	}
	now := p.clock()
	at := now - now%o.Interval + p.phase
	if at <= now {
		at += o.Interval
	}
	p.rounder = p.w.schedule(p.wall(at), p, jobProbes)
}

// calm reports whether a round of probes would change nothing.
func (p *process) calm() bool {
	o := &p.w.opts.Probe
	if !p.w.net.clean(o.Timeout) || p.tracker.Unrest() {
		return false
	}
	for s := range p.others() {
		if !p.reaches(s) {
			return false
		}
	}
	return true
}

// reaches reports whether s would answer a probe now, but for what is lost on the way.
func (p *process) reaches(s *process) bool {
	if p.w.times != nil {
		return !p.peer(s).timed[findsMissed].is
	}
	return s.alive() && p.w.net.direct(p.node.index, s.node.index)
}

// pongs is what a probe of s takes, and whether it is answered in time.
func (p *process) pongs(s *process) (d time.Duration, ok bool) {
	w := p.w
	if !p.reaches(s) {
		return 0, false
	}
	a, b := p.node.index, s.node.index
	there, back := w.net.quality(a, b), w.net.quality(b, a)
	d = w.between(there.Latency, there.Jitter) + w.between(back.Latency, back.Jitter)
	return d, !w.chance(there.Loss) && !w.chance(back.Loss) && d < w.opts.Probe.Timeout
}

// probe is a round of probes, unless a later event has replaced this one.
func (p *process) probe(event uint64) {
	if event != p.rounder {
		return
	}
	p.rounder = 0
	if !p.attends() || p.calm() {
		return
	}
	p.send(p.tracker.Probes(), func() {
		p.rounds++
		p.observe(p.tracker.Repeats(p.rounds))
	})
	p.arouse()
}

// probeUrgent probes the members that the tracker wants to know about at once.
func (p *process) probeUrgent() {
	if ids := p.tracker.Urgent(); len(ids) > 0 {
		p.send(ids, func() { p.observe(false) })
	}
}

// send sends probes, and tells the tracker what came back before it goes on.
func (p *process) send(ids []sbr.ID, then func()) {
	w := p.w
	answers, takes := make([]bool, len(ids)), time.Duration(0)
	for i, id := range ids {
		d, ok := p.pongs(w.byID[id])
		if answers[i] = ok; !ok {
			d = w.opts.Probe.Timeout
		}
		takes = max(takes, d)
	}
	w.after(takes, p, func() {
		for i, id := range ids {
			p.tracker.Probed(id, answers[i])
			if answers[i] {
				p.seek(w.byID[id])
			}
		}
		p.probeUrgent()
		then()
	})
}

// seek joins a member again that answers probes although Serf calls it failed.
func (p *process) seek(s *process) {
	if q := p.peer(s); p.w.times == nil && p.runs() && q.who == s && q.status == failed &&
		p.w.now >= p.nextJoin && !p.r.KeptOut(s.id, s.self.Seen) {
		p.nextJoin = p.w.now + wire.ReconnectEvery
		p.rejoin(q)
	}
}

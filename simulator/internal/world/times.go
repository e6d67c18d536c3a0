package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
)

// Times are the other failure detector: it notices everything after given times. Serf's gossip and exchanges
// carry what else there is to know.
type Times struct {
	// After is the least time from a cut to "failed", Heal from a repair to "alive"; Spread is what chance
	// adds at most. Own probes take as long.
	After  time.Duration `yaml:"after"`
	Spread time.Duration `yaml:"spread"`
	Heal   time.Duration `yaml:"heal"`
}

// timedFindings are what a detector that goes by times says of a member: whether it is gone, and whether it
// is missed by own probes.
type timedFindings [2]struct {
	is, want bool
	turn     uint32
}

const (
	findsGone = iota
	findsMissed
)

// look lets all processes notice, in time, what has changed.
func (w *World) look() {
	w.wakeSerf()
	if w.times == nil {
		return
	}
	for _, p := range w.procs {
		if p.attends() {
			for i := range p.peers {
				p.lookAt(&p.peers[i])
			}
		}
	}
}

// lookAt compares what a process thinks of a member with the truth, and arranges that it finds out.
func (p *process) lookAt(q *peer) {
	w := p.w
	if w.times == nil || !p.attends() || !q.listed() && !q.state.gone() || q.who == p {
		return
	}
	s := q.who
	for kind, bad := range [...]bool{w.gone(p, s), !s.alive() || !w.net.direct(p.node.index, s.node.index)} {
		x := &q.timed[kind]
		if bad == x.want {
			continue
		}
		x.want = bad
		x.turn++
		d, turn := w.times.Heal, x.turn
		if bad {
			d = w.times.After
		}
		w.after(w.between(d, w.times.Spread), p, func() {
			if kind == findsGone && !bad && !s.hears() {
				return // it is paused: its end makes everybody look again
			}
			if q := p.peer(s); q.who == s && q.timed[kind].turn == turn && q.timed[kind].is != bad {
				q.timed[kind].is = bad
				p.finds(q, kind, bad)
			}
		})
	}
}

// finds is the moment at which the detector finds something out.
func (p *process) finds(q *peer, kind int, bad bool) {
	s := q.who
	switch {
	case kind == findsMissed:
		for range p.w.opts.Probe.TriesAmong(len(p.peers)) {
			p.tracker.Probed(s.id, !bad)
		}
		p.observeSoon()
	case bad && q.state == alive:
		q.state, q.since = dead, p.w.now
		p.lost(q)
	case !bad && q.status == failed && s.works():
		p.named(p.name).inc++ // as if it had refuted
		s.named(s.name).inc++
		s.merge(p)
		if p.merge(s); q.status == failed || s.peer(p).status == failed { // one is kept out, and tries again
			p.w.after(wire.RefuseFor+p.w.draw(p.w.serf.PushPullInterval), p, func() {
				if q := p.peer(s); q.who == s && !q.timed[findsGone].want && !p.w.gone(p, s) {
					p.finds(q, findsGone, false)
				}
			})
		}
	}
}

// gone reports whether the membership, which does not know of probes, has reason to call s failed.
func (w *World) gone(o, s *process) bool {
	return !s.alive() || !w.net.connected(o.node.index, s.node.index)
}

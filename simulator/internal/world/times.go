package world

import "time"

// Times are the other failure detector: one that notices everything after times that are given. Serf's gossip and exchanges carry what else
// there is to know.
type Times struct {
	// After is the least time from a cut to "failed", Heal from a repair to "alive"; Spread is what chance adds at most. Own probes
	// take as long.
	After, Heal, Spread time.Duration
}

// words are what a detector that goes by times says of a member: whether it is gone, and whether it is missed by own probes.
type words [2]struct {
	is, want bool
	turn     uint32
}

const (
	wordGone = iota
	wordMissed
)

// look lets everybody notice, in time, what has changed.
func (w *World) look() {
	w.rouse()
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
		x := &q.words[kind]
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
			if q := p.peer(s); q.who == s && q.words[kind].turn == turn && q.words[kind].is != bad {
				q.words[kind].is = bad
				p.finds(q, kind, bad)
			}
		})
	}
}

// finds is the moment at which the detector has a word.
func (p *process) finds(q *peer, kind int, bad bool) {
	s := q.who
	switch {
	case kind == wordMissed:
		for range p.w.opts.Probe.Tries {
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
		if p.merge(s); q.status == failed || s.peer(p).status == failed { // one is kept out, and knocks again
			p.w.after(knocksFor+p.w.draw(p.w.serf.PushPullInterval), p, func() {
				if q := p.peer(s); q.who == s && !q.words[wordGone].want && !p.w.gone(p, s) {
					p.finds(q, wordGone, false)
				}
			})
		}
	}
}

// gone reports whether the membership, which does not know of probes, has reason to call s failed.
func (w *World) gone(o, s *process) bool {
	return !s.alive() || !w.net.connected(o.node.index, s.node.index)
}

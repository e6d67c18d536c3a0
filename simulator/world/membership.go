package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// meet makes p know s, as the membership does when it hears of a member that is alive.
func (p *process) meet(s *process) {
	q := p.peer(s)
	q.meeting = false
	if q.known || !p.runs() || p == s {
		return
	}
	if p.w.opts.Refuse && p.r.KeptOut(s.id, s.self.Seen) {
		return
	}
	if p.w.opts.KeepNames {
		for _, old := range p.w.procs {
			if old.node == s.node && old.index < s.index && p.knows(old) {
				p.forget(old)
			}
		}
	}
	*q = peer{known: true, met: true, gen: q.gen + 1, missGen: q.missGen + 1}
	p.step(sbr.MemberSeen{Member: s.self})
}

// forget makes p know s no longer.
func (p *process) forget(s *process) {
	q := p.peer(s)
	if !q.known {
		return
	}
	*q = peer{gen: q.gen + 1, missGen: q.missGen + 1, lost: true, met: q.met}
	if p.runs() {
		p.w.stirred()
	}
	p.w.note(p, "forgets", "%s", s.id)
	p.step(sbr.MemberGone{ID: s.id})
	p.w.after(0, nil, p.w.detect) // what it reported counts no longer
	if s.alive() {                // whoever was removed alive comes back by itself
		p.w.after(p.w.between(14*time.Second, 5*time.Second), nil, p.w.gossip)
	}
}

// gossip spreads the membership: whoever is connected over members that know each other hears of everybody there who is
// alive, and of those that left. As in Serf, a newcomer does not hear of members that had failed before it came.
func (w *World) gossip() {
	circle := w.circles()
	for _, o := range w.procs {
		if !o.runs() || o.paused {
			continue
		}
		for _, s := range w.procs {
			if s == o {
				continue
			}
			switch {
			case !o.knows(s) && s.runs() && !s.paused && circle[o.index] == circle[s.index]:
				w.introduce(o, s)
			case o.knows(s) && s.stage == stageStopped && w.heardLeft(circle, o, s):
				w.after(w.between(50*time.Millisecond, time.Second), o, func() {
					if o.runs() {
						o.forget(s)
					}
				})
			}
		}
	}
}

func (w *World) introduce(o, s *process) {
	q := o.peer(s)
	if q.meeting {
		return
	}
	q.meeting = true
	w.after(w.between(50*time.Millisecond, w.opts.Detection.Heal), o, func() {
		o.peer(s).meeting = false
		if !s.alive() || !s.runs() || !w.net.connected(o.node.index, s.node.index) {
			return
		}
		o.meet(s)
		w.detect()
	})
}

// heardLeft reports whether o can hear that s has left: from s itself when it left, or from whoever was there.
func (w *World) heardLeft(circle []int, o, s *process) bool {
	if !s.left {
		return false
	}
	if w.net.connected(o.node.index, s.node.index) {
		return true
	}
	for _, x := range w.procs {
		if x != o && x.runs() && circle[x.index] == circle[o.index] && s.index < len(x.peers) && x.peers[s.index].lost {
			return true
		}
	}
	return false
}

// circles labels the processes that can hear of each other.
func (w *World) circles() []int {
	label := make([]int, len(w.procs))
	for i := range label {
		label[i] = i
	}
	find := func(i int) int {
		for label[i] != i {
			label[i] = label[label[i]]
			i = label[i]
		}
		return i
	}
	for i, a := range w.procs {
		if !a.runs() || a.paused {
			continue
		}
		for j := range i {
			b := w.procs[j]
			if b.runs() && !b.paused && (a.knows(b) || b.knows(a)) && w.net.connected(a.node.index, b.node.index) {
				label[find(i)] = find(j)
			}
		}
	}
	for i := range label {
		label[i] = find(i)
	}
	return label
}

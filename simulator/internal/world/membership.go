package world

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// peer is what p thinks of s.
func (p *process) peer(s *process) *peer {
	for len(p.peers) <= s.index {
		p.peers = append(p.peers, peer{})
	}
	return &p.peers[s.index]
}

// knows reports whether p knows s.
func (p *process) knows(s *process) bool { return s.index < len(p.peers) && p.peers[s.index].known }

// strangers reports whether neither of two processes ever heard of the other.
func strangers(p, q *process) bool { return !p.peer(q).met && !q.peer(p).met }

// meet makes p know s, as the membership does when it hears of a member that is alive.
func (p *process) meet(s *process) {
	if p == s || !p.runs() || p.w.opts.KeepNames && p.node == s.node {
		return // under its own name nobody knows another one
	}
	q := p.peer(s)
	if q.meeting = false; q.known || p.lists(s.self.Name, s.node) {
		return
	}
	if p.w.opts.Refuse && p.r.KeptOut(s.id, s.self.Seen) {
		p.refuse(s)
		return
	}
	p.letIn(s)
}

// A downed incarnation is refused, for knocksFor; whoever knocks again then is let in to be told. It knocks when it exchanges its whole
// state with the member, which Serf does every half minute with one that chance chooses.
const (
	knocksFor   = 15 * time.Second
	knocksEvery = 90 * time.Second
)

// refuse keeps s outside, and lets it in later if it has not found out by itself that it was downed.
func (p *process) refuse(s *process) {
	if p.knocking[s] {
		return
	}
	if p.knocking == nil {
		p.knocking = make(map[*process]bool)
	}
	p.knocking[s] = true
	p.w.after(p.w.between(knocksFor, knocksEvery), p, func() {
		delete(p.knocking, s)
		if p.runs() && s.alive() && s.runs() && !p.knows(s) && p.w.net.connected(p.node.index, s.node.index) {
			p.letIn(s)
		}
	})
}

func (p *process) letIn(s *process) {
	q := p.peer(s)
	if p.w.opts.KeepNames {
		p.supplant(s)
	}
	*q = peer{known: true, met: true, gen: q.gen + 1, missGen: q.missGen + 1}
	p.known++
	p.tracker.Add(s.id)
	if s.runs() {
		p.knownUp++
	}
	if its, ours := s.node.rules.Digest, p.node.rules.Digest; its != ours {
		p.w.note(p, "differs", "%s has another configuration: its digest %s, ours %s", s.id, its, ours)
	}
	p.step(s.news)
	p.look(s)
	p.review()
}

// supplant takes from the list whoever ran on the node of s before it: under the same name, or known to have ended, because s holds
// the state that its predecessor had locked.
func (p *process) supplant(s *process) {
	proves := true
	for next, old := s, s.prev; old != nil; next, old = old, old.prev {
		proves = proves && !next.stateLost
		switch {
		case p.knows(old) && (proves || old.self.Name == s.self.Name):
			p.forget(old, proves)
		case proves:
			p.ended(old)
		}
	}
}

// ended tells the resolver that a process, which the membership lists no longer, is known to have ended.
func (p *process) ended(s *process) {
	if p.stage != stageRunning {
		return
	}
	if _, known := p.r.Member(s.id); known {
		p.step(sbr.MemberGone{ID: s.id, Ended: true})
	}
}

// lists reports whether p lists a member of that name that runs on another node. Serf takes no second one under a name: not while the
// first is alive, and not while it is listed as failed.
func (p *process) lists(name string, not *Node) bool {
	if !p.w.namesakes || !p.w.opts.KeepNames {
		return false
	}
	for place := range p.peers {
		if s := p.w.procs[place]; p.peers[place].known && s.self.Name == name && s.node != not {
			return true
		}
	}
	return false
}

// forget makes p know s no longer. Ended says that the end of s is certain: it said goodbye, or its successor proves it.
func (p *process) forget(s *process, ended bool) {
	if !p.knows(s) {
		return
	}
	w, q := p.w, p.peer(s)
	p.known--
	if s.runs() {
		p.knownUp--
	}
	if q.wantFailed {
		p.unreached--
	}
	*q = peer{gen: q.gen + 1, missGen: q.missGen + 1, lost: true, met: q.met}
	if p.runs() {
		w.stirred()
	}
	w.forgot(p, s)
	p.tracker.Remove(s.id)
	p.step(sbr.MemberGone{ID: s.id, Ended: ended})
	p.observeSoon()
	switch {
	case s.alive():
		w.comeBack(s)
	case s.left && s.stage == stageStopped:
		w.passOn(s)
	}
}

// comeBack arranges that whoever was removed alive comes back by itself.
func (w *World) comeBack(s *process) {
	if s.returning {
		return
	}
	s.returning = true
	w.after(w.between(14*time.Second, 5*time.Second), nil, func() {
		s.returning = false
		w.gossipAbout(s)
	})
}

// mourn notes a process that has left: whoever knows it hears of that sooner or later.
func (w *World) mourn(s *process) {
	w.left = append(w.left, s)
	w.hearLeft(s, s.w.procs)
}

// passOn arranges that those who still know a process that has left hear of it from those who do not.
func (w *World) passOn(s *process) {
	if s.passing {
		return
	}
	s.passing = true
	w.after(time.Second, nil, func() {
		s.passing = false
		w.hearLeft(s, s.w.procs)
	})
}

// hearLeft lets the given ones who know s hear that it has left: from s itself when it left, or from whoever was there.
func (w *World) hearLeft(s *process, among []*process) (known bool) {
	var circle []int
	var told map[int]bool
	for _, o := range among {
		if !o.knows(s) || !o.attends() {
			known = known || o.knows(s) && o.runs()
			continue
		}
		known = true
		if !w.net.connected(o.node.index, s.node.index) {
			if circle == nil {
				circle, told = w.toldOf(s)
			}
			if len(told) == 0 || !told[circle[o.index]] {
				continue
			}
		}
		o.add(todo{at: w.now + w.between(50*time.Millisecond, time.Second), peer: int32(s.index), what: taskLose})
	}
	return known
}

// toldOf tells in which circles somebody knows that s is lost.
func (w *World) toldOf(s *process) (circle []int, told map[int]bool) {
	circle, told = w.circles(), make(map[int]bool)
	for _, x := range s.w.procs {
		if place := s.index; x.runs() && place < len(x.peers) && x.peers[place].lost {
			told[circle[x.index]] = true
		}
	}
	return circle, told
}

// gossip spreads the membership after a change of the network: whoever is connected over members that know each other hears of
// everybody there who is alive, and of those that left. As in Serf, a newcomer does not hear of members that had failed before
// it came.
func (w *World) gossip() {
	w.left = slices.DeleteFunc(w.left, func(s *process) bool { return !w.hearLeft(s, s.w.procs) })
	if !slices.ContainsFunc(w.procs, (*process).lacks) {
		return
	}
	circle := w.circles()
	for _, o := range w.procs {
		if !o.lacks() {
			continue
		}
		for _, s := range o.w.procs {
			if s != o && s.attends() && circle[o.index] == circle[s.index] && !o.knows(s) {
				w.introduce(o, s)
			}
		}
	}
}

// lacks reports whether somebody runs whom the process might know and does not.
func (p *process) lacks() bool {
	if !p.attends() {
		return false
	}
	return p.knownUp < p.w.running-1 // itself
}

// gossipAbout does so after a change of one process.
func (w *World) gossipAbout(p *process) {
	if !p.attends() {
		return
	}
	for _, s := range w.left {
		w.hearLeft(s, []*process{p})
	}
	var circle []int
	for _, o := range p.w.procs {
		if o == p || !o.attends() || o.knows(p) && p.knows(o) {
			continue
		}
		if circle == nil {
			circle = w.circles()
		}
		if circle[o.index] != circle[p.index] {
			continue
		}
		w.introduce(o, p)
		w.introduce(p, o)
	}
}

func (w *World) introduce(o, s *process) {
	q := o.peer(s)
	if q.meeting || q.known {
		return
	}
	q.meeting = true
	o.add(todo{at: w.now + w.between(50*time.Millisecond, w.opts.Detection.Heal), peer: int32(s.index), what: taskMeet})
}

// circles labels the processes that can hear of each other: those in one component of the network that know each other, or are
// known by somebody who is known, and so on. Others have a label of their own.
func (w *World) circles() []int {
	label := make([]int, len(w.procs))
	parts := make(map[int][]*process)
	var order []int
	for i, p := range w.procs {
		label[i] = -1 - i
		if !p.attends() {
			continue
		}
		part := w.net.component(p.node.index)
		if parts[part] == nil {
			order = append(order, part)
		}
		parts[part] = append(parts[part], p)
	}
	for _, part := range order {
		rest := parts[part]
		for len(rest) > 0 {
			seed := rest[0]
			rest = rest[1:]
			label[seed.index] = seed.index
			// Those who are in one part mostly know each other, so the first one finds all others.
			for todo := []*process{seed}; len(todo) > 0 && len(rest) > 0; {
				a := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				left := rest[:0]
				for _, b := range rest {
					if a.knows(b) || b.knows(a) {
						label[b.index] = seed.index
						todo = append(todo, b)
					} else {
						left = append(left, b)
					}
				}
				rest = left
			}
		}
	}
	return label
}

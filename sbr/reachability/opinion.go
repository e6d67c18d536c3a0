package reachability

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Opinion is what a tracker makes of everything it heard.
type Opinion struct {
	// Changed are the members whose reachability differs from the last opinion, in ring order.
	Changed []sbr.Reachability
	// Reports are all that count now, ordered by observer and subject.
	Reports []sbr.Report
	// Own are the subjects that this member cannot reach itself, in ring order.
	Own []sbr.ID
	// Spread are those of Own that this member should tell the others: the subjects that fewer than Neighbours
	// other observers, nearer to the subject on the ring, report already. It keeps a large side from shouting
	// all together.
	Spread []sbr.ID
}

// Form weighs everything heard until now.
func (t *Tracker) Form(now time.Duration) Opinion {
	t.expire(now)
	var o Opinion
	askable := t.askable()
	agreed := make(map[sbr.ID]bool)
	for _, p := range t.ring {
		if t.missed(p) {
			o.Own = append(o.Own, p.id)
			if !t.covered(p) {
				o.Spread = append(o.Spread, p.id)
			}
		}
		// Once agreed, silence of the other observers takes nothing back: reports travel badly on a small side. An
		// answer does.
		agreed[p.id] = p.failed || t.agree(p, askable) || p.agreed && t.missed(p)
		p.agreed = agreed[p.id]
	}
	mutual := t.mutual(agreed)
	for _, p := range t.ring {
		un := agreed[p.id] || mutual[p.id]
		if un != p.verdict {
			p.verdict = un
			o.Changed = append(o.Changed, sbr.Reachability{ID: p.id, Unreachable: un})
		}
	}
	o.Reports = t.reports(agreed)
	return o
}

// covered reports whether enough observers that stand before this member already report p. The order is fixed
// for each subject, so that the same few go on reporting, and the next one steps in when one of them falls
// silent.
func (t *Tracker) covered(p *peer) bool {
	mine := t.from - p.hash
	before := 0
	for o := range p.reports {
		if q := t.peers[o]; q != nil && q.hash-p.hash < mine {
			before++
		}
	}
	return before >= t.cfg.Neighbours
}

func (t *Tracker) expire(now time.Duration) {
	for _, p := range append(slices.Clip(t.ring), t.subject(t.self)) {
		maps.DeleteFunc(p.reports, func(_ sbr.ID, until time.Duration) bool { return now >= until })
	}
}

// missed reports whether this member's own probes say unreachable.
func (t *Tracker) missed(p *peer) bool { return t.cfg.Tries > 0 && p.misses >= t.cfg.Tries }

// askable counts who could report to this member: itself and everybody it has no reason to think cut off.
func (t *Tracker) askable() int {
	n := 1
	for _, p := range t.ring {
		if !p.failed && !t.missed(p) {
			n++
		}
	}
	return n
}

// agree reports whether as many observers as can be asked, at most Neighbours, call p unreachable.
func (t *Tracker) agree(p *peer, askable int) bool {
	if !p.failed && !t.missed(p) {
		askable-- // p itself is not its own observer
	}
	against := 0
	if t.missed(p) {
		against++
	}
	for o := range p.reports {
		if q := t.peers[o]; q != nil && !q.failed && !t.missed(q) {
			against++
		}
	}
	return against > 0 && against >= min(t.cfg.Neighbours, askable)
}

// mutual finds pairs that cannot reach each other although the others reach both: Serf's indirect probes hide
// such a cut.
func (t *Tracker) mutual(agreed map[sbr.ID]bool) map[sbr.ID]bool {
	pairs := make(map[sbr.ID]bool)
	own := t.subject(t.self)
	for _, p := range t.ring {
		if agreed[p.id] {
			continue
		}
		if reported(own, p.id) && t.missed(p) {
			pairs[p.id] = true
		}
		for o := range p.reports {
			if q := t.peers[o]; q != nil && !agreed[o] && reported(q, p.id) {
				pairs[p.id], pairs[o] = true, true
			}
		}
	}
	return pairs
}

func reported(p *peer, by sbr.ID) bool { _, ok := p.reports[by]; return ok }

// reports lists who cannot reach whom, without the reports of observers that are agreed to be cut off
// themselves (design deviation 11).
func (t *Tracker) reports(agreed map[sbr.ID]bool) []sbr.Report {
	var all []sbr.Report
	for _, p := range append(slices.Clip(t.ring), t.subject(t.self)) {
		if p.id != t.self && (p.failed || t.missed(p)) {
			all = append(all, sbr.Report{Observer: t.self, Subject: p.id})
		}
		for o := range p.reports {
			if !agreed[o] {
				all = append(all, sbr.Report{Observer: o, Subject: p.id})
			}
		}
	}
	slices.SortFunc(all, func(a, b sbr.Report) int {
		return cmp.Or(cmp.Compare(a.Observer, b.Observer), cmp.Compare(a.Subject, b.Subject))
	})
	return all
}

package reachability

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Opinion is what a tracker makes of everything it received.
type Opinion struct {
	// Changed are the members whose reachability differs from the last opinion, in ring order.
	Changed []sbr.Reachability
	// Reports are all that count now, ordered by observer and subject. Opinions share them: they must not be
	// changed. Observed says that they differ from those of the last opinion.
	Reports  []sbr.Report
	Observed bool
	// Bad are the subjects that this member should tell the others it cannot reach, Good those that it told
	// them of and reaches again, each in ring order. A subject is left out of Bad while Neighbours other
	// observers, nearer to it on the ring, report it: that keeps a large side from shouting all together.
	Bad, Good []sbr.ID
	// News says that not all of Bad and Good was sent before.
	News bool
}

// small is up to how many members a broadcast of Serf's is sent so few times that a small side is likely to
// miss it.
const small = 16

// Small reports whether a broadcast of Serf's is likely to miss a member.
func (t *Tracker) Small() bool { return len(t.ring) < small }

// A link that breaks between two zones of a large cluster makes every member there report all of the other
// zone: of 500 members in three such zones each hears a thousand messages a second, and to form an opinion of
// the reports and to decide by it takes 30 ms (BenchmarkReport in package sbr). Where most links of 100 members
// are broken, a decision is a search of some milliseconds (BenchmarkLargestGroup), and all the others report.
// So with gatherFrom others or more reports are gathered.
const (
	gatherFrom = 48
	gather     = 500 * time.Millisecond
)

// Gather is how long an opinion of reports that come waits for more of them: not at all in a cluster of usual
// size.
func (t *Tracker) Gather() time.Duration {
	if len(t.ring) < gatherFrom {
		return 0
	}
	return gather
}

// Repeats reports whether the reports are to be sent again after that round of probes: each second one, and
// in a small cluster each.
func (t *Tracker) Repeats(round int) bool { return round%2 == 0 || t.Small() }

// Form weighs everything received until now. With refresh it sends the others again what it has sent them
// before: reports expire.
func (t *Tracker) Form(now time.Duration, refresh bool) Opinion {
	t.expire(now)
	var o Opinion
	changed := t.changed
	if t.changed = false; changed {
		o.Changed = t.weigh()
		count := t.collect()
		o.Observed = !slices.Equal(count, t.counted)
		t.counted = count
	}
	if changed || refresh {
		t.tell(&o, refresh)
	}
	o.Reports = t.counted
	return o
}

// weigh works out which members are unreachable, and returns the changes.
func (t *Tracker) weigh() (changed []sbr.Reachability) {
	askable := t.askable()
	for _, p := range t.ring {
		// Once agreed, silence of the other observers takes nothing back: reports travel badly on a small
		// side. An answer does.
		p.agreed = p.failed || t.agree(p, askable) || p.agreed && t.missed(p)
		p.mutual = false
	}
	t.pair()
	for _, p := range t.ring {
		if un := p.agreed || p.mutual; un != p.verdict {
			p.verdict = un
			changed = append(changed, sbr.Reachability{ID: p.id, Unreachable: un})
		}
	}
	return changed
}

// tell lists what the others should receive.
func (t *Tracker) tell(o *Opinion, refresh bool) {
	for _, p := range t.ring {
		switch {
		case !t.missed(p):
			if p.told {
				o.Good, o.News = append(o.Good, p.id), true
			}
			p.told = false
		case (refresh || !p.told) && !t.covered(p):
			o.Bad, o.News = append(o.Bad, p.id), o.News || !p.told
			p.told = true
		}
	}
}

// covered reports whether enough observers that stand nearer before p on the ring than this member already
// report it. They are the first to probe it, so that the same few go on reporting, and the next one steps in
// when one of them falls silent. Of a member that is heard every broken link has to be known
// (Settings.AllHeard).
func (t *Tracker) covered(p *peer) bool {
	if t.cfg.AllHeard && len(p.reports) > 0 {
		return false
	}
	mine := p.hash - t.self.hash
	before := 0
	for _, o := range p.observers {
		if p.hash-o.hash < mine {
			before++
		}
	}
	return before >= t.cfg.Neighbours
}

// expire forgets reports that were not repeated in time. It looks at them only when one may be due.
func (t *Tracker) expire(now time.Duration) {
	if now < t.expires {
		return
	}
	t.expires = never
	for _, p := range t.ring {
		t.changed = p.retract(func(r report) bool { return now >= r.until }) || t.changed
		for _, r := range p.reports {
			t.expires = min(t.expires, r.until)
		}
	}
}

// missed reports whether this member's own probes say unreachable.
func (t *Tracker) missed(p *peer) bool {
	return t.cfg.Tries > 0 && p.misses >= t.cfg.TriesAmong(len(t.ring))
}

// asked reports whether an observer could report to this member: it has no reason to think it cut off.
func (t *Tracker) asked(p *peer) bool { return !p.failed && !t.missed(p) }

// askable counts the members that could report to this member, itself included.
func (t *Tracker) askable() int {
	n := 1
	for _, p := range t.ring {
		if t.asked(p) {
			n++
		}
	}
	return n
}

// agree reports whether as many observers as can be asked, at most Neighbours, call p unreachable. Without
// own probes no member is asked.
func (t *Tracker) agree(p *peer, askable int) bool {
	if t.asked(p) {
		askable-- // p itself is not its own observer
	}
	against := 0
	if t.missed(p) {
		against++
	}
	for _, o := range p.observers {
		if t.asked(o) {
			against++
		}
	}
	quorum := min(t.cfg.Neighbours, askable)
	return quorum > 0 && against >= quorum
}

// pair finds pairs that cannot reach each other although the others reach both: Serf's indirect probes hide
// such a cut.
func (t *Tracker) pair() {
	for _, p := range t.ring {
		if p.agreed {
			continue
		}
		if t.missed(p) && t.self.reported(p) {
			p.mutual = true
		}
		for _, o := range p.observers {
			if !o.agreed && o.reported(p) {
				p.mutual, o.mutual = true, true
			}
		}
	}
}

// collect lists which member cannot reach which, without the reports of observers that are agreed to be cut
// off themselves (design deviation 11); with Settings.AllHeard only without those that Serf calls failed.
// Each observer's begin behind those of the observers before it, and subjects come in order, so that nothing
// needs sorting.
func (t *Tracker) collect() []sbr.Report {
	misses := func(p *peer) bool { return p.failed || t.missed(p) }
	counts := func(o *peer) bool { return !o.failed && (t.cfg.AllHeard || !o.agreed) }
	total := 0
	for _, o := range t.inOrder {
		o.next = total
		switch {
		case o == t.self:
			for _, p := range t.inOrder {
				if misses(p) {
					total++
				}
			}
		case counts(o):
			total += len(o.reports)
		}
	}
	if total == 0 {
		return nil
	}
	all := make([]sbr.Report, total)
	says := func(o, p *peer) {
		all[o.next] = sbr.Report{Observer: o.id, Subject: p.id}
		o.next++
	}
	for _, p := range t.inOrder {
		if misses(p) {
			says(t.self, p)
		}
		for _, o := range p.observers {
			if counts(o) {
				says(o, p)
			}
		}
	}
	return all
}

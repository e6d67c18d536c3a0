package reachability

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Settings are the settings of direct probes. Start from DefaultSettings.
type Settings struct {
	// Interval is the time between two rounds of probes.
	Interval time.Duration `yaml:"interval"`
	// Timeout is how long a probe may take. It must be shorter than Interval.
	Timeout time.Duration `yaml:"timeout"`
	// Tries is how many probes in a row must fail before a subject counts as unreachable by this observer. At
	// least 1. In a cluster of more than 16 members one more is made at once then, of more than 128 two: a member
	// there has as many more links, and must not look broken more often if it loses packets.
	Tries int `yaml:"tries"`
	// Neighbours is how many members each one probes in every round, and how many observers must agree. Zero
	// switches probes off: then only Serf's status counts.
	Neighbours int `yaml:"neighbours"`
	// Budget is how many members are probed in one round at most, while any member is in doubt. At least
	// Neighbours.
	Budget int `yaml:"budget"`
	// AllHeard counts the reports of every member that Serf does not call failed, and has members tell all
	// that they miss: sbr.KeepsLargestGroup of the strategy. Without it the reports of observers that are
	// agreed to be cut off do not count (design deviation 11).
	AllHeard bool `yaml:"-"`
}

// DefaultSettings notices a cut in 3 to 5 seconds at the cost of five pings a second for each member, and one
// or two more in clusters of more than eleven.
func DefaultSettings() Settings {
	return Settings{
		Interval: time.Second, Timeout: 500 * time.Millisecond, Tries: 3, Neighbours: 5, Budget: 128,
	}
}

// ReportTTL is how long a report of another observer counts without being repeated.
func (s Settings) ReportTTL() time.Duration { return 10 * s.Interval }

// observation is how long a member must be missed by one other for that to count.
func (s Settings) observation() time.Duration { return time.Duration(s.Tries) * s.Interval }

// On reports whether there are own probes.
func (s Settings) On() bool { return s.Neighbours > 0 && s.Interval > 0 }

// Rounds is how many rounds a node needs that lost others members at once: it doubles the number of members
// that it probes in each round in which probes fail, up to Budget, and the last ones it adds must fail Tries
// times as well. With more members it goes round all of them. A try that is made at once counts as a round.
func (s Settings) Rounds(others int) int {
	if !s.On() || others < 1 {
		return 0
	}
	rounds := 0
	width := s.Neighbours
	for ; width < others && width < s.Budget; width = min(2*width, s.Budget) {
		rounds++
	}
	passes := 1
	if others > width {
		more := max(1, width-s.Neighbours)
		passes = (others - s.Neighbours + more - 1) / more
	}
	return rounds + max(1, s.Tries)*passes + s.more(others)
}

// TriesAmong is Tries and what is more for a member with so many others. Where 30 % of the packets that reach one
// member are lost, three probes in a row fail on 2.7 % of its links: on five of 199 at any time, which is a quorum.
func (s Settings) TriesAmong(others int) int { return s.Tries + s.more(others) }

// large is from how many others on a probe is repeated twice more.
const large = 128

func (s Settings) more(others int) int {
	switch {
	case others < small:
		return 0
	case others < large:
		return 1
	}
	return 2
}

// Validate reports every problem at once.
func (s Settings) Validate() error {
	var errs []error
	if s.Neighbours < 0 {
		errs = append(errs, fmt.Errorf("probe.neighbours is %d: it must not be negative (0 switches probes off)",
			s.Neighbours))
	}
	if s.Neighbours > 0 && s.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("probe.timeout is %v: it must be more than 0s", s.Timeout))
	}
	if s.Neighbours > 0 && s.Interval <= s.Timeout {
		errs = append(errs, fmt.Errorf("probe.interval is %v: it must be longer than probe.timeout (%v)",
			s.Interval, s.Timeout))
	}
	if s.Neighbours > 0 && s.Budget <= s.Neighbours {
		errs = append(errs, fmt.Errorf("probe.budget is %d: it must be more than probe.neighbours (%d)", s.Budget,
			s.Neighbours))
	}
	if s.Neighbours > 0 && s.Tries < 1 {
		errs = append(errs, fmt.Errorf("probe.tries is %d: it must be at least 1", s.Tries))
	}
	return errors.Join(errs...)
}

// slowRound is how often a member that already counts as unreachable is probed: every so many rounds.
const slowRound = 3

// Tracker is what one member knows of the links between members. It is not safe for concurrent use.
type Tracker struct {
	cfg  Settings
	self *peer // this member: its place on the ring, and what others report of it

	peers   map[sbr.ID]*peer // the others
	ring    []*peer          // the others in ring order, beginning after self
	inOrder []*peer          // all members by their ids
	round   int
	span    int     // how many of the ring are probed
	next    int     // of the members behind the neighbours, the first to probe in the next round
	due     []*peer // members to probe at once, see Urgent

	changed bool          // since the last opinion
	counted []sbr.Report  // in the last opinion
	expires time.Duration // no report expires before
}

// peer is what is known of one member.
type peer struct {
	id        sbr.ID
	hash      uint64
	failed    bool          // Serf calls it failed
	misses    int           // probes failed in a row
	agreed    bool          // by Serf or by enough observers
	mutual    bool          // it and another one report each other
	verdict   bool          // unreachable in this member's view, all sources together
	told      bool          // this member has reported that it cannot reach it
	downed    bool          // what it reports does not count any more
	urgent    bool          // a probe that fails is repeated at once
	observers []*peer       // the members that report it
	reports   []report      // what it reports; in a large cluster these are few of each
	age       time.Duration // its age at its newest report
	next      int           // the place of its next report; of use only while an opinion is formed
}

// report says that its observer cannot reach a subject. It counts until then unless it is repeated.
type report struct {
	about *peer
	until time.Duration
}

// report returns what p reports of a subject, nil if it reports nothing.
func (p *peer) report(about *peer) *report {
	for i := range p.reports { // the most frequent step of all in a large cluster
		if p.reports[i].about == about {
			return &p.reports[i]
		}
	}
	return nil
}

// retract forgets those of p's reports that over says.
func (p *peer) retract(over func(report) bool) (some bool) {
	before := len(p.reports)
	p.reports = slices.DeleteFunc(p.reports, func(r report) bool {
		if !over(r) {
			return false
		}
		r.about.observers = slices.DeleteFunc(r.about.observers, func(o *peer) bool { return o == p })
		return true
	})
	return len(p.reports) < before
}

func (p *peer) reported(by *peer) bool { return slices.Contains(p.observers, by) }

// never is a time that does not come.
const never = time.Duration(1<<63 - 1)

// New returns the tracker of the member self.
func New(cfg Settings, self sbr.ID) *Tracker {
	me := &peer{id: self, hash: hash(self)}
	return &Tracker{
		cfg: cfg, self: me, peers: make(map[sbr.ID]*peer), inOrder: []*peer{me}, span: cfg.Neighbours,
		expires: never,
	}
}

// Add makes a member known; adding it again has no effect.
func (t *Tracker) Add(id sbr.ID) {
	if id == t.self.id || t.peers[id] != nil {
		return
	}
	p := &peer{id: id, hash: hash(id)}
	t.peers[id], t.changed = p, true
	t.ring = slices.Insert(t.ring, t.place(p), p)
	t.inOrder = slices.Insert(t.inOrder, t.order(p), p)
}

// Remove forgets a member and everything it reported.
func (t *Tracker) Remove(id sbr.ID) {
	gone := t.peers[id]
	if gone == nil {
		return
	}
	i, j := t.place(gone), t.order(gone)
	t.ring, t.inOrder = slices.Delete(t.ring, i, i+1), slices.Delete(t.inOrder, j, j+1)
	t.due = slices.DeleteFunc(t.due, func(p *peer) bool { return p == gone })
	t.changed = true
	delete(t.peers, id)
	gone.silence()
	for _, by := range slices.Clone(gone.observers) {
		by.retract(func(r report) bool { return r.about == gone })
	}
}

// Downed drops the reports of a member: it was downed, and its links do not matter any more.
func (t *Tracker) Downed(id sbr.ID) {
	if p := t.peers[id]; p != nil && !p.downed {
		p.downed, t.changed = true, true
		p.silence()
	}
}

// silence forgets all that p reports.
func (p *peer) silence() { p.retract(func(report) bool { return true }) }

// SetFailed records what Serf says of a member.
func (t *Tracker) SetFailed(id sbr.ID, failed bool) {
	if p := t.peers[id]; p != nil && p.failed != failed {
		p.failed, t.changed = failed, true
	}
}

func hash(id sbr.ID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return mix(h.Sum64())
}

// mix spreads ids that differ in their last characters only (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// place returns where a peer stands in the ring, or belongs.
func (t *Tracker) place(p *peer) int {
	i, _ := slices.BinarySearchFunc(t.ring, p, func(a, b *peer) int {
		return cmp.Or(cmp.Compare(a.hash-t.self.hash, b.hash-t.self.hash), cmp.Compare(a.id, b.id))
	})
	return i
}

// order is the same among all members by their ids.
func (t *Tracker) order(p *peer) int {
	i, _ := slices.BinarySearchFunc(t.inOrder, p, func(a, b *peer) int { return cmp.Compare(a.id, b.id) })
	return i
}

// Probes returns the members to probe in the next round, in ring order. Call it once every Settings.Interval.
//
// These are the neighbours, and some of the others in turn: in peace one or two, so that no broken link stays
// unseen. Of two members the one sweeps over the other that has it in the nearer half of the ring. While any
// member is in doubt they are as many as Budget allows.
func (t *Tracker) Probes() []sbr.ID {
	if t.cfg.Neighbours == 0 {
		return nil
	}
	t.round++
	near := min(t.cfg.Neighbours, len(t.ring))
	width := t.stretch() - near
	ids := t.choose(nil, t.ring[:near], false)
	others, sweep := t.ring[near:], width <= 0
	if sweep {
		others = t.ring[near:max(near, (len(t.ring)+1)/2)]
		width = 1 + t.round%2
	}
	if width = min(width, len(others)); width <= 0 {
		return ids
	}
	from := t.next % len(others)
	t.next = from + width
	end := min(from+width, len(others))
	if end == len(others) {
		ids = t.choose(ids, others[:from+width-end], sweep)
	}
	return t.choose(ids, others[from:end], sweep)
}

// choose appends those of the peers that are probed in this round: those that are known to be unreachable are
// probed now and then for their return; with Settings.AllHeard in each round, because a link that loses
// packets must not look broken for stable-after, until they are downed. In a sweep a probe that fails is
// repeated at once: the turn comes late.
func (t *Tracker) choose(ids []sbr.ID, peers []*peer, sweep bool) []sbr.ID {
	for _, p := range peers {
		if !p.verdict && !t.missed(p) || t.round%slowRound == 0 || t.cfg.AllHeard && !p.downed {
			p.urgent = sweep
			ids = append(ids, p.id)
		}
	}
	return ids
}

// stretch widens the circle of probed members while any member is in doubt, so that a node that lost
// everybody knows it soon, and every broken link is seen. It returns how many of the ring are probed.
func (t *Tracker) stretch() int {
	if !t.Unrest() {
		t.span = t.cfg.Neighbours
	} else {
		t.span = min(2*t.span, max(len(t.ring), t.cfg.Neighbours), t.cfg.Budget)
	}
	return t.span
}

// Urgent returns the members to probe at once, without waiting for the next round: those that report this
// member, and those that a sweep in peace or an urgent probe has just missed, until the tries are used up.
// Ask for it after each probe and report.
func (t *Tracker) Urgent() (ids []sbr.ID) {
	for _, p := range t.due {
		ids = append(ids, p.id)
	}
	t.due = t.due[:0]
	return ids
}

// hurry makes a member due for an urgent probe.
func (t *Tracker) hurry(p *peer) {
	if p.urgent = true; !slices.Contains(t.due, p) {
		t.due = append(t.due, p)
	}
}

// Unrest reports whether there is reason to probe more members than the neighbours. A member that is reported
// has to look for its reporters.
func (t *Tracker) Unrest() bool {
	return len(t.self.observers) > 0 || slices.ContainsFunc(t.ring, func(p *peer) bool {
		return p.failed || p.misses > 0 || len(p.observers) > 0 || p.verdict
	})
}

// Probed records the result of a probe.
func (t *Tracker) Probed(id sbr.ID, ok bool) {
	p := t.peers[id]
	if p == nil {
		return
	}
	before := t.missed(p)
	if p.misses++; ok {
		p.misses = 0
	}
	if !ok && !t.missed(p) && (p.urgent || p.misses >= t.cfg.Tries) {
		t.hurry(p)
	} else {
		p.urgent = false
	}
	t.changed = t.changed || t.missed(p) != before
}

// Reported records what another observer said at an age: it cannot reach the subjects in bad, and can reach those in
// good. What it said before its newest report by more than a new observation takes does not count any more: gossip
// reorders reports, and members that stood still pass on old ones. An age of 0 is not known.
func (t *Tracker) Reported(now time.Duration, observer sbr.ID, age time.Duration, bad, good []sbr.ID) {
	by := t.peers[observer]
	if by == nil || by.downed || age > 0 && age+t.cfg.observation() < by.age {
		return
	}
	by.age = max(by.age, age)
	until := now + t.cfg.ReportTTL()
	for _, id := range bad {
		p := t.subject(id)
		if p == nil {
			continue
		}
		if r := by.report(p); r != nil {
			r.until = until
		} else {
			by.reports = append(by.reports, report{p, until})
			p.observers, t.changed = append(p.observers, by), true
			t.expires = min(t.expires, until)
			if p == t.self && !t.missed(by) && t.cfg.Neighbours > 0 {
				t.hurry(by)
			}
		}
	}
	if len(good) > 0 && by.retract(func(r report) bool { return slices.Contains(good, r.about.id) }) {
		t.changed = true
	}
}

// subject returns the peer that is reported on: this member itself is one, so that mutual reports are seen.
func (t *Tracker) subject(id sbr.ID) *peer {
	if id == t.self.id {
		return t.self
	}
	return t.peers[id]
}

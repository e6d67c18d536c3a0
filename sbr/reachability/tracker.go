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

// MaxProbes bounds how many members are probed in one round.
const MaxProbes = 128

// Settings are the settings of direct probes. Start from DefaultSettings.
type Settings struct {
	// Interval is the time between two rounds of probes.
	Interval time.Duration
	// Timeout is how long a probe may take. It must be shorter than Interval.
	Timeout time.Duration
	// Tries is how many probes in a row must fail before a subject counts as unreachable by this observer. At
	// least 1.
	Tries int
	// Neighbours is how many members each one probes in peace, and how many observers must agree. Zero switches
	// probes off: then only Serf's word counts.
	Neighbours int
}

// DefaultSettings notices a cut in 3 to 5 seconds at the cost of five pings a second for each member.
func DefaultSettings() Settings {
	return Settings{Interval: time.Second, Timeout: 500 * time.Millisecond, Tries: 3, Neighbours: 5}
}

// ReportTTL is how long a report of another observer counts without being repeated.
func (s Settings) ReportTTL() time.Duration { return 10 * s.Interval }

// On reports whether there are own probes.
func (s Settings) On() bool { return s.Neighbours > 0 && s.Interval > 0 }

// Rounds is how many rounds a node needs that lost others members at once: it doubles the number of members
// that it probes in each round in which probes fail, up to 128, and the last ones it adds must fail Tries
// times as well. Beyond 128 it goes on with the next ones.
func (s Settings) Rounds(others int) int {
	if !s.On() || others < 1 {
		return 0
	}
	rounds := max(1, s.Tries)
	width := min(s.Neighbours, MaxProbes)
	for ; width < others && width < MaxProbes; width = min(2*width, MaxProbes) {
		rounds++
	}
	// Every third round goes to those that are known to be unreachable, which may take up the whole of it.
	further := max(1, s.Tries) * ((others - 1) / width)
	return rounds + further + (further+1)/2
}

// Validate reports every problem at once.
func (s Settings) Validate() error {
	var errs []error
	if s.Neighbours < 0 {
		errs = append(errs, fmt.Errorf("probe.neighbours is %d: it must not be negative (0 switches probes off)", s.Neighbours))
	}
	if s.Neighbours > 0 && s.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("probe.timeout is %v: it must be more than 0s", s.Timeout))
	}
	if s.Neighbours > 0 && s.Interval <= s.Timeout {
		errs = append(errs, fmt.Errorf("probe.interval is %v: it must be longer than probe.timeout (%v)", s.Interval, s.Timeout))
	}
	if s.Neighbours > 0 && s.Tries < 1 {
		errs = append(errs, fmt.Errorf("probe.tries is %d: it must be at least 1", s.Tries))
	}
	return errors.Join(errs...)
}

// slowRound is how often a member that already counts as unreachable is probed: every so many rounds.
const slowRound = 3

// Tracker is what one member knows of who reaches whom. It is not safe for concurrent use.
type Tracker struct {
	cfg  Settings
	self *peer // this member: its place on the ring, and what others report of it

	peers map[sbr.ID]*peer // the others
	ring  []*peer          // the others in ring order, beginning after self
	// inOrder are all members by their ids; nil: it is to be made anew.
	inOrder []*peer
	round   int
	span    int // how many of the ring are probed

	changed bool          // since the last opinion
	counted []sbr.Report  // in the last opinion
	expires time.Duration // no report expires before
}

// peer is what is known of one member.
type peer struct {
	id      sbr.ID
	hash    uint64
	failed  bool // Serf's word
	misses  int  // probes failed in a row
	agreed  bool // by Serf or by enough observers
	mutual  bool // it and another one report each other
	verdict bool // unreachable in this member's view, all sources together
	told    bool // this member has told the others that it cannot reach it
	reports []report
	says    []int32 // whom it reports, by their places in order; of use only while an opinion is formed
}

// report says that an observer cannot reach a subject. It counts until then unless it is repeated.
type report struct {
	by    *peer
	until time.Duration
}

// find returns the place of what an observer reports of p, -1 if it reports nothing.
func (p *peer) find(by *peer) int {
	for i := range p.reports { // the most frequent step of all in a large cluster
		if p.reports[i].by == by {
			return i
		}
	}
	return -1
}

func (p *peer) reported(by *peer) bool { return p.find(by) >= 0 }

// never is a time that does not come.
const never = time.Duration(1<<63 - 1)

// New returns the tracker of the member self.
func New(cfg Settings, self sbr.ID) *Tracker {
	return &Tracker{
		cfg: cfg, self: &peer{id: self, hash: hash(self)}, peers: make(map[sbr.ID]*peer), span: cfg.Neighbours, expires: never,
	}
}

// Add makes a member known; adding it again has no effect.
func (t *Tracker) Add(id sbr.ID) {
	if id == t.self.id || t.peers[id] != nil {
		return
	}
	p := &peer{id: id, hash: hash(id)}
	t.peers[id], t.changed, t.inOrder = p, true, nil
	t.ring = slices.Insert(t.ring, t.place(p), p)
}

// Remove forgets a member and everything it reported.
func (t *Tracker) Remove(id sbr.ID) {
	gone := t.peers[id]
	if gone == nil {
		return
	}
	i := t.place(gone)
	t.ring = slices.Delete(t.ring, i, i+1)
	t.changed, t.inOrder = true, nil
	delete(t.peers, id)
	for _, p := range append(slices.Clip(t.ring), t.self) {
		p.take(gone)
	}
}

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

// Probes returns whom to probe in the next round, in ring order. Call it once every Settings.Interval.
func (t *Tracker) Probes() []sbr.ID {
	if t.cfg.Neighbours == 0 {
		return nil
	}
	t.round++
	t.stretch()
	var ids []sbr.ID
	seen := 0
	for _, p := range t.ring {
		if seen >= t.span || len(ids) >= MaxProbes {
			break
		}
		if p.verdict || t.missed(p) {
			// Known to be unreachable: probed now and then for its return, and not in another one's place.
			if t.round%slowRound == 0 {
				ids = append(ids, p.id)
			}
			continue
		}
		seen++
		ids = append(ids, p.id)
	}
	return ids
}

// stretch widens the circle of probed members while anybody is in doubt, so that a node that lost everybody
// knows it soon.
func (t *Tracker) stretch() {
	if !t.Unrest() {
		t.span = t.cfg.Neighbours
		return
	}
	t.span = min(2*t.span, max(len(t.ring), t.cfg.Neighbours), MaxProbes)
}

// Unrest reports whether there is reason to probe more members than the neighbours. A member that is reported
// has to look for its reporters.
func (t *Tracker) Unrest() bool {
	return len(t.self.reports) > 0 || slices.ContainsFunc(t.ring, func(p *peer) bool {
		return p.failed || p.misses > 0 || len(p.reports) > 0 || p.verdict
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
	t.changed = t.changed || t.missed(p) != before
}

// Reported records what another observer said: it cannot reach the subjects in bad, and can reach those in
// good.
func (t *Tracker) Reported(now time.Duration, observer sbr.ID, bad, good []sbr.ID) {
	by := t.peers[observer]
	if by == nil {
		return
	}
	until := now + t.cfg.ReportTTL()
	for _, id := range bad {
		if p := t.subject(id); p != nil {
			if i := p.find(by); i >= 0 {
				p.reports[i].until = until
				continue
			}
			p.reports, t.changed = append(p.reports, report{by, until}), true
			t.expires = min(t.expires, until)
		}
	}
	for _, id := range good {
		if p := t.subject(id); p != nil && p.take(by) {
			t.changed = true
		}
	}
}

// take forgets what an observer reports of p, and reports whether there was something.
func (p *peer) take(by *peer) bool {
	i := p.find(by)
	if i >= 0 {
		p.reports = slices.Delete(p.reports, i, i+1)
	}
	return i >= 0
}

// subject returns the peer that is reported on: this member itself is one, so that mutual reports are seen.
func (t *Tracker) subject(id sbr.ID) *peer {
	if id == t.self.id {
		return t.self
	}
	return t.peers[id]
}

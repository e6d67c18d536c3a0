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
	self sbr.ID
	from uint64 // where self stands on the ring

	peers map[sbr.ID]*peer
	own   *peer   // what others report of this member
	ring  []*peer // the others in ring order, beginning after self
	round int
	span  int // how many of the ring are probed
}

type peer struct {
	id      sbr.ID
	hash    uint64
	failed  bool // Serf's word
	misses  int  // probes failed in a row
	agreed  bool // by Serf or by enough observers
	verdict bool // unreachable in this member's view, all sources together
	reports map[sbr.ID]time.Duration
}

// New returns the tracker of the member self.
func New(cfg Settings, self sbr.ID) *Tracker {
	return &Tracker{cfg: cfg, self: self, from: hash(self), peers: make(map[sbr.ID]*peer), span: cfg.Neighbours}
}

// Add makes a member known; adding it again has no effect.
func (t *Tracker) Add(id sbr.ID) {
	if id == t.self || t.peers[id] != nil {
		return
	}
	p := &peer{id: id, hash: hash(id)}
	t.peers[id] = p
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
	delete(t.peers, id)
	for _, p := range t.peers {
		delete(p.reports, id)
	}
}

// SetFailed records what Serf says of a member.
func (t *Tracker) SetFailed(id sbr.ID, failed bool) {
	if p := t.peers[id]; p != nil {
		p.failed = failed
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
		return cmp.Or(cmp.Compare(a.hash-t.from, b.hash-t.from), cmp.Compare(a.id, b.id))
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
	if !t.unrest() {
		t.span = t.cfg.Neighbours
		return
	}
	t.span = min(2*t.span, max(len(t.ring), t.cfg.Neighbours), MaxProbes)
}

// unrest reports whether there is reason to probe more members than the neighbours. Whoever is reported has
// to look for its reporters.
func (t *Tracker) unrest() bool {
	if t.own != nil && len(t.own.reports) > 0 {
		return true
	}
	for _, p := range t.ring {
		if p.failed || p.misses > 0 || len(p.reports) > 0 || p.verdict {
			return true
		}
	}
	return false
}

// Probed records the result of a probe.
func (t *Tracker) Probed(id sbr.ID, ok bool) {
	p := t.peers[id]
	if p == nil {
		return
	}
	if ok {
		p.misses = 0
		return
	}
	p.misses++
}

// Reported records what another observer said: it cannot reach the subjects in bad, and can reach those in
// good.
func (t *Tracker) Reported(now time.Duration, observer sbr.ID, bad, good []sbr.ID) {
	if t.peers[observer] == nil {
		return
	}
	for _, id := range bad {
		if p := t.subject(id); p != nil {
			if p.reports == nil {
				p.reports = make(map[sbr.ID]time.Duration)
			}
			p.reports[observer] = now + t.cfg.ReportTTL()
		}
	}
	for _, id := range good {
		if p := t.subject(id); p != nil {
			delete(p.reports, observer)
		}
	}
}

// subject returns the peer that is reported on; this member itself has one too, so that mutual reports are
// seen.
func (t *Tracker) subject(id sbr.ID) *peer {
	if id != t.self {
		return t.peers[id]
	}
	if t.own == nil {
		t.own = &peer{id: t.self}
	}
	return t.own
}

package lease

import (
	"log/slog"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// observedRecord is what a lease has learnt of the record, and when.
type observedRecord struct {
	// snap is the newest state known, valid if have. seq counts its changes.
	snap Snapshot
	have bool
	seq  int
	// mark is the last sign of life of the holder, and since when it has been standing there, by the local
	// clock.
	mark  heartbeatMark
	since time.Time
	// token and verdict are the newest ever seen. They survive a store that forgets.
	token   uint64
	verdict *sbr.Verdict
	// mentioned is what each warning was last given for.
	mentioned map[warning]any
}

// warning is a warning that is given once for each cause.
type warning uint8

const (
	warnedBehind warning = iota
	warnedOdd
	warnedSettings
)

// first reports whether the warning was not given for that cause just before.
func (k *observedRecord) first(w warning, cause any) bool {
	if k.mentioned[w] == cause {
		return false
	}
	k.mentioned[w] = cause
	return true
}

// heartbeatMark is what a holder changes with each heartbeat. The version is not part of it: an edit of a
// label changes it.
type heartbeatMark struct {
	holder, nonce string
	token         uint64
	renewed       time.Time
}

func markOf(r *Record) heartbeatMark { return heartbeatMark{r.Holder, r.Nonce, r.Token, r.Renewed} }

func (s heartbeatMark) equal(o heartbeatMark) bool {
	return s.holder == o.holder && s.nonce == o.nonce && s.token == o.token && s.renewed.Equal(o.renewed)
}

// highest is the largest token a record speaks of. In a poisoned record the verdict may be ahead of the
// record.
func highest(r *Record) uint64 {
	if r.Verdict == nil {
		return r.Token
	}
	return max(r.Token, r.Verdict.Token)
}

// older reports whether r was certainly written before o. Tokens order grants, Renewed orders the writes of
// one.
func (r *Record) older(o *Record) bool {
	if r.Token != o.Token {
		return r.Token < o.Token
	}
	return r.Renewed.Before(o.Renewed)
}

// older reports whether r was certainly written before what is known.
func (k *observedRecord) older(r *Record) bool { return k.have && r.older(&k.snap.Record) }

// adopt makes s the newest state known.
func (k *observedRecord) adopt(s Snapshot, now time.Time) {
	k.seq++
	if seen := markOf(&s.Record); !k.have || !seen.equal(k.mark) {
		k.mark, k.since = seen, now
	}
	k.snap, k.have = s, true
	k.note(&s.Record)
}

// note remembers the newest token and verdict.
func (k *observedRecord) note(r *Record) {
	k.token = max(k.token, highest(r))
	k.verdict = newest(k.verdict, r.Verdict)
}

// reconcile returns s as this lease sees it: a store that forgot does not take the token or the verdict back
// (the record is Behind), and a nonce that it brings back from the past proves nothing. Verdicts are shared,
// never changed; they are copied where they leave.
func (k *observedRecord) reconcile(s Snapshot) Snapshot {
	stored := highest(&s.Record)
	if s.Record.Behind = stored < k.token; s.Record.Behind {
		s.Record.Nonce = ""
	}
	s.Record.Token = max(k.token, stored)
	s.Record.Verdict = newest(k.verdict, s.Record.Verdict)
	return s
}

// silent is for how long the holder of r has given no sign of life, as far as was seen from here.
func (k *observedRecord) silent(r *Record, now time.Time) time.Duration {
	if s := k.snap.Record; !k.have || s.Holder != r.Holder || !s.Renewed.Equal(r.Renewed) || s.Token > r.Token {
		return 0
	}
	return now.Sub(k.since)
}

// cached returns the newest state known without asking the store.
func (m *Machine) cached() (Snapshot, bool) {
	return m.observed.reconcile(m.observed.snap), m.observed.have
}

// learn handles the answer to a read. If nothing was learnt since it was sent, the answer is newer than what
// is known, even if it looks older: then the store itself went backwards.
func (m *Machine) learn(s Snapshot, q *request) Snapshot {
	if q.gaveUp == m.gaveUp {
		m.settleUnresolved(s)
	}
	if q.seq != m.observed.seq && m.observed.older(&s.Record) {
		return m.observed.reconcile(m.observed.snap)
	}
	if q.seq == m.observed.seq {
		m.warnRegress(s)
	}
	m.observed.adopt(s, m.now)
	m.examine(s)
	return m.observed.reconcile(s)
}

// heard handles the report of a watch. Reports may be late: what looks older than what is known is not
// believed.
func (m *Machine) heard(s Snapshot) {
	spent := s.Record.spent()
	if spent != nil {
		m.emit(Note{Level: slog.LevelError, Text: spent.Error()})
	}
	if spent != nil || m.observed.older(&s.Record) {
		if t := m.tenure; t != nil {
			t.doubt = true // an old report, or a poisoned one, or the record was taken away: a heartbeat finds out
		}
		return
	}
	m.observed.adopt(s, m.now)
	m.examine(s)
	m.emit(News{m.observed.reconcile(s).Record})
}

// wrote handles a successful write of this Lease.
func (m *Machine) wrote(s Snapshot) {
	mine, known := m.unresolved[s.Record.Nonce]
	clear(m.unresolved) // one version admits one write: all others that waited for theirs are dead
	if known && s.Record.Holder == m.owner {
		m.unresolved[s.Record.Nonce] = mine // a heartbeat that overtook the release of its tenure
	}
	if s.Record.Token >= m.observed.token {
		m.observed.adopt(s, m.now)
	} // else a watch has reported meanwhile what came after this write
}

// examine acts on a state that was just adopted: a grant that is gone, or a grant that came after its failure
// was reported.
func (m *Machine) examine(s Snapshot) {
	r := &s.Record
	m.warnOdd(r)
	if m.tenure != nil {
		if !m.recognises(r) {
			m.lose(m.lossReason(r, s.Version))
		}
		return
	}
	if !m.limited { // the records of others say nothing of it
		m.warnPatience(r)
	}
	if m.isUnresolved(r) {
		m.tidyAfter(m.grace())
	}
}

// warnRegress says once that the store forgot something.
func (m *Machine) warnRegress(s Snapshot) {
	k := &m.observed
	if highest(&s.Record) >= k.token {
		delete(k.mentioned, warnedBehind)
		return
	}
	if !k.first(warnedBehind, s.Version) {
		return
	}
	what := "the record went backwards"
	if s.Version == "" {
		what = "the record vanished"
	}
	m.warn("lease: "+what+"; the newest token and verdict seen here stay in force", "stored-token",
		s.Record.Token, "newest-token", k.token)
}

// oddTime is how far ahead a time in the record is mentioned. Wall clocks that differ by less are common.
const oddTime = 48 * time.Hour

// warnOdd says once what no holder writes. Nothing is decided by it.
func (m *Machine) warnOdd(r *Record) {
	latest := r.Renewed
	if r.Acquired.After(latest) {
		latest = r.Acquired
	}
	future, ahead := latest.After(m.now.Add(oddTime)), highest(r) > r.Token
	seen := markOf(r)
	seen.renewed = time.Time{} // heartbeats go on
	if !future && !ahead || !m.observed.first(warnedOdd, seen) {
		return
	}
	if future {
		m.warn("lease: a time in the record lies in the future; nothing is decided by it", "time", latest, "holder",
			r.Holder, "token", r.Token)
	}
	if ahead {
		m.warn("lease: the verdict is newer than the record that carries it; the next token is newer than both",
			"verdict-token", r.Verdict.Token, "token", r.Token, "holder", r.Holder)
	}
}

// warnPatience says once that a holder counts on more time than it gets from here: the two are configured
// differently.
func (m *Machine) warnPatience(r *Record) {
	mine := m.settings.HeartbeatTimeout
	if r.Holder == "" || r.Holder == m.owner || mine == Infinite || 0 < r.TTL && r.TTL <= mine ||
		!m.observed.first(warnedSettings, r.Holder) {
		return
	}
	m.warn("lease: the holder's heartbeat-timeout is longer than mine: it may be replaced too early; all parties need the same",
		"holder", r.Holder, "recorded", r.TTL, "heartbeat-timeout", mine)
}

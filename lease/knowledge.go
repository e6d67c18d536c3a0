package lease

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// knowledge is what a lease has learnt of the record, and when.
type knowledge struct {
	// snap is the newest state known, valid if have. seq counts its changes.
	snap Snapshot
	have bool
	seq  uint64
	// sign is the last sign of life of the holder, and since when it has been standing there, by the local clock.
	sign  sign
	since time.Time
	// token and verdict are the newest ever seen. They survive a store that forgets.
	token   uint64
	verdict *sbr.Verdict
	// regress is the version that was already warned of, other the holder that was.
	regress Version
	warned  bool
	other   string
	odd     sign // the one that was mentioned, valid if haveOdd
	haveOdd bool
}

// sign is what a holder changes with each heartbeat. The version is not part of it: anybody who edits a label changes that.
type sign struct {
	holder, nonce string
	token         uint64
	renewed       time.Time
}

func signOf(r *Record) sign { return sign{r.Holder, r.Nonce, r.Token, r.Renewed} }

func (s sign) equal(o sign) bool {
	return s.holder == o.holder && s.nonce == o.nonce && s.token == o.token && s.renewed.Equal(o.renewed)
}

// highest is the largest token a record speaks of. In a poisoned record the verdict may be ahead of the record.
func highest(r *Record) uint64 {
	if r.Verdict == nil {
		return r.Token
	}
	return max(r.Token, r.Verdict.Token)
}

// older reports whether r was certainly written before o. Tokens order grants, Renewed orders the writes of one.
func (r *Record) older(o *Record) bool {
	if r.Token != o.Token {
		return r.Token < o.Token
	}
	return r.Renewed.Before(o.Renewed)
}

// older reports whether r was certainly written before what is known.
func (k *knowledge) older(r *Record) bool { return k.have && r.older(&k.snap.Record) }

// adopt makes s the newest state known.
func (k *knowledge) adopt(s Snapshot, now time.Time) {
	k.seq++
	if seen := signOf(&s.Record); !k.have || !seen.equal(k.sign) {
		k.sign, k.since = seen, now
	}
	k.snap, k.have = s, true
	k.note(&s.Record)
}

// note remembers the newest token and verdict.
func (k *knowledge) note(r *Record) {
	k.token = max(k.token, highest(r))
	k.verdict = newest(k.verdict, r.Verdict)
}

// reconcile returns s as this lease sees it: a store that forgot does not take the token or the verdict back (the record is Behind), and a
// nonce that it brings back from the past proves nothing. Verdicts are shared, never changed; they are copied where they leave.
func (k *knowledge) reconcile(s Snapshot) Snapshot {
	stored := highest(&s.Record)
	if s.Record.Behind = stored < k.token; s.Record.Behind {
		s.Record.Nonce = ""
	}
	s.Record.Token = max(k.token, stored)
	s.Record.Verdict = newest(k.verdict, s.Record.Verdict)
	return s
}

// silent is for how long the holder of r has given no sign of life, as far as was seen from here.
func (k *knowledge) silent(r *Record, now time.Time) time.Duration {
	if s := k.snap.Record; !k.have || s.Holder != r.Holder || !s.Renewed.Equal(r.Renewed) || s.Token > r.Token {
		return 0
	}
	return now.Sub(k.since)
}

// moment is the state of the knowledge when a request was sent.
type moment struct{ seq, gaveUp uint64 }

func (l *Lease) moment() moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return moment{l.know.seq, l.gaveUp}
}

// cached returns the newest state known without asking the store.
func (l *Lease) cached() (Snapshot, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.know.reconcile(l.know.snap), l.know.have
}

// learn takes in the answer to a read. If nothing was learnt since it was sent, the answer is newer than what is known,
// even if it looks older: then the store itself went backwards.
func (l *Lease) learn(s Snapshot, sent moment) Snapshot {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if sent.gaveUp == l.gaveUp {
		l.settleStrays(s)
	}
	if sent.seq != l.know.seq && l.know.older(&s.Record) {
		return l.know.reconcile(l.know.snap)
	}
	if sent.seq == l.know.seq {
		l.warnRegress(s)
	}
	l.know.adopt(s, now)
	l.examine(s, now)
	return l.know.reconcile(s)
}

// hear takes in what a watch reports. Reports may be late: what looks older than what is known is not believed.
// It reports whether the state was news.
func (l *Lease) hear(s Snapshot) (Record, bool) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	spent := s.Record.spent()
	if spent != nil {
		l.log.Error(spent.Error())
	}
	if spent != nil || l.know.older(&s.Record) {
		if t := l.tenure; t != nil {
			t.verify() // an old report, or a poisoned one, or the record was taken away: a heartbeat finds out
		}
		return Record{}, false
	}
	l.know.adopt(s, now)
	l.examine(s, now)
	return l.know.reconcile(s).Record, true
}

// wrote takes in a successful write of one's own.
func (l *Lease) wrote(s Snapshot) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	mine, stray := l.strays[s.Record.Nonce]
	clear(l.strays) // one version admits one write: all others that waited for theirs are dead
	if stray && s.Record.Holder == l.owner {
		l.strays[s.Record.Nonce] = mine // a heartbeat that overtook the release of its tenure
	}
	if s.Record.Token >= l.know.token {
		l.know.adopt(s, now)
	} // else a watch has reported meanwhile what came after this write
}

// examine acts on a state that was just adopted: a grant that is gone, or one that came after its failure was reported.
func (l *Lease) examine(s Snapshot, now time.Time) {
	r := &s.Record
	l.warnOdd(r, now)
	if t := l.tenure; t != nil {
		if l.recognises(t, r) {
			return
		}
		l.loseLocked(t, l.lossReason(t, r, s.Version))
		return
	}
	if !l.limited { // the records of others say nothing of it
		l.warnPatience(r)
	}
	if l.isStrayLocked(r) {
		l.tidyLocked(l.grace())
	}
}

// recognises reports whether r still is the tenure's. A committed write whose answer was lost is recognised by its nonce.
func (l *Lease) recognises(t *tenure, r *Record) bool {
	if r.Holder != l.owner || highest(r) < l.know.token {
		return false
	}
	if r.Nonce == t.nonce || (l.trying != "" && r.Nonce == l.trying) {
		return true
	}
	s, ok := l.strays[r.Nonce]
	if ok && s.attempt {
		t.nonce, t.terms = r.Nonce, s.terms
		delete(l.strays, r.Nonce)
		l.hold(t, r, s.started)
		wake(t.changed)
		return true
	}
	return false
}

func (l *Lease) lossReason(t *tenure, r *Record, v Version) error {
	switch {
	case v == "":
		return fmt.Errorf("%w: the record was deleted", ErrLost)
	case r.Token < t.token:
		return fmt.Errorf("%w: the record went back from token %d to %d", ErrLost, t.token, r.Token)
	case r.Holder == "":
		return fmt.Errorf("%w: somebody freed the record", ErrLost)
	case r.Holder == l.owner:
		return fmt.Errorf("%w: displaced by another life of the same owner under token %d", ErrLost, r.Token)
	default:
		return fmt.Errorf("%w: held by %q under token %d", ErrLost, r.Holder, r.Token)
	}
}

// warnRegress says once that the store forgot something.
func (l *Lease) warnRegress(s Snapshot) {
	k := &l.know
	if highest(&s.Record) >= k.token {
		k.warned = false
		return
	}
	if k.warned && k.regress == s.Version {
		return
	}
	k.warned, k.regress = true, s.Version
	what := "the record went backwards"
	if s.Version == "" {
		what = "the record vanished"
	}
	l.log.Warn("lease: "+what+"; the newest token and verdict seen here stay in force",
		"stored-token", s.Record.Token, "newest-token", k.token)
}

// oddTime is how far ahead a time in the record is mentioned. Wall clocks that differ by less are common.
const oddTime = 48 * time.Hour

// warnOdd says once what no holder writes. Nothing is decided by it.
func (l *Lease) warnOdd(r *Record, now time.Time) {
	seen := signOf(r)
	seen.renewed = time.Time{} // heartbeats go on
	if l.know.haveOdd && seen.equal(l.know.odd) {
		return
	}
	latest := r.Renewed
	if r.Acquired.After(latest) {
		latest = r.Acquired
	}
	future, ahead := latest.After(now.Add(oddTime)), r.Verdict != nil && r.Verdict.Token > r.Token
	if future || ahead {
		l.know.odd, l.know.haveOdd = seen, true
	}
	if future {
		l.log.Warn("lease: a time in the record lies in the future; nothing is decided by it", "time", latest, "holder", r.Holder, "token", r.Token)
	}
	if ahead {
		l.log.Warn("lease: the verdict is newer than the record that carries it; the next token is newer than both",
			"verdict-token", r.Verdict.Token, "token", r.Token, "holder", r.Holder)
	}
}

// warnPatience says once that a holder counts on more time than it gets from here: the two are configured differently.
func (l *Lease) warnPatience(r *Record) {
	k, mine := &l.know, l.settings.HeartbeatTimeout
	if r.Holder == "" || r.Holder == l.owner || r.Holder == k.other || mine == Infinite || (0 < r.TTL && r.TTL <= mine) {
		return
	}
	k.other = r.Holder
	l.log.Warn("lease: the holder's heartbeat-timeout is longer than mine: it may be replaced too early; all parties need the same",
		"holder", r.Holder, "recorded", r.TTL, "heartbeat-timeout", mine)
}

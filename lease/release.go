package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Release gives the lease up. Check is false before the write is sent, whatever becomes of it. It may be called at any time
// and any number of times; without a held lease, and without a grant that may still come late, it is NotReleased and sends
// no request. Token and verdict stay in the record.
func (l *Lease) Release(ctx context.Context) ReleaseOutcome {
	l.overdue(nil)
	nonce := l.giveUp() // before waiting for a writer: its heartbeat ends at once
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if err := l.lock(ctx); err != nil {
		return l.releaseNotSent(nonce, err)
	}
	defer l.unlock()
	if late := l.giveUp(); late != "" {
		nonce = late // an Acquire that was under way when Release was called
	}
	return l.release(ctx, nonce)
}

// giveUp ends the tenure without telling the callback and returns its nonce, empty if there was none.
// What the record says from here on is a stray grant.
func (l *Lease) giveUp() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tenure
	if t == nil {
		return ""
	}
	l.endTenure(t)
	l.strays[t.nonce] = stray{terms: t.terms}
	l.gaveUp++
	return t.nonce
}

func (l *Lease) releaseNotSent(nonce string, err error) ReleaseOutcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.strays) == 0 {
		if errors.Is(err, ErrClosed) {
			return ReleaseOutcome{Kind: NotReleased, Err: ErrClosed}
		}
		return ReleaseOutcome{Kind: NotReleased}
	}
	if nonce != "" {
		l.tidyLocked(l.settings.OperationTimeout)
	}
	return ReleaseOutcome{Kind: ReleaseUnknown, Err: err}
}

// release frees the record if one of the strays stands in it. Called as the one writer.
func (l *Lease) release(ctx context.Context, nonce string) ReleaseOutcome {
	sent := l.wasFreed(nonce) // by the goroutine that tidies up, while this call waited for its turn
	switch gone := l.strayCount() == 0; {
	case gone && sent:
		return ReleaseOutcome{Kind: Released}
	case gone:
		return ReleaseOutcome{Kind: NotReleased}
	}
	if left := l.owed(); left > 0 {
		return l.releaseUnknown(errOwed(left))
	}
	s, warm := l.cached()
	var last error
	for n := 0; ; n++ {
		err := l.pause(ctx, n)
		if err == nil && !warm {
			s, err = l.fetch(ctx)
		}
		if err == nil {
			if out, done := l.released(s, nonce, sent, !warm); done {
				return out
			}
			warm = false
			if !l.isStray(&s.Record) {
				continue
			}
			if err = l.free(ctx, s); err == nil {
				return ReleaseOutcome{Kind: Released}
			}
			sent = sent || !errors.Is(err, ErrConflict) // it may have been committed
		}
		if ctx.Err() != nil || errors.Is(err, ErrRefused) {
			return l.releaseUnknown(following(err, last))
		}
		last = telling(last, err)
	}
}

// released judges a state that was read: done is false when there is something to write, or when the state may be old.
func (l *Lease) released(s Snapshot, nonce string, sent, fresh bool) (out ReleaseOutcome, done bool) {
	switch {
	case !fresh || l.isStray(&s.Record):
		return ReleaseOutcome{}, false
	case l.strayCount() > 0:
		// An unanswered write for this very version may still be committed. Nothing can be released yet.
		return l.releaseUnknown(fmt.Errorf("lease: an earlier attempt may still be granted")), true
	case sent:
		return ReleaseOutcome{Kind: Released}, true // somebody else may have taken it since
	case nonce != "":
		return ReleaseOutcome{Kind: NotReleased, Err: ErrLost}, true
	default:
		return ReleaseOutcome{Kind: NotReleased}, true
	}
}

func (l *Lease) releaseUnknown(err error) ReleaseOutcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidyLocked(l.settings.OperationTimeout)
	return ReleaseOutcome{Kind: ReleaseUnknown, Err: err}
}

// free writes the record s, which stands under a stray, without its holder. From now on that stray cannot be adopted any
// more: the write may be committed after it has failed.
func (l *Lease) free(ctx context.Context, s Snapshot) error {
	l.mu.Lock()
	l.strays[s.Record.Nonce] = stray{terms: l.strays[s.Record.Nonce].terms}
	l.mu.Unlock()
	r := l.touched(s.Record)
	r.Holder = ""
	_, err := l.write(ctx, r, s.Version)
	if !errors.Is(err, ErrConflict) {
		l.mu.Lock()
		l.freed = s.Record.Nonce
		l.mu.Unlock()
	}
	return err
}

// wasFreed reports whether a write that ends this grant may have been committed.
func (l *Lease) wasFreed(nonce string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return nonce != "" && l.freed == nonce
}

// stray is a nonce under which the store may show this owner as the holder although it does not hold the lease.
type stray struct {
	// terms are those of the grant.
	terms terms
	// attempt: it stems from an Acquire that ended as Unknown, whose write was sent for the version prev, first at started.
	// As long as the record is at prev it may still come. Otherwise it is a grant that was given up: any read that does not
	// show it proves that it is gone.
	attempt bool
	prev    Version
	started time.Time
}

// maxStrays bounds the memory of attempts that are all in doubt. The ones beyond share the entry anyNonce: no attempt has that
// nonce, so none of them is adopted.
const (
	maxStrays = 256
	anyNonce  = ""
)

func (l *Lease) stray(nonce string, s stray, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.strays) >= maxStrays {
		nonce = anyNonce // with the newest prev: an older version does not come back
		s.terms.ttl = max(s.terms.ttl, l.strays[anyNonce].terms.ttl)
	}
	l.strays[nonce] = s
	l.gaveUp++
	l.tidyLocked(after)
}

func (l *Lease) strayCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.strays)
}

func (l *Lease) isStray(r *Record) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isStrayLocked(r)
}

func (l *Lease) isStrayLocked(r *Record) bool {
	_, ok := l.strays[r.Nonce]
	_, more := l.strays[anyNonce]
	return (ok || more) && r.Holder == l.owner
}

// lateGrant tells when the write of an attempt with these terms, that ended as Unknown, was sent.
func (l *Lease) lateGrant(nonce string, t terms) (started time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.strays[nonce]
	return s.started, ok && s.attempt && s.terms == t
}

// settleStrays forgets those of which s, the answer to a read that was sent after the last of them, proves that they are gone.
func (l *Lease) settleStrays(s Snapshot) {
	for nonce, st := range l.strays {
		present := (nonce == s.Record.Nonce || nonce == anyNonce) && s.Record.Holder == l.owner
		if !present && !(st.attempt && st.prev == s.Version) {
			delete(l.strays, nonce)
		}
	}
}

// grace is how long a late grant is left alone, so that the next Acquire can adopt it.
func (l *Lease) grace() time.Duration { return 2 * l.settings.OperationTimeout }

// tidyLocked starts the goroutine that undoes strays, unless it runs.
func (l *Lease) tidyLocked(after time.Duration) {
	if l.tidying || l.closed {
		return
	}
	l.tidying = true
	l.running.Go(func() { l.tidy(after) })
}

// tidy reads the record from time to time until no stray is left, and frees what stands there under one.
// It gives up when the time is over in which others would wait for such a holder (never, if they would wait for ever); a later
// read or watch that finds a stray starts it anew.
func (l *Lease) tidy(after time.Duration) {
	defer func() {
		l.mu.Lock()
		l.tidying = false
		l.mu.Unlock()
	}()
	for waited := time.Duration(0); waited < l.strayPatience(); {
		if sleep(l.root, l.clock, after) != nil {
			return
		}
		waited += after
		after = l.settings.Interval()
		if l.undo() {
			return
		}
	}
}

// strayPatience is how long strays are looked for.
func (l *Lease) strayPatience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.strays {
		if s.terms.ttl == Infinite {
			return Infinite
		}
	}
	return min(l.settings.HeartbeatTimeout, time.Hour)
}

// undo frees the record if it stands under a stray. It reports whether nothing is left to do.
func (l *Lease) undo() bool {
	ctx, cancel := l.bounded(l.root)
	defer cancel()
	if l.lock(ctx) != nil {
		return false
	}
	defer l.unlock()
	if l.strayCount() == 0 {
		return true
	}
	if l.owed() > 0 {
		return false
	}
	s, err := l.fetch(ctx)
	if err != nil {
		return false
	}
	if l.isStray(&s.Record) && !l.held() {
		l.log.Info("lease: undoing a grant that came after its failure was reported", "token", s.Record.Token)
		_ = l.free(ctx, s) // whatever becomes of it, the next round sees it
	}
	return l.strayCount() == 0
}

// held reports whether there is a tenure, live or not.
func (l *Lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tenure != nil
}

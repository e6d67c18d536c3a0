package lease

import (
	"fmt"
	"time"
)

// A take-over replaces a holder that lives. Its verdict counts at once; but the former holder may believe in
// its last heartbeat until its time is over, as observed from here, exactly as if it had crashed. Until then
// three things hold, so that no two owners ever believe at once: Check is false, a plain Acquire of the new
// holder is Held, and its Release leaves the record as it is, for the next one would not know of the one
// before. Whoever takes over from the new holder waits out that one's time, which ends later.

// owe notes, before a write of p that replaces s, until when somebody else may believe in s.
func (l *Lease) owe(p *Proposal, s Snapshot) {
	silent, patience := l.silence(s)
	r, now := &s.Record, l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r.Holder == l.owner && !p.Override: // what is owed stays owed
	case r.Holder == "", p.Override, patience != Infinite && silent >= patience:
		// A free record says that nobody believes in anything: it was not freed before. Override is an
		// operator's word.
		l.owedUntil = time.Time{}
	default:
		l.owedUntil = now.Add(patience - silent)
	}
}

// owed is for how long a former holder may still believe that it holds the lease.
func (l *Lease) owed() time.Duration {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.owedUntil.Sub(now))
}

// needsCheck reports whether p asks for a lease that can be used at once. The others are for the verdict that
// they write.
func (p *Proposal) needsCheck() bool { return p.For != 0 || p.Verdict == nil && len(p.TakeOver) == 0 }

func errOwed(left time.Duration) error {
	return fmt.Errorf("lease: the holder that was replaced may not know it yet: the record is freed in %v", left)
}

package lease

import (
	"context"
	"errors"
	"fmt"
)

// ForceRelease frees the record although another owner holds it: an operator's act. The former holder learns with its next
// heartbeat, or by a running Watch at once; until then both may work, so make sure that it has ended. Token and verdict stay.
//
// holder names who must hold the lease; empty: whoever does. The outcome is NotReleased if nobody does, or with ErrOtherHolder
// if somebody else does. A lease that this Lease holds itself is released, without a call of the lost callback.
func (l *Lease) ForceRelease(ctx context.Context, holder string) ReleaseOutcome {
	if holder == l.owner || (holder == "" && l.held()) {
		l.giveUp()
	}
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	if err := l.lock(ctx); err != nil {
		return l.forceUnknown(ReleaseOutcome{}, err)
	}
	defer l.unlock()
	f := forced{holder: holder}
	for n := 0; ; n++ {
		err := l.pause(ctx, n)
		if err == nil {
			var done bool
			if done, err = l.force(ctx, &f); done {
				return f.out
			}
		}
		if ctx.Err() != nil || errors.Is(err, ErrRefused) {
			return l.forceUnknown(f.out, following(err, f.last))
		}
		f.last = telling(f.last, err)
	}
}

// forceUnknown leaves a grant of this Lease's own, which it has given up, to the goroutine that tidies up.
func (l *Lease) forceUnknown(out ReleaseOutcome, err error) ReleaseOutcome {
	out.Kind, out.Err = ReleaseUnknown, err
	if l.strayCount() > 0 {
		l.releaseUnknown(err)
	}
	return out
}

// forced is one ForceRelease.
type forced struct {
	holder string
	out    ReleaseOutcome
	// sent is the grant that a write was sent to end.
	sent    *sign
	version Version
	last    error
}

// force reads the record and frees it if that is asked for.
func (l *Lease) force(ctx context.Context, f *forced) (done bool, err error) {
	s, err := l.fetch(ctx)
	if err != nil {
		return false, err
	}
	r := s.Record
	switch {
	case f.sent != nil && s.Version != f.version && (r.Holder != f.sent.holder || r.Token != f.sent.token):
		f.out.Kind = Released // an unanswered write, or somebody else's: that grant is over
		return true, nil
	case r.Holder == "":
		f.out = ReleaseOutcome{Kind: NotReleased, Record: r.clone()}
		return true, nil
	case f.holder != "" && r.Holder != f.holder:
		f.out = ReleaseOutcome{Kind: NotReleased, Record: r.clone(), Err: fmt.Errorf("%w: %q, not %q", ErrOtherHolder, r.Holder, f.holder)}
		return true, nil
	}
	silent, patience := l.silence(s)
	f.out.Record, f.out.Expired = r.clone(), patience != Infinite && silent >= patience
	seen := signOf(&r)
	f.sent, f.version = &seen, s.Version
	freed := l.touched(r)
	freed.Holder = ""
	if _, err = l.write(ctx, freed, s.Version); err == nil {
		f.out.Kind = Released
		return true, nil
	}
	return false, err
}

package lease

import (
	"context"
	"errors"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// errWentBack says that a record cannot be amended.
var errWentBack = errors.New("lease: the store holds less than was read from it before: nothing is added to that")

// Amend changes what stands beside the last verdict (Verdict.Left and Heirs; nothing else may change) by one conditional
// write. change is given a copy of the verdict as it is in the store, perhaps several times, and reports whether it is to be
// written. Holder, token and terms stay, and a holder's next heartbeat goes on from there. It returns the record as it
// stands in the store then, amended or not.
//
// Errors: those of a Read or a Write, and a store that went backwards; after one that does not wrap ErrRefused the change
// may have been written, or may be yet.
func (l *Lease) Amend(ctx context.Context, change func(*sbr.Verdict) bool) (Record, error) {
	return l.change(ctx, Amendment(change))
}

// Amendment is what Amend does.
func Amendment(change func(*sbr.Verdict) bool) ChangeOp {
	return ChangeOp{func(r Record, now time.Time) (Record, bool, error) {
		next := r.clone()
		switch {
		case r.Behind:
			return r, false, errWentBack
		case next.Verdict == nil || !change(next.Verdict):
			return r, false, nil
		case next.Holder == "":
			next = touched(next, now) // a holder's sign of life is its own
		}
		return next, true, nil
	}}
}

// Restore writes a verdict back into a store that went backwards (the record was deleted, or restored from a backup), by one
// conditional write, if the store holds an older one or none when it is read. It returns the record as it stands in the
// store then, restored or not: a verdict under the same token is never replaced. Nobody holds a restored lease; a grant of
// this Lease under a token that the store forgot is lost.
//
// v must have been written once. If there was a newer one, those who know it write that back in turn. Errors: those of a
// Read or a Write; after one that does not wrap ErrRefused the verdict may have been written.
func (l *Lease) Restore(ctx context.Context, v sbr.Verdict) (Record, error) {
	nonce := l.opts.Nonce()
	r, err := l.change(ctx, Restoration(v, nonce))
	if err == nil && r.Nonce == nonce {
		l.log.Warn("lease: wrote back what the store had lost", "token", r.Token)
	}
	return r, err
}

// Restoration is what Restore does, under a nonce that no other attempt of any owner uses.
func Restoration(v sbr.Verdict, nonce string) ChangeOp {
	return ChangeOp{func(r Record, now time.Time) (Record, bool, error) {
		if !r.Behind && highest(&r) >= v.Token {
			return r, false, nil
		}
		return Record{
			Token: max(r.Token, v.Token), Nonce: nonce, Renewed: wall(now), Acquired: wall(now),
			Verdict: newest(v.Clone(), r.Verdict),
		}, true, nil
	}}
}

// change writes what op makes of the record, by one conditional write, and tries again after a conflict or a write without
// an answer.
func (l *Lease) change(ctx context.Context, op ChangeOp) (Record, error) {
	f := l.do(ctx, op)
	return f.Snapshot.Record, f.Err
}

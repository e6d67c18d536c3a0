package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// errWentBack says that a record cannot be amended.
var errWentBack = errors.New("lease: the store holds less than was read from it before: nothing is added to that")

// Amend changes what stands beside the last verdict (Verdict.Left and Heirs; nothing else may change) by one
// conditional write. change is given a copy of the verdict as it is in the store, perhaps several times, and
// reports whether it is to be written. Holder, token and terms stay, and a holder's next heartbeat goes on
// from there. It returns the record as it stands in the store then, amended or not.
//
// Errors: those of a Read or a Write, and a store that went backwards; after an error that does not wrap
// ErrRefused the change may have been written, or may be yet.
func (l *Lease) Amend(ctx context.Context, change func(*sbr.Verdict) bool) (Record, error) {
	f := l.do(ctx, Amendment(change))
	return f.Snapshot.Record, f.Err
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

// Restore writes a verdict back into a store that went backwards (the record was deleted, or restored from a
// backup), by one conditional write, if the store holds an older one or none when it is read. It returns the
// record as it stands in the store then, restored or not: a verdict under the same token is never replaced.
// A restored lease has no holder; a grant of this Lease under a token that the store forgot is lost.
//
// v must have been written once. If there was a newer one, the members that know it write it back in turn.
// Errors: those of a Read or a Write; after an error that does not wrap ErrRefused the verdict may have been
// written.
func (l *Lease) Restore(ctx context.Context, v sbr.Verdict) (Record, error) {
	nonce := l.opts.Nonce()
	f := l.do(ctx, Restoration(v, nonce))
	r := f.Snapshot.Record
	if f.Err == nil && r.Nonce == nonce {
		l.log.Warn("lease: wrote back what the store had lost", "token", r.Token)
	}
	return r, f.Err
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

// ErrVerdictSpent is wrapped by Reset when the last verdict itself has the largest token: it cannot be kept.
var ErrVerdictSpent = errors.New("lease: the last verdict has the largest token, so that no later one can follow it")

// Reset repairs a record whose token cannot grow any more (ErrTokenSpent): an operator's act, with one
// conditional write. The token becomes that of the last verdict, which stays, and the lease has no holder. A
// sound record is left as it is. forget drops the verdict as well, of a sound record, too: the next member
// that starts is free; then the token grows by one, where it can.
//
// It is for a lease that no Lease is open on: a Lease that has seen the larger token writes it back, or goes
// on by a verdict that was forgotten. It returns the record as it was and as it is then, which are the same
// where nothing had to be done. Errors: ErrVerdictSpent, those of a Read and a Write; after one of Write that
// wraps neither ErrConflict nor ErrRefused the record may have been written.
func Reset(ctx context.Context, s Store, forget bool) (before, after Record, err error) {
	const tries = 3
	for n := 0; ; n++ {
		snap, err := s.Read(ctx)
		if err != nil {
			return before, before, err
		}
		before = snap.Record
		after, err := Mended(&before, forget)
		if err != nil || after.Token == before.Token && (after.Verdict == nil) == (before.Verdict == nil) {
			return before, before, err
		}
		after.Nonce = rand.Text()
		after.Renewed = wall(time.Now())
		after.Acquired = after.Renewed
		if _, err = s.Write(ctx, after, snap.Version); err == nil {
			return before, after, nil
		}
		if !errors.Is(err, ErrConflict) || n == tries {
			return before, before, err
		}
	}
}

// Mended returns what Reset makes of a record: r itself where nothing has to be done. Errors:
// ErrVerdictSpent, and a MovedError.
func Mended(r *Record, forget bool) (Record, error) {
	m := r.clone()
	if err := r.away(); err != nil {
		return m, err
	}
	verdict := uint64(0)
	if r.Verdict != nil {
		verdict = r.Verdict.Token
	}
	switch {
	case forget && highest(r) < MaxToken:
		m = Record{Token: highest(r) + 1}
		if highest(r) == 0 {
			m.Token = 0 // there is nothing to forget
		}
	case forget:
		m = Record{}
		switch {
		case r.Token < MaxToken:
			m.Token = r.Token + 1
		case 0 < verdict && verdict < MaxToken:
			m.Token = verdict + 1 // beyond what state folders remember, or the next start would write the verdict back
		}
	case highest(r) < MaxToken:
	case verdict >= MaxToken:
		return m, fmt.Errorf("%w: it is %d, and the largest is %d", ErrVerdictSpent, verdict, MaxToken)
	default:
		m.Token, m.Holder, m.TTL = verdict, "", 0
	}
	return m, nil
}

package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// ErrVerdictSpent is wrapped by Reset when the last verdict itself has the largest token: it cannot be kept.
var ErrVerdictSpent = errors.New("lease: the last verdict has the largest token, so that no later one can follow it")

// Reset repairs a record whose token cannot grow any more (ErrTokenSpent): an operator's act, with one conditional write. The token
// becomes that of the last verdict, which stays, and nobody holds the lease. A sound record is left as it is. forget drops the
// verdict as well, of a sound record, too: whoever starts next is free; then the token grows by one, where it can.
//
// It is for a lease that no Lease is open on: one that has seen the larger token writes it back, or goes on by a verdict that was
// forgotten. It returns the record as it was and as it is then, which are the same where nothing had to be done.
// Errors: ErrVerdictSpent, those of a Read and a Write; after one of Write that wraps neither ErrConflict nor ErrRefused the record may
// have been written.
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

// Mended returns what Reset makes of a record: r itself where nothing has to be done. Error: ErrVerdictSpent.
func Mended(r *Record, forget bool) (Record, error) {
	m := r.clone()
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

package lease

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Moved is the mark that a record carries whose lease is in another store now.
type Moved struct {
	// To says in words where the lease is, for example postgres:sbr_lease/payments-sbr.
	To string `json:"to"`
	// Store is the Identity of that store.
	Store string `json:"store"`
	// At is when it moved, by the wall clock of the mover.
	At time.Time `json:"at"`
	// Reserved says that the lease has not been here yet: a move to here has begun.
	Reserved bool `json:"reserved,omitempty"`
}

// Away reports whether there is a mark.
func (m Moved) Away() bool { return m.Store != "" }

// is reports whether m names the lease o. An Identity may be that of many leases (a namespace of Kubernetes),
// so both count.
func (m Moved) is(o Moved) bool { return m.Store == o.Store && m.To == o.To }

// MovedError is why nothing can be done with a lease here. It wraps ErrRefused.
type MovedError struct{ Moved Moved }

// Error says where the lease is.
func (e *MovedError) Error() string {
	return fmt.Sprintf("lease: it has moved to %s: use the lease section that names that store", e.Moved.To)
}

// Unwrap returns ErrRefused.
func (e *MovedError) Unwrap() error { return ErrRefused }

// away is a MovedError for a record with a mark.
func (r *Record) away() error {
	if !r.Moved.Away() {
		return nil
	}
	return &MovedError{r.Moved}
}

// Place is a store, and how people call it: always by the same name, which a mark keeps.
type Place struct {
	Store Store
	Name  string
}

// ErrNotMoved is wrapped by Move when it must not go on: the records are not as a move finds or leaves them.
var ErrNotMoved = errors.New("lease: not moved")

// Move moves a lease, with its token, holder and verdict, to another store, by three conditional writes:
//
//  1. reserve: the new record says that the lease is in the old store (Record.Moved, Reserved);
//  2. seal: the old record says that the lease is in the new store, and stays as it is but for that;
//  3. open: the new record becomes the sealed one, without the mark.
//
// It can be interrupted anywhere, and be called again until it returns no error; then it returns the record
// as it is in the new store. A lease moves back in the same way. Both stores must be able to say which one
// they are (Identified).
//
// Why no two sides win, whatever members use whichever of the stores while it moves (promise S1):
//
//   - A Lease never learns the version of a record with a mark: neither a read nor a watch brings it one, and
//     every write is conditional. So only Move writes such a record; no verdict, heartbeat, correction
//     (Restore) or leave in peace (Amend) does. What was sent on an older version meets its conflict.
//   - At every moment at most one of the two records is without a mark. The new one has it until step 3,
//     which is written on the version of a reservation that was read before the seal was. So the old one was
//     sealed while the new one was reserved; and it cannot have been opened since, which takes a seal of the
//     new one, not a reservation. That holds for any number of moves at once, in both directions.
//   - The new record begins as the old one ended: the seal is one conditional write on the version that was
//     read, so a verdict is either before it, and copied, or refused. The chain of verdicts goes on in one
//     line, and tokens go on growing.
//   - Before step 1 the new store is as any wrong one: a member that uses it is suspended by the others'
//     (rule 20), and a verdict written there makes step 1 fail.
//
// Why it has one holder (S3): the holder is copied. It confirms no heartbeat after the seal, and trusts its
// last one for less than the time for which the readers of the copy wait, from when they first see it, which
// is after the seal.
//
// What it costs: between steps 2 and 3 no member can write a verdict, and after it a member that uses the old
// store cannot; another one of its side can. A member does not start on a record with a mark. Where a hand,
// or a backup, takes the seal away, all this is void: keep the old record until no member is configured with
// it any more.
//
// Errors: ErrNotMoved, for certain with nothing more written; those of a Read, a Write or an Identity: call
// it again.
func Move(ctx context.Context, from, to Place) (Record, error) {
	source, err := from.mark(ctx)
	if err != nil {
		return Record{}, err
	}
	target, err := to.mark(ctx)
	if err != nil {
		return Record{}, err
	}
	if source.Store == target.Store {
		return Record{}, fmt.Errorf("%w: %s and %s are one store", ErrNotMoved, from.Name, to.Name)
	}
	const tries = 8 // three writes, and a holder's heartbeats between them
	for range tries {
		var old, fresh Snapshot
		if fresh, err = to.Store.Read(ctx); err != nil { // before the old one: see above
			return Record{}, fmt.Errorf("%s: %w", to.Name, err)
		}
		if old, err = from.Store.Read(ctx); err != nil {
			return Record{}, fmt.Errorf("%s: %w", from.Name, err)
		}
		step, err := nextMove(&old.Record, &fresh.Record, source, target)
		switch {
		case err != nil:
			return Record{}, err
		case step.done:
			return fresh.Record, nil
		}
		place, prev := to, fresh.Version
		if step.seal {
			place, prev = from, old.Version
		}
		if _, err = place.Store.Write(ctx, step.write, prev); err != nil && !errors.Is(err, ErrConflict) {
			return Record{}, fmt.Errorf("%s: %w", place.Name, err)
		}
	}
	return Record{}, fmt.Errorf("the records change too often: %w", ErrConflict)
}

// moveStep is the next write of a move: into the old store, or into the new one.
type moveStep struct {
	done, seal bool
	write      Record
}

// nextMove is what is to be done, as the two records are; the new one was read first. No record is the zero
// one.
func nextMove(old, fresh *Record, source, target Moved) (moveStep, error) {
	no := func(format string, args ...any) (moveStep, error) {
		return moveStep{}, fmt.Errorf("%w: "+format, append([]any{ErrNotMoved}, args...)...)
	}
	reserved := fresh.Moved.Reserved
	switch {
	case fresh.Moved.Away() && !fresh.Moved.is(source):
		return no("the lease of %s has itself moved to %s", target.To, fresh.Moved.To)
	case old.Moved.Away() && !old.Moved.is(target):
		return no("it has moved from %s to %s", source.To, old.Moved.To)
	case old.Moved.Away() && !fresh.Moved.Away() && (fresh.used() || !old.used()):
		return moveStep{done: true}, nil
	case old.Moved.Reserved && !reserved: // two moves of an unused lease have met: either may end
		return no("it is on its way from %s to %s: end that move first", target.To, source.To)
	case !reserved && !fresh.Moved.Away() && fresh.used():
		return no("%s has a record of its own (token %d): is it in use? Delete it if it never was", target.To,
			fresh.Token)
	case !reserved: // no record, an unused one, or one whose lease has come here
		source.Reserved = true
		return moveStep{write: Record{Moved: source}}, nil
	case old.Moved.Away() && !old.Moved.Reserved:
		opened := old.clone()
		opened.Moved = Moved{}
		return moveStep{write: opened}, nil
	default:
		sealed := old.clone()
		sealed.Moved = target
		return moveStep{write: sealed, seal: true}, nil
	}
}

// used reports whether the lease was ever held, or has a verdict.
func (r *Record) used() bool { return highest(r) > 0 || r.Holder != "" }

// mark says that a lease is at p.
func (p Place) mark(ctx context.Context) (Moved, error) {
	if l, limited := p.Store.(Limiter); limited {
		s := DefaultSettings()
		if w, err := l.Window(s); err != nil || w != s.Window() {
			return Moved{}, fmt.Errorf("%w: %s is shared with programs that do not know the mark of a lease that has moved", ErrNotMoved, p.Name)
		}
	}
	i, ok := p.Store.(Identified)
	if !ok {
		return Moved{}, fmt.Errorf("%w: stores as %s do not tell which one they are", ErrNotMoved, p.Name)
	}
	id, err := i.Identity(ctx)
	if err != nil {
		return Moved{}, fmt.Errorf("which store %s is: %w", p.Name, err)
	}
	return Moved{To: p.Name, Store: id, At: wall(time.Now())}, nil
}

package lease

import (
	"context"
	"errors"
	"fmt"
)

// Errors of a Lease. Those of a Store are in store.go.
var (
	// ErrLost is wrapped by Grant.Err when the grant has ended.
	ErrLost = errors.New("lease: lost")
	// ErrReleased is the ErrLost of a grant that this owner has released.
	ErrReleased = fmt.Errorf("%w: released by its owner", ErrLost)
	// ErrClosed is wrapped when the Lease was closed.
	ErrClosed = errors.New("lease: closed")
	// ErrTooLate is wrapped by the error of an Acquire when the store granted, but so late that the grant
	// could run out before it is used. The grant is undone.
	ErrTooLate = errors.New("lease: granted too late to be of use")
	// ErrTokenSpent is wrapped by the error of an Acquire when the record's token is MaxToken, so that no
	// grant can be told from the one before, and by whatever reads a token beyond it. Only a poisoned record
	// has such a token; Reset is the way out.
	ErrTokenSpent = errors.New("lease: the token in the record cannot grow any more")
	// ErrHeld is what a HeldError is: for certain nothing was granted.
	ErrHeld = errors.New("lease: held")
	// ErrInUse is wrapped by New when the record serves another use in this process: see Options.Use.
	ErrInUse = errors.New("lease: the record is in use")
	// ErrNotHeld is wrapped by the error of a Release when there was nothing to release.
	ErrNotHeld = errors.New("lease: not held")
	// ErrOtherHolder is the ErrNotHeld of a ForceRelease that names a party that does not hold the lease.
	ErrOtherHolder = fmt.Errorf("%w: somebody else holds it", ErrNotHeld)
	// ErrUnknownImplementation is wrapped by Open when no implementation is registered under the key, or the
	// key is empty.
	ErrUnknownImplementation = errors.New("lease: unknown implementation")
)

// timeoutError ends a request or an operation that took too long. It is a context.DeadlineExceeded by
// whichever clock.
type timeoutError struct{}

func (timeoutError) Error() string { return "lease: no answer in time" }
func (timeoutError) Unwrap() error { return context.DeadlineExceeded }
func (timeoutError) Timeout() bool { return true }

var errTimeout = timeoutError{}

// because puts the reason for which ctx ended before an error that says only that it did.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	if err == context.Canceled || err == context.DeadlineExceeded { //nolint:errorlint // the bare ones carry no more
		return cause
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

// telling is the failure that says more of two: a request that ran out of time says nothing of why the ones
// before it failed.
func telling(last, err error) error {
	if last != nil && errors.Is(err, context.DeadlineExceeded) {
		return last
	}
	return err
}

// following is err with the failure before it, which often has the cause.
func following(err, last error) error {
	if last == nil || errors.Is(err, last) {
		return err
	}
	return fmt.Errorf("%w; before that: %w", err, last)
}

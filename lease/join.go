package lease

import (
	"context"
	"errors"
)

// joint is one attempt for all plain Acquires that were called before it began. It is left before its first read, so that
// nobody gets an answer that is older than the question.
type joint struct {
	done chan struct{}
	out  Outcome
}

// jointly runs a plain attempt, or waits for one that has not begun yet.
func (l *Lease) jointly(ctx context.Context, a *attempt) Outcome {
	for {
		j, leads := l.join()
		if leads {
			defer close(j.done)
			j.out = Outcome{Kind: Unknown, Err: errors.New("lease: the attempt panicked")} // until it returns
			j.out = l.attempt(ctx, a, j)
			return j.out
		}
		select {
		case <-j.done:
		case <-ctx.Done():
			return Outcome{Kind: Unknown, Err: context.Cause(ctx)}
		}
		out := j.out
		out.Record = out.Record.clone()
		switch {
		case out.Kind == Held, out.Kind == Unknown && final(out.Err):
			return out
		case out.Kind == Granted:
			if out, ok := l.present(a); ok {
				return out
			}
		}
		// Whoever led ran out of time, or the grant is gone again: this caller has time left for another try.
		if err := context.Cause(ctx); err != nil {
			return Outcome{Kind: Unknown, Err: err}
		}
	}
}

// final reports whether another try would end the same way.
func final(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrTokenSpent) || errors.Is(err, ErrClosed)
}

// join returns the attempt that waits for its turn. If there is none, the caller leads a new one.
func (l *Lease) join() (j *joint, leads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil {
		return l.next, false
	}
	l.next = &joint{done: make(chan struct{})}
	return l.next, true
}

// begun closes the attempt to further callers.
func (l *Lease) begun(j *joint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j != nil && l.next == j {
		l.next = nil
	}
}

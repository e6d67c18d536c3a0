package file

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

const (
	// lockMode: whoever can open the lock file can lock it, and so stop all parties. The record is for all to read, this is not.
	lockMode = 0o600
	// lockRetry is the time between two tries for the lock. It is held for two fsyncs, some milliseconds.
	lockRetry = 2 * time.Millisecond
)

// heldLock is the lock of all writers. The kernel frees it when its process ends, however it ends.
type heldLock struct {
	path string
	f    *flock.Flock
}

func (s *Store) lockPath() string { return s.path + ".lock" }

// lock waits for the lock until ctx ends.
func (s *Store) lock(ctx context.Context) (*heldLock, error) {
	s.waiting.Store(true)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		f := flock.New(s.lockPath(), flock.SetFlag(os.O_CREATE|os.O_RDONLY|openFlags), flock.SetPermissions(lockMode))
		ok, err := f.TryLockContext(ctx, lockRetry)
		switch {
		case ctx.Err() != nil && !ok:
			return nil, fmt.Errorf("%w: %w", errLockHeld, context.Cause(ctx))
		case err != nil:
			return nil, err
		}
		l := &heldLock{path: s.lockPath(), f: f}
		stands, err := l.stands()
		if stands {
			s.waiting.Store(false)
			return l, nil
		}
		l.release()
		if err != nil {
			return nil, err
		}
	}
}

// stands reports whether the lock file is still the one that is locked. If somebody has deleted it the lock excludes nobody who comes
// later.
func (l *heldLock) stands() (bool, error) {
	mine, err := l.f.Stat()
	if err != nil {
		return false, err
	}
	if !mine.Mode().IsRegular() {
		return false, fmt.Errorf("%s: %w", l.path, errNotRegular)
	}
	present, err := os.Lstat(l.path)
	if err != nil {
		return false, nil //nolint:nilerror // deleted: that is the answer
	}
	return os.SameFile(mine, present), nil
}

// interrupted is the error of an operation that ended with its context before it could say itself what it was waiting for.
func (s *Store) interrupted(cause error) error {
	if s.waiting.Load() {
		return fmt.Errorf("%w: %w", errLockHeld, cause)
	}
	return cause
}

func (l *heldLock) release() { _ = l.f.Unlock() }

package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/serf-sbr/serf-sbr/lease"
)

// recordMode lets users that may enter the directory read the record; an operator's stricter mode is kept.
const recordMode = 0o644

// Write implements lease.Store. Under the lock it compares, writes a temporary file, syncs it, puts it in
// place of the record, and syncs the directory. An error wraps lease.ErrConflict or lease.ErrRefused unless
// the replacement had begun; then it is unknown.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	text, err := encode(r)
	if err != nil {
		return "", s.refused("write", err)
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	w := &write{store: s, text: text, prev: prev}
	version, err := await(ctx, s.writing, func() (lease.Version, error) { return w.run(ctx) })
	switch u, is := errors.AsType[unheard](err); {
	case !is:
		return version, err
	case w.abandon():
		return "", s.refused("write", s.interrupted(u.error)) // from here on the replacement cannot begin
	default:
		return "", s.unknown("write", u.error)
	}
}

var errUnknown = errors.New("outcome unknown")

// unknown is for what may have been written.
func (s *Store) unknown(action string, err error) error {
	return s.fail(action, fmt.Errorf("%w: %w", errUnknown, err))
}

// write is one Write at work.
type write struct {
	store *Store
	text  []byte
	prev  lease.Version
	// fate is decided once: by the write that begins to replace the file, or by the caller that does not wait
	// any longer.
	fate atomic.Int32
}

const (
	begun     int32 = 1
	abandoned int32 = 2
)

// begin and abandon report whether they were first.
func (w *write) begin() bool   { return w.fate.CompareAndSwap(0, begun) }
func (w *write) abandon() bool { return w.fate.CompareAndSwap(0, abandoned) }

func (w *write) run(ctx context.Context) (lease.Version, error) {
	s := w.store
	s.waiting.Store(false)
	if err := s.checkDir(); err != nil { // before a lock file is made in the wrong place
		return "", s.refused("write", err)
	}
	for {
		lock, err := s.lock(ctx)
		if err != nil {
			return "", s.refused("lock", err)
		}
		version, err := w.locked(ctx, lock)
		lock.release()
		if !errors.Is(err, errLockGone) {
			return version, err
		}
	}
}

// locked is the whole critical section.
func (w *write) locked(ctx context.Context, lock *heldLock) (lease.Version, error) {
	s := w.store
	before, err := s.load()
	if err != nil {
		return "", s.refused("write", err)
	}
	if before.version() != w.prev {
		return "", s.conflict()
	}
	s.tidy()
	temp, err := s.stage(w.text, before.mode)
	if err != nil {
		return "", s.refused("write a temporary file", err)
	}
	defer func() { _ = os.Remove(temp) }() // gone already if it was put in place
	if err := w.last(ctx, lock, before); err != nil {
		return "", err
	}
	if err := s.system.Rename(temp, s.path); err != nil {
		if notRenamed(err) {
			return "", s.refused("put the temporary file in place", err)
		}
		return "", s.unknown("put the temporary file in place", err)
	}
	if err := s.system.SyncDir(s.dir); err != nil {
		return "", s.unknown("sync the directory", err)
	}
	after, err := s.load()
	if err == nil && string(after.text) != string(w.text) {
		err = errOvertaken
	}
	if err != nil {
		return "", s.unknown("read back", err)
	}
	return after.version(), nil
}

// last looks once more whether everything still stands, now that the slow part is over. What neither the lock
// nor ctx keeps out (a hand) can only come in the microseconds from here to the replacement.
func (w *write) last(ctx context.Context, lock *heldLock, before content) error {
	s := w.store
	stands, err := lock.stands()
	if err != nil {
		return s.refused("lock", err)
	}
	if !stands {
		return errLockGone
	}
	now, err := s.load()
	if err != nil {
		return s.refused("write", err)
	}
	if now.version() != before.version() {
		return s.conflict()
	}
	if ctx.Err() != nil {
		return s.refused("write", context.Cause(ctx))
	}
	if !w.begin() {
		return s.refused("write", context.Canceled)
	}
	return nil
}

func (s *Store) conflict() error { return fmt.Errorf("lease file %s: %w", s.path, lease.ErrConflict) }

// tempName returns a new name for a temporary file. Random, so that not even two writers without a working
// lock share one.
func (s *Store) tempName() string {
	return filepath.Join(s.dir, "."+filepath.Base(s.path)+"."+rand.Text()+tempSuffix)
}

// stage writes text to a temporary file, down to the disk, and returns its path; a failed file is removed.
// mode 0: the default.
func (s *Store) stage(text []byte, mode os.FileMode) (string, error) {
	path := s.tempName()
	if err := s.system.Stage(path, text, os.O_EXCL, recordMode, mode); err != nil {
		_ = os.Remove(path)
		return "", err
	}
	return path, nil
}

const (
	// lockMode: a process that can open the lock file can lock it, and so stop all parties. The record is for
	// all to read, this is not.
	lockMode = 0o600
	// lockRetry is the time between two tries for the lock. It is held for two fsyncs, some milliseconds.
	lockRetry = 2 * time.Millisecond
)

// heldLock is the lock of all writers. The kernel frees it when its process ends, however it ends.
type heldLock struct{ *flock.Flock }

func (s *Store) lockPath() string { return s.path + ".lock" }

// lock waits for the lock until ctx ends.
func (s *Store) lock(ctx context.Context) (*heldLock, error) {
	s.waiting.Store(true)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		flags := os.O_CREATE | os.O_RDONLY | openFlags
		l := &heldLock{flock.New(s.lockPath(), flock.SetFlag(flags), flock.SetPermissions(lockMode))}
		ok, err := l.TryLockContext(ctx, lockRetry)
		switch {
		case ctx.Err() != nil && !ok:
			return nil, fmt.Errorf("%w: %w", errLockHeld, context.Cause(ctx))
		case err != nil:
			return nil, err
		}
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

// stands reports whether the lock file is still the locked one. If it was deleted the lock does not exclude
// later writers.
func (l *heldLock) stands() (bool, error) {
	mine, err := l.Stat()
	if err != nil {
		return false, err
	}
	if !mine.Mode().IsRegular() {
		return false, fmt.Errorf("%s: %w", l, errNotRegular)
	}
	present, err := os.Lstat(l.Path())
	if err != nil {
		return false, nil //nolint:nilerror // deleted: that is the answer
	}
	return os.SameFile(mine, present), nil
}

// interrupted is the error of an operation that ended with its context before it could say itself what it was
// waiting for.
func (s *Store) interrupted(cause error) error {
	if s.waiting.Load() {
		return fmt.Errorf("%w: %w", errLockHeld, cause)
	}
	return cause
}

func (l *heldLock) release() { _ = l.Unlock() }

const (
	tempSuffix = ".tmp"
	// randomLength is that of rand.Text.
	randomLength = 26
	// leftoverAge is how old a temporary file must be to count as left behind. A live one is as old as two
	// fsyncs.
	leftoverAge = time.Minute
)

// tidy removes what killed writers left behind: temporary files of this very record, and only old ones.
// Called under the lock, at most once a minute. What goes wrong is left to the next time.
func (s *Store) tidy() {
	now := time.Now()
	if now.Sub(s.tidied) < leftoverAge {
		return
	}
	s.tidied = now
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !s.isTemp(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
}

// isTemp reports whether tempName returns such a name.
func (s *Store) isTemp(name string) bool {
	random, ok := strings.CutPrefix(name, "."+filepath.Base(s.path)+".")
	if !ok {
		return false
	}
	random, ok = strings.CutSuffix(random, tempSuffix)
	return ok && len(random) == randomLength && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

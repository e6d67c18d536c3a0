package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/serf-sbr/serf-sbr/lease"
)

// recordMode lets everybody who may enter the directory read the record; an operator's stricter mode is kept.
const recordMode = 0o644

// Write implements lease.Store. Under the lock it compares, writes a temporary file, syncs it, puts it in place of the record, and
// syncs the directory. An error wraps lease.ErrConflict or lease.ErrRefused unless the replacement had begun; then it is unknown.
func (s *Store) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	text, err := encode(r)
	if err != nil {
		return "", s.refused("write", err)
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	w := &write{store: s, text: text, prev: prev}
	a, err := await(ctx, s.writing, func() answer { return w.run(ctx) })
	switch {
	case err == nil:
		return a.snap.Version, a.err
	case w.abandon():
		return "", s.refused("write", s.interrupted(err)) // ctx ended first, and from here on the replacement cannot begin
	default:
		return "", s.unknown("write", err)
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
	// fate is decided once: by the write that begins to replace the file, or by the caller who does not wait any longer.
	fate atomic.Int32
}

const (
	begun     int32 = 1
	abandoned int32 = 2
)

// begin and abandon report whether they were first.
func (w *write) begin() bool   { return w.fate.CompareAndSwap(0, begun) }
func (w *write) abandon() bool { return w.fate.CompareAndSwap(0, abandoned) }

func (w *write) run(ctx context.Context) answer {
	s := w.store
	s.waiting.Store(false)
	if err := s.checkDir(); err != nil { // before a lock file is made in the wrong place
		return answer{err: s.refused("write", err)}
	}
	for {
		lock, err := s.lock(ctx)
		if err != nil {
			return answer{err: s.refused("lock", err)}
		}
		version, err := w.locked(ctx, lock)
		lock.release()
		if !errors.Is(err, errLockGone) {
			return answer{lease.Snapshot{Version: version}, err}
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
	if err := s.system.rename(temp, s.path); err != nil {
		if notRenamed(err) {
			return "", s.refused("put the temporary file in place", err)
		}
		return "", s.unknown("put the temporary file in place", err)
	}
	if err := s.system.syncDir(s.dir); err != nil {
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

// last looks once more whether everything still stands, now that the slow part is over. What neither the lock nor ctx keeps out (a
// hand) can only come in the microseconds from here to the replacement.
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

// tempName returns a new name for a temporary file. Random, so that not even two writers without a working lock share one.
func (s *Store) tempName() string {
	return filepath.Join(s.dir, "."+filepath.Base(s.path)+"."+rand.Text()+tempSuffix)
}

// stage writes text to a temporary file, down to the disk, and returns its path; nothing stays of one that failed. mode 0: the default.
func (s *Store) stage(text []byte, mode os.FileMode) (string, error) {
	path := s.tempName()
	f, err := s.system.create(path, recordMode)
	if err != nil {
		return "", err
	}
	if mode != 0 {
		err = f.Chmod(mode) // past the umask
	}
	if err == nil {
		_, err = f.Write(text)
	}
	if err == nil {
		err = s.system.syncFile(f)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = os.Remove(path)
		return "", err
	}
	return path, nil
}

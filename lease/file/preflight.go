package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Preflight tries what the store will do: it reads the record, takes the lock, writes and replaces a file
// under a name of its own, and waits for the notification of that. It leaves the record alone, and the lock
// file behind. The error lists every problem on a line of its own, each with what to do about it. It wraps
// lease.ErrRefused where the store will not work as things are.
func (s *Store) Preflight(ctx context.Context) error {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	problems, err := await(ctx, s.writing, func() ([]error, error) { return s.probe(ctx), nil })
	if err != nil {
		return s.refused("preflight", s.interrupted(err))
	}
	return errors.Join(problems...)
}

func (s *Store) probe(ctx context.Context) (problems []error) {
	s.waiting.Store(false)
	if err := s.checkDir(); err != nil {
		return []error{s.refused("preflight", err)} // everything else would fail for the same reason
	}
	if _, err := s.read(); err != nil {
		problems = append(problems, s.failRead(err))
	}
	if !mayReplace(s.dir, s.path) {
		err := fmt.Errorf("the record belongs to another user, and the directory is sticky: %w", fs.ErrPermission)
		problems = append(problems, s.refused("write", err))
	}
	n, err := s.system.notify(s.dir)
	if err != nil {
		problems = append(problems, s.fail("watch",
			fmt.Errorf("%w: %w; changes are seen up to 1s late", errNotifyUnavailable, err)))
	} else {
		defer func() { _ = n.Close() }()
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return append(problems, s.refused("lock", err))
	}
	defer lock.release()
	name, err := s.tryReplace()
	if name != "" {
		defer func() { _ = os.Remove(name) }()
	}
	if err != nil {
		return append(problems, s.refused("write", err))
	}
	if n != nil {
		if err := hears(ctx, n, name); err != nil {
			problems = append(problems, s.fail("watch", err))
		}
	}
	return problems
}

// tryReplace replaces one scratch file by another one, and returns the name of what it leaves.
func (s *Store) tryReplace() (name string, err error) {
	name, err = s.stage([]byte("preflight\n"), 0)
	if err != nil {
		return "", err
	}
	other, err := s.stage([]byte("preflight\n"), 0)
	if err != nil {
		return name, err
	}
	if err := s.system.Rename(other, name); err != nil {
		_ = os.Remove(other)
		return name, err
	}
	return name, s.system.SyncDir(s.dir)
}

// hears waits until n tells of name.
func hears(ctx context.Context, n *fsnotify.Watcher, name string) error {
	const patience = time.Second
	timer := time.After(patience)
	for {
		select {
		case e := <-n.Events:
			if e.Name == name {
				return nil
			}
		case err := <-n.Errors:
			return err
		case <-timer:
			return fmt.Errorf("%w within %s", errNotifyUnavailable, patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

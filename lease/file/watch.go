package file

import (
	"context"
	"fmt"

	"github.com/fsnotify/fsnotify"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Watch implements lease.Watcher: it reads after each notification of the operating system. Notifications are
// for the directory, because the file is replaced. The stream ends with that directory, at a state that
// cannot be read, and where notifications are not to be had (a limit was reached).
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	n, err := s.notifier(ctx) // before the first read, so that nothing happens unseen in between
	if err != nil {
		return err
	}
	defer func() { _ = n.Close() }()
	var last lease.Version
	for first := true; ; {
		got, err := s.Read(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case first || got.Version != last:
			first, last = false, got.Version
			fn(got)
		}
		if goesOn, err := s.wait(ctx, n); !goesOn {
			return err
		}
	}
}

// notifier watches the directory. No context reaches into the call that does so; it may end unheard.
func (s *Store) notifier(ctx context.Context) (*fsnotify.Watcher, error) {
	return await(ctx, s.reading, func() (*fsnotify.Watcher, error) {
		if err := s.checkDir(); err != nil {
			return nil, s.failRead(err)
		}
		n, err := s.system.notify(s.dir)
		if err != nil {
			return nil, s.fail("watch", fmt.Errorf("%w: %w", errNotifyUnavailable, err))
		}
		if ctx.Err() != nil { // the caller does not wait any more
			_ = n.Close()
		}
		return n, nil
	})
}

// wait returns true when it is time to read. Else the stream has ended: err says why, nil if the directory is
// another one now.
func (s *Store) wait(ctx context.Context, n *fsnotify.Watcher) (goesOn bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case e, open := <-n.Events:
			if !open || e.Name == s.dir && e.Has(fsnotify.Remove|fsnotify.Rename) {
				return false, nil
			}
			if e.Name == s.path || e.Name == s.dir {
				return true, nil
			}
		case err := <-n.Errors: // too many events at once, most likely: some were lost
			s.log.DebugContext(ctx, "watching the folder", "error", err)
			return true, nil
		}
	}
}

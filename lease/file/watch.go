package file

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Watch implements lease.Watcher: it reads after each notification of the operating system, and every PollInterval whether or not
// there was one. Notifications are for the directory, because the file is replaced; where they are not to be had (a limit was
// reached) or the directory is away, the reads alone do it, and it tries again each time. A state that cannot be read is logged and
// passed over.
//
// It returns an error that wraps lease.ErrRefused only on a network file system.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	w := &watcher{store: s, fn: fn}
	defer w.disarm()
	tick := time.NewTicker(s.poll)
	defer tick.Stop()
	for {
		w.arm(ctx) // first, so that nothing happens unseen between the read and the notification
		if err := w.look(ctx); err != nil {
			return err
		}
		if !w.wait(ctx, tick.C) {
			return context.Cause(ctx)
		}
	}
}

type watcher struct {
	store *Store
	fn    func(lease.Snapshot)

	// notifier tells of changes in the directory dir; nil where there is none.
	notifier *fsnotify.Watcher
	dir      os.FileInfo

	seen bool
	last lease.Version
	// failure and blind are the last errors of a read and of arm, so that each is logged once.
	failure, blind string
}

// armed is what there is to watch: a directory, and a new notifier for it unless the present one will do.
type armed struct {
	dir      os.FileInfo
	notifier *fsnotify.Watcher
	// away: there is no directory. blind: there is, but no notifier.
	away, blind error
}

// arm sees to it that the directory that is there now is the one being watched.
func (w *watcher) arm(ctx context.Context) {
	s := w.store
	if w.notifier != nil && len(w.notifier.WatchList()) == 0 {
		w.disarm() // the operating system has ended it
	}
	present := w.dir
	a, err := await(ctx, s.reading, func() armed { return s.armed(ctx, present) })
	if err != nil || (a.notifier == nil && a.away == nil && a.blind == nil) {
		return // ctx has ended, or all is as it was
	}
	w.disarm()
	w.notifier, w.dir = a.notifier, a.dir
	switch {
	case a.blind != nil && w.blind != a.blind.Error():
		w.blind = a.blind.Error()
		s.log.Warn("lease file: no notifications of changes, looking at it instead (are fs.inotify.max_user_instances or max_user_watches reached?)",
			slog.String("path", s.path), slog.Any("error", a.blind), slog.Duration("every", s.poll))
	case a.notifier != nil && w.blind != "":
		w.blind = ""
		s.log.Info("lease file: notifications of changes again", slog.String("path", s.path))
	}
}

func (s *Store) armed(ctx context.Context, present os.FileInfo) armed {
	dir, err := os.Stat(s.dir)
	if err != nil {
		return armed{away: err} // the read says what is wrong
	}
	if present != nil && os.SameFile(present, dir) {
		return armed{dir: present}
	}
	n, err := s.system.notify(s.dir)
	if err != nil {
		return armed{blind: err}
	}
	if ctx.Err() != nil { // nobody waits for it any more
		_ = n.Close()
		return armed{away: ctx.Err()}
	}
	return armed{dir: dir, notifier: n}
}

func (w *watcher) disarm() {
	if w.notifier != nil {
		_ = w.notifier.Close()
		w.notifier, w.dir = nil, nil
	}
}

// look reads and tells, if that is news.
func (w *watcher) look(ctx context.Context) error {
	s := w.store
	got, err := s.Read(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrNetworkFileSystem):
		return err
	case err != nil:
		if w.failure != err.Error() {
			w.failure = err.Error()
			s.log.Error("lease file: passed over a state that cannot be read", slog.Any("error", err))
		}
		return nil
	}
	if w.failure != "" {
		w.failure = ""
		s.log.Info("lease file: readable again", slog.String("path", s.path))
	}
	if !w.seen || got.Version != w.last {
		w.seen, w.last = true, got.Version
		w.fn(got)
	}
	return nil
}

// wait returns when it is time to look, false when ctx has ended.
func (w *watcher) wait(ctx context.Context, tick <-chan time.Time) bool {
	var (
		events chan fsnotify.Event
		errs   chan error
	)
	if w.notifier != nil {
		events, errs = w.notifier.Events, w.notifier.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case e, open := <-events:
			if !open {
				w.disarm()
				return true
			}
			if e.Name == w.store.dir && e.Has(fsnotify.Remove|fsnotify.Rename) {
				w.disarm() // the operating system, or fsnotify, has ended it, even if the same directory comes back
				return true
			}
			if e.Name == w.store.path || e.Name == w.store.dir {
				return true
			}
		case err := <-errs: // too many events at once, most likely: some were lost
			w.store.log.Debug("lease file: notifications were lost", slog.String("path", w.store.path), slog.Any("error", err))
			return true
		}
	}
}

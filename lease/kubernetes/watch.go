package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Reasons to open a stream again.
var (
	errStreamEnded = errors.New("the watch ended")
	// errDeaf: a read found what the stream had not told. A stream that was opened at a version of the future, which a restored
	// backup makes of a version of yesterday, is open, healthy and silent.
	errDeaf = errors.New("the watch is behind the store")
)

// Watch implements lease.Watcher with one stream and a read beside it: after each opening, because a stream says nothing of a
// lease that does not exist, and every PollInterval or two, because an open stream proves nothing. A state that cannot be decoded is
// logged and skipped.
//
// It returns an error that wraps lease.ErrRefused only if the very first opening is forbidden. Rights that are withdrawn later may
// come back: then it goes on trying, less and less often down to PollInterval, and reads each time.
func (s *Store) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	w := &watcher{store: s, fn: fn}
	return w.run(ctx)
}

type watcher struct {
	store *Store
	fn    func(lease.Snapshot)

	// from is where the next stream starts: the last version that the stream has told, bookmarks included. Empty: at the present.
	from string
	// last is the state seen last, and newest its version as a number, so that nothing older follows.
	seen   bool
	last   lease.Version
	newest uint64
	// owed: a read brought something that the stream has yet to bring.
	owed bool
	// wentBack: a read brought something older.
	wentBack bool

	failures int
	reported string
}

func (w *watcher) run(ctx context.Context) error {
	for opened := false; ; {
		stream, err := w.store.client.watch(ctx, w.from, w.store.pace.open)
		switch {
		case err == nil:
			opened = true
			began := time.Now()
			err = w.follow(ctx, stream)
			stream.Stop()
			if time.Since(began) > w.store.pace.retryMax {
				w.failures = 0
			}
		case ctx.Err() != nil:
		case !opened && isForbidden(err):
			return fmt.Errorf("lease %s: watch: %w: %w%s", w.store, lease.ErrRefused, err, w.store.advice(err))
		default:
			err = w.store.fail("watch", err)
			// Whoever cannot watch can still look. The error that matters is the one above.
			_, _ = w.poll(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.report(ctx, err)
		if w.failures++; w.wentBack || isExpired(err) || errors.Is(err, errDeaf) || w.failures > 1 {
			w.from, w.newest, w.owed, w.wentBack = "", 0, false, false
		}
		if !w.pause(ctx, err) {
			return ctx.Err()
		}
	}
}

// follow tells what one stream brings until it ends, and why it did.
func (w *watcher) follow(ctx context.Context, stream watch.Interface) error {
	next, err := w.beside(ctx, true)
	if err != nil {
		return err
	}
	timer := time.NewTimer(next)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-stream.ResultChan():
			if !open {
				return errStreamEnded
			}
			if err := w.handle(ctx, event); err != nil {
				return err
			}
		case <-timer.C:
			next, err := w.beside(ctx, false)
			if err != nil {
				return err
			}
			timer.Reset(next)
		}
	}
}

// beside reads once and returns when to do so again. After an opening the stream may still have to catch up; by the next read it
// must have, and that must be no news. (An event under way that the read overtakes costs one superfluous opening.)
func (w *watcher) beside(ctx context.Context, opening bool) (time.Duration, error) {
	owed := w.owed
	news, err := w.poll(ctx)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		w.report(ctx, err)
		return jitter(w.store.pace.retryMax), nil
	case w.wentBack, !opening && (owed || news):
		return 0, errDeaf
	default:
		w.heal(ctx)
		return jitter(w.store.pace.poll), nil
	}
}

// poll reads, tells, and returns whether that was news. A read is never older than what is known: if the lease has become older, or
// has vanished (which a stream would tell, too), the store may have gone back in time.
func (w *watcher) poll(ctx context.Context) (news bool, err error) {
	l, err := w.store.client.get(ctx)
	if w.store.isAbsent(err) {
		news = w.tellAbsent()
		w.wentBack = w.wentBack || news && w.from != ""
		return news, nil
	}
	if err != nil {
		return false, w.store.fail("read", err)
	}
	version := number(l.GetResourceVersion())
	w.wentBack = w.wentBack || version < w.newest
	w.newest = version
	news = w.tellLease(ctx, l)
	w.owed = w.owed || news
	return news, nil
}

func (w *watcher) handle(ctx context.Context, event watch.Event) error {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	l, ok := event.Object.(object)
	if !ok {
		return fmt.Errorf("the watch brought a %T", event.Object)
	}
	version := number(l.GetResourceVersion())
	if version < number(w.from) {
		return errDeaf // a stream only goes forward
	}
	w.from = l.GetResourceVersion()
	w.owed = w.owed && version < w.newest
	if event.Type == watch.Bookmark || version < w.newest {
		return nil // a read was faster
	}
	w.newest = version
	if event.Type == watch.Deleted {
		w.tellAbsent()
		return nil
	}
	w.tellLease(ctx, l)
	return nil
}

func (w *watcher) tellLease(ctx context.Context, l object) bool {
	if !w.isNews(w.store.version(l)) {
		return false
	}
	if snapshot, err := w.store.snapshot(l); err != nil {
		w.store.log.ErrorContext(ctx, "skipped a state of the lease", slog.Any("error", err))
	} else {
		w.fn(snapshot)
	}
	return true
}

func (w *watcher) tellAbsent() bool {
	if !w.isNews("") {
		return false
	}
	w.fn(lease.Snapshot{})
	return true
}

// isNews reports whether the version is not the last one seen, and remembers it.
func (w *watcher) isNews(version lease.Version) bool {
	if w.seen && version == w.last {
		return false
	}
	w.seen, w.last = true, version
	return true
}

// report logs the first of a row of equal errors. The regular end of a stream is none.
func (w *watcher) report(ctx context.Context, err error) {
	if errors.Is(err, errStreamEnded) || err.Error() == w.reported {
		return
	}
	w.reported = err.Error()
	level := slog.LevelWarn
	if errors.Is(err, errDeaf) {
		level = slog.LevelInfo // most likely a read that was faster than an event
	}
	w.store.log.Log(ctx, level, "watching the lease was interrupted", slog.String("lease", w.store.String()), slog.Any("error", err))
}

func (w *watcher) heal(ctx context.Context) {
	if w.reported == "" {
		return
	}
	w.reported = ""
	w.store.log.InfoContext(ctx, "watching the lease again", slog.String("lease", w.store.String()))
}

// pause waits longer after each failure, and differently in each member: they all lose the API server at once.
// A right that was withdrawn is not back within seconds.
func (w *watcher) pause(ctx context.Context, err error) bool {
	p := w.store.pace
	bound := p.retryMax
	if isForbidden(err) {
		bound = p.poll
	}
	longest := min(p.retryMin<<min(w.failures-1, 16), bound)
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// jitter returns between one and two times d.
func jitter(d time.Duration) time.Duration { return d + rand.N(d+1) }

func isForbidden(err error) bool {
	status, ok := apiStatus(err)
	return ok && status.Code == http.StatusForbidden
}

// isExpired covers both shapes, "Expired" in a stream and "Gone", and a server that does not take the version at all.
func isExpired(err error) bool {
	status, ok := apiStatus(err)
	return ok && (status.Code == http.StatusGone || status.Reason == metav1.StatusReasonExpired || status.Code == http.StatusBadRequest)
}

package lease

import (
	"context"
	"errors"
)

// Watch calls fn, one call at a time, with the present record (if there is one) and again after each change, until ctx ends
// or the lease is closed; the error says which. It uses the store's Watcher, or reads every Options.PollInterval where the store has none or
// refuses to be watched. It may skip intermediate states, never ends on an old one, and never goes backwards: a store that does is reported with
// the newest token and verdict and Record.Behind.
//
// A running Watch also makes the lease faster and more alert: an Acquire finds the version known and needs one request, a
// silent holder is timed from its last sign of life, and a loss is noticed when it happens.
func (l *Lease) Watch(ctx context.Context, fn func(Record)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer context.AfterFunc(l.root, func() { cancel(ErrClosed) })()
	if w, ok := l.store.(Watcher); ok {
		err := w.Watch(ctx, func(s Snapshot) {
			r, ok := l.hear(s)
			if !ok {
				r, ok = l.verify(ctx)
			}
			if ok {
				fn(r.clone())
			}
		})
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if !errors.Is(err, ErrRefused) && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		l.log.Warn("lease: the store cannot be watched, reading it instead", "error", err, "every", l.opts.PollInterval)
	}
	return l.poll(ctx, fn)
}

// verify reads the record after a report that is older than what is known: either the report is late, or the store went backwards, which is
// news.
func (l *Lease) verify(ctx context.Context) (r Record, news bool) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	s, err := l.fetch(ctx)
	return s.Record, err == nil && s.Record.Behind
}

// poll is Watch over a store without one.
func (l *Lease) poll(ctx context.Context, fn func(Record)) error {
	var last Version
	for first, failing := true, false; ; {
		octx, cancel := l.bounded(ctx)
		s, err := l.fetch(octx)
		cancel()
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case err != nil && !failing:
			failing = true
			l.log.Warn("lease: reading failed", "error", err)
		case err == nil:
			failing = false
			if first || s.Version != last {
				first, last = false, s.Version
				fn(s.Record.clone())
			}
		}
		if err := sleep(ctx, l.clock, l.opts.PollInterval); err != nil {
			return err
		}
	}
}

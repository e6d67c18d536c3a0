package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Pace is how often a watched store is asked. Zero fields take their defaults.
type Pace struct {
	// Retry is the pause before a stream that has ended is opened again. It doubles with each failure, up to
	// RetryMax, and is jittered: all members lose a server at once. Defaults: 100 ms and 2 s.
	Retry, RetryMax time.Duration
	// Beside is the least time between two reads beside an open stream, which by itself proves nothing. The
	// real one is random, up to twice as long. Default: 30 s.
	Beside time.Duration
	// Poll is the time between two reads where there is no stream. Default: 1 s.
	Poll time.Duration
}

func (p Pace) filled() Pace {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&p.Retry, 100 * time.Millisecond}, {&p.RetryMax, 2 * time.Second}, {&p.Beside, 30 * time.Second},
		{&p.Poll, time.Second}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return p
}

// longestPostponement bounds what a server may ask for: no watch is down for longer.
const longestPostponement = time.Minute

var errBehind = errors.New("lease: the stream is behind the store")

// Follow calls fn, one call at a time, with the present state of the store and after each change, until ctx
// ends; it returns the cause of that. This is the one watch loop for all stores: it opens the store's stream
// again whenever that ends, reads beside it, and reads alone where there is none. A server that asks for
// patience gets it. Intermediate states may be skipped; a state may be reported twice.
func Follow(ctx context.Context, s Store, p Pace, log *slog.Logger, fn func(Snapshot)) error {
	f := follower{turn: make(chan struct{}, 1), store: s, pace: p.filled(), clock: SystemClock(), fn: fn}
	f.log = cmp.Or(log, slog.New(slog.DiscardHandler))
	f.read = func(ctx context.Context) (Snapshot, error) {
		ctx, cancel := context.WithTimeout(ctx, DefaultSettings().OperationTimeout)
		defer cancel()
		return s.Read(ctx)
	}
	f.hear = func(s Snapshot) (Snapshot, bool) { return s, !s.Record.older(&f.last.Record) }
	return f.run(ctx)
}

// follower is one watch loop.
type follower struct {
	store Store
	pace  Pace
	clock Clock
	log   *slog.Logger
	read  func(context.Context) (Snapshot, error)
	// noted is told of each failure, and of the end of a row of them by nil. It may be nil.
	noted func(error)
	// hear takes in what the stream brings. It reports false for what may be late: then a read tells.
	hear func(Snapshot) (Snapshot, bool)
	fn   func(Snapshot)

	// turn guards the fields below, also while fn is called, which may take its time: so no mutex.
	turn chan struct{}
	// last is what was reported last, valid if told. count counts.
	last  Snapshot
	told  bool
	count int
	// streamed is the last state of the open stream; heard is false if none.
	streamed Version
	heard    bool
	reported string
}

func (f *follower) run(ctx context.Context) error {
	for failures := 0; ; {
		began := f.clock.Now()
		err := f.stream(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if failures++; f.clock.Now().Sub(began) > f.pace.RetryMax {
			failures = 1
		}
		f.report(err)
		if err := f.alone(ctx, f.backoff(failures, err), Postponed(err)); err != nil {
			return err
		}
	}
}

// backoff is how long to wait until the stream is opened again. A right that is missing is not there within
// seconds.
func (f *follower) backoff(failures int, err error) time.Duration {
	longest := f.pace.RetryMax
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return Infinite
	case errors.Is(err, ErrRefused):
		longest = f.pace.Beside
	}
	d := min(f.pace.Retry<<min(failures-1, 16), longest)
	return max(d/2+rand.N(d/2+1), Postponed(err))
}

// Postponed is for how long the server that made the error wants to be left alone, zero if it does not say. A
// minute of that is believed.
func Postponed(err error) time.Duration {
	var later interface{ RetryAfter() time.Duration }
	if !errors.As(err, &later) {
		return 0
	}
	return max(0, min(later.RetryAfter(), longestPostponement))
}

// stream follows one stream to its end, and reads beside it.
func (f *follower) stream(ctx context.Context) error {
	w, ok := f.store.(Watcher)
	if !ok {
		return errors.ErrUnsupported
	}
	f.heard = false
	ctx, cancel := context.WithCancelCause(ctx)
	var reads sync.WaitGroup
	reads.Go(func() { f.beside(ctx, cancel) })
	err := w.Watch(ctx, func(s Snapshot) {
		f.turn <- struct{}{}
		defer func() { <-f.turn }()
		f.streamed, f.heard = s.Version, true
		f.healed()
		s, ok := f.hear(s)
		if !ok {
			var err error
			if s, err = f.read(ctx); err != nil {
				return
			}
		}
		f.tell(s)
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	reads.Wait()
	return err
}

// beside reads from time to time. The first read comes as soon as the stream must have told the present: it
// says nothing of a record that does not exist. What a later read finds and the stream has not told ends the
// stream.
func (f *follower) beside(ctx context.Context, end context.CancelCauseFunc) {
	pause := f.pace.Retry
	for first := true; sleep(ctx, f.clock, pause) == nil; first = false {
		s, err := f.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.report(err)
			pause = max(jitter(f.pace.RetryMax), Postponed(err))
			continue
		}
		f.turn <- struct{}{}
		behind := f.streamed != s.Version
		if !f.heard {
			behind = s.Version != ""
		}
		heard := f.heard
		if heard || !first { // a stream that says nothing is open, if it lasts
			f.healed()
		}
		<-f.turn
		if behind && !first {
			end(errBehind) // an event under way that the read has overtaken costs one opening too many
			return
		}
		pause = jitter(f.pace.Beside)
		if behind || first && !heard {
			pause = jitter(f.pace.RetryMax)
		}
	}
}

// alone reads until it is time to open the stream again. quiet is for how long the server wants to be left
// alone.
func (f *follower) alone(ctx context.Context, wait, quiet time.Duration) error {
	for {
		if quiet > 0 {
			if err := sleep(ctx, f.clock, quiet); err != nil {
				return err
			}
			wait -= min(wait, quiet)
		}
		_, err := f.look(ctx)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		f.report(err)
		if err == nil && wait == Infinite { // no stream is to be had, so nothing is missing
			f.turn <- struct{}{}
			f.healed()
			<-f.turn
		}
		pause := min(wait, max(f.pace.Poll, Postponed(err)))
		if err := sleep(ctx, f.clock, pause); err != nil {
			return err
		}
		if wait != Infinite {
			wait -= pause
		}
		if quiet = 0; wait <= 0 {
			return nil
		}
	}
}

// look reads and tells. A read that the stream has overtaken is not reported: the last report is as new, or
// the record is gone, and nothing says whether what the read shows came before that.
func (f *follower) look(ctx context.Context) (Snapshot, error) {
	f.turn <- struct{}{}
	before := f.count
	<-f.turn
	s, err := f.read(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if f.count == before || f.last.Version != "" && f.last.Record.older(&s.Record) {
		f.tell(s)
	}
	return s, nil
}

// tell is called in turn.
func (f *follower) tell(s Snapshot) {
	if f.told && s.Version == f.last.Version {
		return
	}
	f.last, f.told = s, true
	f.count++
	f.fn(s)
}

// report notes an interruption, and logs the first of a row of equal ones. That no stream is to be had is
// none.
func (f *follower) report(err error) {
	f.turn <- struct{}{}
	defer func() { <-f.turn }()
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, errBehind) {
		return
	}
	if f.noted != nil {
		f.noted(err)
	}
	if err.Error() != f.reported {
		f.reported = err.Error()
		f.log.Warn("lease: watching was interrupted", "error", err)
	}
}

// healed is called in turn.
func (f *follower) healed() {
	if f.reported == "" {
		return
	}
	f.reported = ""
	f.log.Info("lease: watching again")
	if f.noted != nil {
		f.noted(nil)
	}
}

// jitter returns between one and two times d.
func jitter(d time.Duration) time.Duration { return d + rand.N(d+1) }

// Watch calls fn, one call at a time, with the present record (if there is one) and again after each change,
// until ctx ends or the lease is closed; the error says which. It follows the store (see Follow) at the pace
// of Options.Pace. It may skip intermediate states, never ends on an old one, and never goes backwards: a
// store that does is reported with the newest token and verdict and Record.Behind.
//
// A running Watch also makes the lease faster and more alert: an Acquire finds the version known and needs
// one request, a silent holder is timed from its last sign of life, and a loss is noticed when it happens.
func (l *Lease) Watch(ctx context.Context, fn func(Record)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer context.AfterFunc(l.root, func() { cancel(fmt.Errorf("lease: watch: %w", ErrClosed)) })()
	f := follower{
		turn:  make(chan struct{}, 1),
		store: l.store, pace: l.opts.Pace, clock: l.clock, log: l.log, noted: l.opts.OnWatch,
		read: l.fetch,
		hear: func(s Snapshot) (Snapshot, bool) {
			if s.Record.Moved.Away() {
				return s, false // the read says so
			}
			if news := l.step(Heard{s}); news != nil {
				return Snapshot{Record: *news, Version: s.Version}, true
			}
			return s, false
		},
		fn: func(s Snapshot) { fn(s.Record.clone()) },
	}
	return f.run(ctx)
}

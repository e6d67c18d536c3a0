package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/lease"
)

// LeaseOptions are the settings of OverLease.
type LeaseOptions struct {
	// Where names the lease for people.
	Where string
	// StopTimeout is how long the program may take to end.
	StopTimeout time.Duration
	// Orphaned is the command line that releases the lease if this owner holds it, for a supervisor whose
	// parent was killed. Empty: the lease expires.
	Orphaned []string
	// Once: do not wait after a heartbeat of a holder.
	Once bool
	// Log takes who the holder is. Required.
	Log *slog.Logger
}

// overLease is the Guard of a lease.
type overLease struct {
	lease *lease.Lease
	opt   LeaseOptions
	log   *slog.Logger
}

// OverLease returns a Guard whose turns are the times of holding l, which the caller must not use otherwise.
// It does not close l.
//
// A turn is a lease.Grant and no slot (package slot). A slot retries whatever the store says; this Guard ends
// where the store refuses for good, or, with Once, where a holder lives. A slot rests under its token; this
// Guard releases a lease under which a program was ended early, because the lease could not be renewed.
func OverLease(l *lease.Lease, o LeaseOptions) Guard {
	g := &overLease{lease: l, opt: o, log: o.Log.With("lease", o.Where)}
	return g.next
}

// Notice is how long before the end of its validity a lease with these settings a holder that needs
// stopTimeout to end should begin to: stopTimeout, but at least half of the time in which heartbeats may fail
// is left for heartbeats.
func Notice(s lease.Settings, stopTimeout time.Duration) time.Duration {
	return max(0, min(stopTimeout, (s.Window()-s.Interval())/2))
}

// next is the Guard.
func (g *overLease) next(ctx context.Context) (*Turn, error) {
	grant, err := g.lease.Acquire(ctx, lease.Proposal{})
	switch held := (*lease.HeldError)(nil); {
	case err == nil:
		return g.turn(grant), nil
	case errors.As(err, &held):
		g.log.Info("sbr: waiting for the lease", "holder", held.Record.Holder, "token", held.Record.Token)
	case isLasting(err):
		return nil, err
	case ctx.Err() == nil:
		g.log.Warn("sbr: the state of the lease is unknown; retrying", "problem", err)
	}
	if g.opt.Once {
		grant, err = g.once(ctx, err)
	} else {
		grant, err = g.lease.AcquireWait(ctx, lease.Proposal{})
	}
	if err != nil {
		return nil, err
	}
	return g.turn(grant), nil
}

func (g *overLease) turn(grant *lease.Grant) *Turn {
	over, cancel := grant.Context(context.Background())
	unwatch, token := g.watch(), grant.Token()
	done := func(e End) {
		cancel()
		unwatch()
		if g.opt.Once && !e.Ran && g.lease.Settings().HeartbeatTimeout != lease.Infinite {
			g.log.Info("sbr: the program was not started: the lease expires; a release would say that it has run")
			return
		}
		switch err := grant.Release(context.Background()); {
		case err == nil:
			g.log.Info("sbr: released the lease")
		case errors.Is(err, lease.ErrNotHeld): // lost earlier
		default:
			g.log.Warn("sbr: the release of the lease is not confirmed; it expires after the heartbeat-timeout",
				"problem", err)
		}
	}
	return &Turn{
		Done:  done,
		Token: token, Stop: over, Over: over, Notice: Notice(g.lease.Settings(), g.opt.StopTimeout),
		Orphaned: g.opt.Orphaned,
		Facts: []string{"SBR_TOKEN=" + strconv.FormatUint(token, 10), "SBR_LEASE=" + g.opt.Where,
			"SBR_HOLDER=" + g.lease.Owner()},
		Valid: func() time.Time {
			until, ok := g.lease.ValidUntil()
			if !ok {
				return time.Now() // the turn is over
			}
			return until
		},
	}
}

// watch makes a lease that is taken away be lost at once, not with the next heartbeat. It returns the
// function that ends the watch.
func (g *overLease) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.lease.Watch(ctx, func(lease.Record) {}) // without it the heartbeats notice, later
	}()
	return func() { cancel(); <-ended }
}

// once waits for a heartbeat of the holder, or takes its place when the holder was silent for too long.
func (g *overLease) once(ctx context.Context, err error) (*lease.Grant, error) {
	for {
		var end error
		if held := (*lease.HeldError)(nil); errors.As(err, &held) {
			end = g.observe(ctx, held)
		} else {
			end = sleep.For(ctx, min(time.Second, g.lease.Settings().Interval()))
		}
		if end != nil {
			return nil, end
		}
		var grant *lease.Grant
		if grant, err = g.lease.Acquire(ctx, lease.Proposal{}); err == nil || isLasting(err) {
			return grant, err
		}
	}
}

// isLasting reports whether an operator has to repair the store first. A write that timed out is no such
// case: a slow disk answers the next write.
func isLasting(err error) bool {
	return errors.Is(err, lease.ErrRefused) && !errors.Is(err, context.DeadlineExceeded)
}

// observe returns ErrElsewhere when the record that refused this owner has changed, nil when its holder was
// silent for too long.
func (g *overLease) observe(ctx context.Context, refused *lease.HeldError) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	defer func() { cancel(nil); <-watched }()
	go func() {
		defer close(watched)
		before := &refused.Record
		err := g.lease.Watch(ctx, func(r lease.Record) {
			if r.Holder != before.Holder || r.Token != before.Token || r.Nonce != before.Nonce ||
				!r.Renewed.Equal(before.Renewed) {
				cancel(fmt.Errorf("%w: by %s, under token %d", ErrElsewhere, before.Holder, before.Token))
			}
		})
		if ctx.Err() == nil {
			cancel(err)
		}
	}()
	if refused.RetryAfter == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return sleep.For(ctx, refused.RetryAfter)
}

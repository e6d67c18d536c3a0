package downing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// StateStarting is the state of a member that does not take part yet: Status.StartingBecause says what it waits for.
const StateStarting sbr.State = "starting"

// openLease makes the lease of this incarnation and reads it once: a member that does not know the last verdict must not join.
func (e *engine) openLease(ctx context.Context) error {
	if e.cfg.Store == nil {
		store, err := lease.Open(ctx, e.cfg.LeaseImplementation, lease.Spec{
			System: e.cfg.System, Name: e.cfg.leaseName(), Owner: string(e.self.ID), Settings: e.cfg.Lease, Logger: e.log, Decode: e.cfg.LeaseDecode,
		})
		if err != nil {
			return fmt.Errorf("%w: lease %s: %w", ErrLease, e.cfg.leaseName(), err)
		}
		e.cfg.Store, e.opened = store, store
	}
	l, err := lease.New(e.cfg.Store, string(e.self.ID), e.cfg.Lease, lease.Options{
		Use: "the resolver of " + e.cfg.System, Logger: e.log, OnWatch: e.watchInterrupted,
	})
	if err != nil {
		return fmt.Errorf("downing: lease %s: %w", e.cfg.leaseName(), err)
	}
	e.lease = l
	e.metrics.follow(l, e.cfg.Store)
	rec, err := e.firstRead(ctx)
	if err != nil {
		l.Close()
		e.lease = nil // Prepare may be called again
		return fmt.Errorf("downing: the lease %s must be readable before this node may join: %w", e.cfg.leaseName(), err)
	}
	e.firstIdentity(ctx)
	e.self.Seen = rec.Token
	if rec.Verdict != nil {
		e.keepOut.list.Store(&denyList{self: e.self.ID, verdict: *rec.Verdict})
	}
	e.inbox.Post(func() {
		e.recordTaken = true
		e.step(sbr.LeaseObserved{Record: recordOf(rec)})
	})
	return nil
}

// leaseStatus says which lease it is, and what its store refuses.
func (e *engine) leaseStatus() LeaseStatus {
	kind := e.cfg.LeaseImplementation
	switch {
	case !sbr.NeedsLease(e.strategy):
		return LeaseStatus{}
	case e.cfg.Store != nil && e.opened == nil:
		kind = "store"
	}
	return LeaseStatus{Kind: kind, Name: e.cfg.leaseName(), Store: e.storeID, Refused: e.refused}
}

// preflighter is a store that can tell in advance whether everything it needs works.
type preflighter interface {
	Preflight(ctx context.Context) error
}

const (
	// startPause is the longest pause between two tries of a lease that cannot be used yet, unless the store asks for more.
	startPause = 10 * time.Second
	// startPostponed is how much of that is believed.
	startPostponed = time.Minute
)

// firstRead returns the record once the store answers and refuses nothing, however long that takes: rights, credentials and stores
// that are away come back, or somebody brings them back. It says what it waits for whenever that changes.
func (e *engine) firstRead(ctx context.Context) (lease.Record, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = e.cfg.Resolver.LeaseRetry, startPause
	for said := ""; ; {
		rec, err := e.tryLease(ctx)
		if err == nil {
			e.startGoesOn(said != "")
			return rec, nil
		}
		if ctx.Err() == nil {
			said = e.startWaits(err, said)
		}
		if sleep.For(ctx, max(pause.NextBackOff(), min(postponed(err), startPostponed))) != nil || ctx.Err() != nil {
			return lease.Record{}, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// tryLease reads the lease, unless the store refuses what this member will need of it.
func (e *engine) tryLease(ctx context.Context) (rec lease.Record, err error) {
	if p, ok := e.cfg.Store.(preflighter); ok {
		bounded, cancel := context.WithTimeout(ctx, 2*e.cfg.Lease.OperationTimeout) // it makes several requests
		err = p.Preflight(bounded)
		cancel()
		if errors.Is(err, lease.ErrRefused) {
			return rec, err
		}
	}
	rec, readErr := e.lease.Read(ctx)
	if v := e.cfg.Memory.load().Verdict; readErr == nil && rec.Token < v.Token && v.Token < lease.MaxToken {
		// All who knew it may be starting now, and this is the record that it grows from: two verdicts would have one token.
		e.log.Warn("sbr: the store holds less than a verdict that this host remembers: it is written back",
			"lease", e.cfg.leaseName(), "token", rec.Token, "verdict", v.Token)
		rec, readErr = e.lease.Restore(ctx, v)
	}
	e.metrics.leaseRead(readErr)
	if readErr == nil && err != nil {
		e.log.Error("sbr: the lease store does not work as it must", "lease", e.cfg.leaseName(), "problems", oneLine(err))
	}
	return rec, readErr
}

// postponed is when the store wants to be asked again, zero if it does not say.
func postponed(err error) time.Duration {
	var p interface{ RetryAfter() time.Duration }
	if errors.As(err, &p) {
		return p.RetryAfter()
	}
	return 0
}

// startWaits shows what the start waits for, and logs it unless it said so before. It returns what it has said.
func (e *engine) startWaits(err error, said string) string {
	text := fmt.Sprintf("the lease %s cannot be used: %s", e.cfg.leaseName(), oneLine(err))
	if errors.Is(err, lease.ErrRefused) {
		e.refused = oneLine(err)
	}
	e.metrics.refused(e.refused != "")
	e.mu.Lock()
	e.status = e.firstStatus(StateStarting)
	e.status.StartingBecause = text
	e.mu.Unlock()
	// Ports and times differ from try to try.
	now := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
	if now != said {
		e.awaitLease(err)
	}
	if !e.held.any() { // nothing runs yet that could be in the way
		e.held.by[byStart], e.held.why[byStart], e.held.since, e.held.reason = true, text, time.Now(), text
		e.life.Suspend(text)
		e.metrics.suspended(byStart)
	}
	return now
}

func (e *engine) startGoesOn(waited bool) {
	e.refused = ""
	e.metrics.refused(false)
	if waited {
		e.log.Info("sbr: the lease can be used, the start goes on", "lease", e.cfg.leaseName())
	}
}

// rightsEvery is how often, on average, a member tries its rights while the cluster is whole.
const rightsEvery = 5 * time.Minute

// watchRights tries now and then whether the store would take the next verdict: rights that are gone are noticed before they are needed.
func (e *engine) watchRights() {
	store, ok := e.cfg.Store.(interface {
		DryRun(ctx context.Context) error
	})
	if !ok {
		return
	}
	for e.ctx.Err() == nil {
		e.rest(rightsEvery*3/4 + rand.N(rightsEvery/2)) // not all members at once
		if e.Status().State != sbr.StateUp {
			continue
		}
		ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
		err := store.DryRun(ctx)
		cancel()
		e.inbox.Post(func() { e.judgeRights(err) })
	}
}

// judgeRights takes in what a dry run came to. No answer says nothing about rights. Loop only.
func (e *engine) judgeRights(err error) {
	switch {
	case errors.Is(err, lease.ErrRefused):
		if e.refused == "" {
			e.log.Error("sbr: the lease store refuses this member: in a partition it cannot win, and without the others' rights nobody can",
				"lease", e.cfg.leaseName(), "error", oneLine(err))
		}
		e.refused = oneLine(err)
	case err == nil && e.refused != "":
		e.log.Info("sbr: the lease store takes this member's requests again", "lease", e.cfg.leaseName())
		e.refused = ""
	}
	e.metrics.refused(e.refused != "")
}

package downing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

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
	l, err := lease.New(e.cfg.Store, string(e.self.ID), e.cfg.Lease, lease.Options{Logger: e.log})
	if err != nil {
		return fmt.Errorf("downing: lease %s: %w", e.cfg.leaseName(), err)
	}
	e.lease = l
	e.metrics.follow(l, e.cfg.Store)
	rec, err := e.firstRead(ctx)
	if err != nil {
		l.Close()
		e.lease = nil // Prepare may be called again
		if errors.Is(err, ErrLease) {
			return err
		}
		return fmt.Errorf("downing: the lease %s must be readable before this node may join: %w", e.cfg.leaseName(), err)
	}
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

// preflighter is a store that can tell in advance whether everything it needs works.
type preflighter interface {
	Preflight(ctx context.Context) error
}

func (e *engine) firstRead(ctx context.Context) (lease.Record, error) {
	if p, ok := e.cfg.Store.(preflighter); ok {
		bounded, cancel := context.WithTimeout(ctx, 2*e.cfg.Lease.OperationTimeout) // it makes several requests
		err := p.Preflight(bounded)
		cancel()
		if e.cfg.RefuseStart && errors.Is(err, lease.ErrRefused) {
			return lease.Record{}, fmt.Errorf("%w: %w", ErrLease, err)
		}
		if err != nil {
			e.log.Error("sbr: the lease store does not work as it must", "lease", e.cfg.leaseName(), "problems", err)
		}
	}
	var last error
	for {
		rec, err := e.lease.Read(ctx)
		e.metrics.leaseRead(err)
		if err == nil {
			return rec, nil
		}
		if ctx.Err() != nil && last != nil {
			return lease.Record{}, fmt.Errorf("%w: %w", ctx.Err(), last) // the last one of the store's own
		}
		if e.cfg.RefuseStart && errors.Is(err, lease.ErrRefused) {
			return lease.Record{}, fmt.Errorf("%w: %w", ErrLease, err)
		}
		last = err
		e.log.Error("sbr: cannot read the lease, trying again", "lease", e.cfg.leaseName(), "error", err)
		retry := time.NewTimer(e.cfg.Resolver.LeaseRetry)
		select {
		case <-ctx.Done():
			retry.Stop()
			return lease.Record{}, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-retry.C:
		}
	}
}

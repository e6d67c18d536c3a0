package drive

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/fence"
)

// Moment is something that happens to a run.
type Moment uint8

// The moments.
const (
	Started Moment = iota
	NotStarted
	Stopping
	Ended
)

// LeaseOptions are the options of the slots' leases.
type LeaseOptions struct {
	// Key names a registered implementation, Decode fills its configuration. Store, if set, opens a store
	// instead; the embedder closes that.
	Key    string
	Decode func(into any) error
	Store  func(name string) (lease.Store, error)
	// Settings are the times.
	Settings lease.Settings
	// Name is the name of a slot's lease, Use says what the lease is for.
	Name, Use func(shard int) string
	// Log is the log of the lease.
	Log *slog.Logger
}

// running is a driver's state of one slot.
type running struct {
	run    *Run                   // nil: nothing runs
	lease  *leasing               // nil: none was asked for
	holder atomic.Pointer[string] // of the lease that is waited for; nil: none, or it is free
}

// OpenLease opens the lease of a slot, unless it is open. It is for the time before Go.
func (d *Driver[M]) OpenLease(ctx context.Context, shard int) error {
	return d.leasing(shard).Open(ctx)
}

// leasing returns the driver of a slot's lease. What it acquires it opens first.
func (d *Driver[M]) leasing(shard int) *leasing {
	r := &d.runs[shard]
	if r.lease == nil {
		open := func(ctx context.Context) (*lease.Lease, io.Closer, error) { return d.openLease(ctx, shard) }
		r.lease = newLeasing(d.ctx, open, d.Inbox)
	}
	return r.lease
}

// openLease opens a slot's lease, and the store that is to be closed after it; nil: that is the embedder's.
func (d *Driver[M]) openLease(ctx context.Context, shard int) (l *lease.Lease, opened io.Closer, err error) {
	o, system := &d.Lease, d.Cluster.Config().System
	name, owner := o.Name(shard), fmt.Sprintf("%s/%d", d.Self, d.Origin.UnixMicro()) // one life of one manager
	// the embedder's functions are called one at a time
	d.opening.Lock()
	defer d.opening.Unlock()
	var store lease.Store
	if o.Store != nil {
		store, err = o.Store(name)
	} else {
		store, err = lease.Open(ctx, o.Key, lease.Spec{
			System: system, Name: name, Owner: owner, Settings: o.Settings, Logger: o.Log, Decode: o.Decode,
		})
		opened, _ = store.(io.Closer)
	}
	if err == nil {
		l, err = lease.New(store, owner, o.Settings, lease.Options{Use: o.Use(shard), Logger: o.Log,
			OnHeld: func(is lease.Record) { d.Inbox.Post(func() { d.leaseHeld(shard, is.Holder) }) }})
	}
	if err == nil {
		return l, opened, nil
	}
	if opened != nil {
		_ = opened.Close()
	}
	return nil, nil, fmt.Errorf("%s: %w", name, err)
}

func (d *Driver[M]) acquire(e slot.AcquireLease) {
	d.leasing(e.Shard).Acquire(e, func(x slot.Event) {
		d.runs[e.Shard].holder.Store(nil)
		d.Step(d.Machine, x)
	})
}

func (d *Driver[M]) release(e slot.ReleaseLease) {
	done := func() {
		d.runs[e.Shard].holder.Store(nil)
		d.Step(d.Machine, slot.LeaseReleased(e))
	}
	if l := d.runs[e.Shard].lease; l != nil {
		l.Release(done)
	} else {
		d.Inbox.Post(done)
	}
}

// leaseHeld notes that a slot waits for a held lease, and logs each holder once.
func (d *Driver[M]) leaseHeld(shard int, holder string) {
	at := &d.runs[shard]
	if was := at.holder.Load(); was == nil || *was != holder {
		at.holder.Store(&holder)
		d.explain(slot.Explain{Topic: slot.TopicWaiting, Shard: shard, Text: fmt.Sprintf(
			"waiting for the lease %s, which is held by %s", d.Lease.Name(shard), holder)})
	}
}

// LeaseHolder is the holder of the lease that a slot waits for; empty: it waits for none, or the holder is
// unknown. It is safe for concurrent use.
func (d *Driver[M]) LeaseHolder(shard int) string {
	if holder := d.runs[shard].holder.Load(); holder != nil {
		return *holder
	}
	return ""
}

// trustUntil renews the deadline of runs without a lease. It goes by the clocks as they stood at the renewal
// before: the time for which a machine was suspended since counts, and a wall clock that was set does not count
// for ever.
func (d *Driver[M]) trustUntil() {
	at, ok := d.Machine.Until()
	if !ok || at == d.trusted {
		return
	}
	d.until.Set(d.anchor.Add(at - d.anchor.Sub(d.Origin)))
	d.trusted, d.anchor = at, time.Now()
}

// start starts a function of the application.
func (d *Driver[M]) start(e slot.Start) {
	d.trustUntil()
	at := &d.runs[e.Shard]
	r := &Run{Shard: e.Shard, Number: e.Run, Token: e.Token, State: e.State, Until: &d.until}
	r.From = downing.NameOf(e.From)
	if at.lease != nil {
		r.Holding = at.lease.lease
	}
	f := d.Function(r)
	if err := r.Begin(d.ctx); err != nil {
		d.notStarted(r, err)
		return
	}
	at.run = r
	if at.lease != nil {
		d.endWithLease(r, at.lease.grant)
	}
	d.meters.start()
	d.Happened(Started, r, "")
	r.Start(func(ctx context.Context) error { return f(fence.WithToken(ctx, r.Token)) }, func(err error) {
		d.Inbox.Post(func() { d.ended(r, err) })
		d.trace(r) // nobody waits for it
	})
}

// endWithLease stops a run whose lease is lost, whatever the driver's goroutine is busy with.
func (d *Driver[M]) endWithLease(r *Run, grant *lease.Grant) {
	d.workers.Go(func() {
		select {
		case <-grant.Done():
			if why := grant.Lost(); why != nil {
				r.Stop(slot.CauseLeaseLost, why.Error())
			}
		case <-r.over:
		}
	})
}

// notStarted tells the machine that a run was not started: this process was paused since the decision.
func (d *Driver[M]) notStarted(r *Run, why error) {
	d.Happened(NotStarted, r, why.Error())
	if l := d.runs[r.Shard].lease; l != nil {
		l.Doubt(why.Error())
	}
	e := slot.RunEnded{Shard: r.Shard, Run: r.Number, State: r.State, Again: true, Rest: d.Rest,
		Why: why.Error()}
	d.Inbox.Post(func() { d.Step(d.Machine, e) })
}

// stop asks a function to end.
func (d *Driver[M]) stop(e slot.Stop) {
	at := &d.runs[e.Shard]
	if at.run == nil || at.run.Number != e.Run {
		return
	}
	at.run.Stop(e.Cause, e.Why)
	if r := at.run; d.StopTimeout > 0 {
		d.workers.Go(func() { d.remind(r) })
	}
	d.Happened(Stopping, at.run, e.Why)
}

// ended handles the return of a function.
func (d *Driver[M]) ended(r *Run, err error) {
	at := &d.runs[r.Shard]
	took := time.Since(r.begun)
	at.run = nil
	d.meters.end(r)
	e := d.Ended(r, err, took)
	e.Shard, e.Run, e.State = r.Shard, r.Number, r.Left()
	if err != nil {
		e.Why = err.Error()
	}
	d.Happened(Ended, r, e.Why)
	d.Step(d.Machine, e)
}

// remind logs again and again that a run does not end.
func (d *Driver[M]) remind(r *Run) {
	again := time.NewTicker(d.StopTimeout)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			d.Log.Error("sbr: "+d.What+" does not end: nothing can start it elsewhere meanwhile",
				"run", r.Number, "told", fmt.Sprint(r.Cause()))
		case <-r.over:
			return
		}
	}
}

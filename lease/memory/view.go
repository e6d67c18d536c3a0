package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
)

// ErrUnavailable is what every request returns at once while a view is unavailable.
var ErrUnavailable = errors.New("memory: the store is unavailable (injected)")

var (
	_ lease.Store      = (*View)(nil)
	_ lease.Watcher    = (*View)(nil)
	_ lease.Identified = (*View)(nil)
)

// Always as the number of requests that a fault is to hit.
const Always = -1

// Counters are how many requests a view has sent, whatever became of them.
type Counters struct{ Reads, Writes, Watches int }

// View is the connection of one party to a Store, with faults of its own. Faults add up: a slow view can also lose.
type View struct {
	store *Store
	node  string

	mu       sync.Mutex
	counters Counters
	faults   faults
	changed  chan struct{} // closed and replaced when availability changes
}

type faults struct {
	unavailable                         bool
	delay, late                         time.Duration
	loseRequests, loseResponses         int
	conflicts, lateCommits, refusals    int
	onlyReads, onlyWrites, blockWatches bool
}

// SetUnavailable makes every request fail at once, and silences watches, until it is called with false.
func (v *View) SetUnavailable(down bool) {
	v.set(func(f *faults) { f.unavailable = down })
}

// SetDelay makes every request take d, half of it before it takes effect.
func (v *View) SetDelay(d time.Duration) { v.set(func(f *faults) { f.delay = d }) }

// LoseRequests makes the next n requests vanish on their way to the store: the client waits until its ctx ends.
func (v *View) LoseRequests(n int) { v.set(func(f *faults) { f.loseRequests = n }) }

// LoseResponses makes the next n requests take effect and their answers vanish: the client waits until its ctx ends.
func (v *View) LoseResponses(n int) { v.set(func(f *faults) { f.loseResponses = n }) }

// Conflict makes the next n writes end in lease.ErrConflict although nothing has changed.
func (v *View) Conflict(n int) { v.set(func(f *faults) { f.conflicts = n }) }

// Refuse makes the next n writes end in lease.ErrRefused.
func (v *View) Refuse(n int) { v.set(func(f *faults) { f.refusals = n }) }

// CommitLate makes the next n writes get stuck: the client waits until its ctx ends, and the write is committed, if its
// condition still holds, when d has passed since it was sent.
func (v *View) CommitLate(n int, d time.Duration) {
	v.set(func(f *faults) { f.lateCommits, f.late = n, d })
}

// SilenceWatch keeps reports from watches, as a connection that swallows packets does, until it is called with false.
func (v *View) SilenceWatch(silent bool) { v.set(func(f *faults) { f.blockWatches = silent }) }

// SpareReads limits LoseRequests, LoseResponses and SetUnavailable to writes.
func (v *View) SpareReads(spare bool) { v.set(func(f *faults) { f.onlyWrites = spare }) }

// SpareWrites limits LoseRequests, LoseResponses and SetUnavailable to reads.
func (v *View) SpareWrites(spare bool) { v.set(func(f *faults) { f.onlyReads = spare }) }

// Heal ends all faults. Late writes that are under way still arrive.
func (v *View) Heal() { v.set(func(f *faults) { *f = faults{} }) }

// Counters returns how many requests were sent through the view.
func (v *View) Counters() Counters {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counters
}

func (v *View) set(change func(*faults)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.faults)
	close(v.changed)
	v.changed = make(chan struct{})
}

// fate is what one request meets.
type fate struct {
	unavailable, loseRequest, loseResponse bool
	conflict, refused, commitLate          bool
	delay, late                            time.Duration
}

// use takes one from a budget; Always is never used up.
func use(n *int) bool {
	if *n == 0 {
		return false
	}
	if *n > 0 {
		*n--
	}
	return true
}

// send counts a request and draws its fate.
func (v *View) send(write bool) fate {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := &v.faults
	out := fate{delay: f.delay, late: f.late}
	if write {
		v.counters.Writes++
		out.commitLate = use(&f.lateCommits)
		out.conflict = !out.commitLate && use(&f.conflicts)
		out.refused = !out.commitLate && !out.conflict && use(&f.refusals)
	} else {
		v.counters.Reads++
	}
	if (write && f.onlyReads) || (!write && f.onlyWrites) || out.commitLate || out.conflict || out.refused {
		return out
	}
	out.unavailable = f.unavailable
	out.loseRequest = !out.unavailable && use(&f.loseRequests)
	out.loseResponse = !out.unavailable && !out.loseRequest && use(&f.loseResponses)
	return out
}

// Identity implements lease.Identified.
func (v *View) Identity(context.Context) (string, error) { return v.Location(), nil }

// Location implements lease.Located.
func (v *View) Location() string { return fmt.Sprintf("the record in memory at %p", v.store) }

// Read implements lease.Store.
func (v *View) Read(ctx context.Context) (lease.Snapshot, error) {
	f := v.send(false)
	if err := f.before(ctx); err != nil {
		return lease.Snapshot{}, err
	}
	s, _ := v.store.state()
	if err := f.after(ctx); err != nil {
		return lease.Snapshot{}, err
	}
	return s, nil
}

// Write implements lease.Store.
func (v *View) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Snapshot, error) {
	f := v.send(true)
	r.Verdict = r.Verdict.Clone()
	if f.commitLate {
		time.AfterFunc(f.late, func() { _, _ = v.store.swap(r, prev) })
		<-ctx.Done()
		return lease.Snapshot{}, ctx.Err()
	}
	if err := f.before(ctx); err != nil {
		return lease.Snapshot{}, err
	}
	switch {
	case f.conflict:
		return lease.Snapshot{}, lease.ErrConflict
	case f.refused:
		return lease.Snapshot{}, lease.ErrRefused
	}
	s, err := v.store.swap(r, prev)
	if lost := f.after(ctx); lost != nil {
		return lease.Snapshot{}, lost
	}
	return s, err
}

// before is the way to the store.
func (f fate) before(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.unavailable {
		return ErrUnavailable
	}
	if f.loseRequest {
		<-ctx.Done()
		return ctx.Err()
	}
	return wait(ctx, f.delay/2)
}

// after is the way back.
func (f fate) after(ctx context.Context) error {
	if f.loseResponse {
		<-ctx.Done()
		return ctx.Err()
	}
	return wait(ctx, f.delay-f.delay/2)
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watch implements lease.Watcher. While the view is unavailable or silenced it reports nothing; afterwards it reports the
// state it finds, if that is another one.
func (v *View) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	v.mu.Lock()
	v.counters.Watches++
	v.mu.Unlock()
	var last lease.Version
	for first := true; ; {
		v.mu.Lock()
		quiet := (v.faults.unavailable && !v.faults.onlyWrites) || v.faults.blockWatches
		delay, healed := v.faults.delay/2, v.changed
		v.mu.Unlock()
		s, changed := v.store.state()
		if !quiet && (first || s.Version != last) {
			if wait(ctx, delay) != nil {
				return ctx.Err()
			}
			first, last = false, s.Version
			fn(s)
			continue // the state may have changed meanwhile
		}
		select {
		case <-changed:
		case <-healed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// ErrInjected is wrapped by every error that a Faulty makes up.
var ErrInjected = errors.New("leasetest: injected fault")

// Always as the number of requests that a fault is to hit.
const Always = -1

// Requests are the kinds of request that a fault may hit. The zero Requests is All.
type Requests uint8

// The kinds of request.
const (
	All Requests = iota
	Reads
	Writes
)

func (r Requests) include(write bool) bool { return r == All || (r == Writes) == write }

// Fault is what may become of a request.
type Fault string

// The faults.
const (
	// Unavailable: the request fails at once and is not sent. If it is so for all reads, for Always, watches
	// are silent too.
	Unavailable Fault = "unavailable"
	// LoseRequest: the request vanishes on its way; the client waits until its ctx ends.
	LoseRequest Fault = "lose-request"
	// LoseResponse: the request takes effect and the answer vanishes; the client waits until its ctx ends.
	LoseResponse Fault = "lose-response"
	// BreakResponse: the request takes effect and the connection breaks; the client gets an error at once.
	BreakResponse Fault = "break-response"
	// Conflict: the write fails with lease.ErrConflict although nothing has changed. Writes only.
	Conflict Fault = "conflict"
	// Refuse: the write fails with lease.ErrRefused. Writes only.
	Refuse Fault = "refuse"
	// CommitLate: the write gets stuck; the client waits until its ctx ends. Later the write reaches the
	// store and is committed if its condition still holds. Writes only. Injected by the method of that name.
	CommitLate Fault = "commit-late"
)

func (f Fault) writesOnly() bool { return f == Conflict || f == Refuse || f == CommitLate }

// Counters are how many requests were sent, whatever became of them.
type Counters struct{ Reads, Writes, Watches int }

// Faulty is the connection of one party to a store, which can be broken: give it to the lease instead of the
// store. Without faults it is the store, with all its abilities: what the store cannot do, it cannot do
// either. It is safe for concurrent use; its times are those of package time, so it runs in virtual time
// under testing/synctest. Make it with NewFaulty, or by Memory.View.
type Faulty struct {
	inner lease.Store
	root  context.Context
	end   context.CancelFunc
	late  sync.WaitGroup

	asking atomic.Int64 // the requests that inner has not answered

	mu       sync.Mutex
	counters Counters
	plan
	hook    func(write bool)
	changed chan struct{} // closed and replaced when plan changes
}

var (
	_ lease.Store      = (*Faulty)(nil)
	_ lease.Watcher    = (*Faulty)(nil)
	_ lease.Limiter    = (*Faulty)(nil)
	_ lease.Identified = (*Faulty)(nil)
	_ lease.Located    = (*Faulty)(nil)
)

// Memory is a record in memory that each party reaches through a connection of its own.
type Memory struct {
	*memory.Store

	mu    sync.Mutex
	views map[string]*Faulty
}

// NewMemory returns a store without a record.
func NewMemory() *Memory { return &Memory{Store: memory.NewStore(), views: map[string]*Faulty{}} }

// View returns the connection of a party, always the same one for the same name.
func (m *Memory) View(party string) *Faulty {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.views[party] == nil {
		m.views[party] = NewFaulty(m.Store)
	}
	return m.views[party]
}

// plan is what is to go wrong.
type plan struct {
	rules           []rule
	delay, lateness time.Duration
	silent          bool
}

type rule struct {
	on    Requests
	fault Fault
	left  int
}

// NewFaulty returns a connection to store without faults.
func NewFaulty(store lease.Store) *Faulty {
	f := &Faulty{inner: store, changed: make(chan struct{})}
	f.root, f.end = context.WithCancel(context.Background())
	return f
}

// Inject makes the next n requests of that kind meet the fault; Always: until Heal; zero: none any more.
// Where several faults are due, the first injected one hits. A fault that is for writes only lets reads pass.
func (f *Faulty) Inject(on Requests, fault Fault, n int) {
	f.change(func(p *plan) {
		for i := range p.rules {
			if r := &p.rules[i]; r.on == on && r.fault == fault {
				r.left = n
				return
			}
		}
		p.rules = append(p.rules, rule{on, fault, n})
	})
}

// SetDelay makes every request take d longer, half of it before it takes effect, and every report of a watch
// half of it.
func (f *Faulty) SetDelay(d time.Duration) { f.change(func(p *plan) { p.delay = d }) }

// SetUnavailable injects Unavailable into all requests, or ends that.
func (f *Faulty) SetUnavailable(down bool) {
	n := 0
	if down {
		n = Always
	}
	f.Inject(All, Unavailable, n)
}

// CommitLate makes the next n writes get stuck. When d has passed since such a write was sent it reaches the
// store.
func (f *Faulty) CommitLate(n int, d time.Duration) {
	f.change(func(p *plan) { p.lateness = d })
	f.Inject(Writes, CommitLate, n)
}

// SilenceWatch holds the reports of watches back, as a connection that swallows packets does, until it is
// called with false.
func (f *Faulty) SilenceWatch(silent bool) { f.change(func(p *plan) { p.silent = silent }) }

// Heal ends all faults. Late writes that are under way still arrive.
func (f *Faulty) Heal() { f.change(func(p *plan) { *p = plan{} }) }

// OnRequest calls fn before each request is sent, when its fate is sealed: what fn injects hits the next one.
// Nil ends that.
func (f *Faulty) OnRequest(fn func(write bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = fn
}

// Counters returns how many requests were sent.
func (f *Faulty) Counters() Counters {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counters
}

// Close gives up the late writes that have not been sent yet, and waits for those that have. It is needed
// only after CommitLate. The store is not closed.
func (f *Faulty) Close() {
	f.end()
	f.late.Wait()
}

func (f *Faulty) change(what func(*plan)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what(&f.plan)
	close(f.changed)
	f.changed = make(chan struct{})
}

// fate is what one request meets. No fault: nothing.
type fate struct {
	fault           Fault
	delay, lateness time.Duration
}

// send counts a request and settles its fate.
func (f *Faulty) send(write bool) fate {
	f.mu.Lock()
	out := fate{delay: f.delay, lateness: f.lateness}
	if write {
		f.counters.Writes++
	} else {
		f.counters.Reads++
	}
	for i := range f.rules {
		if r := &f.rules[i]; r.left != 0 && r.on.include(write) && (write || !r.fault.writesOnly()) {
			if out.fault = r.fault; r.left > 0 {
				r.left--
			}
			break
		}
	}
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		hook(write)
	}
	return out
}

// Read implements lease.Store.
func (f *Faulty) Read(ctx context.Context) (lease.Snapshot, error) {
	return meet(ctx, f.send(false), func() (lease.Snapshot, error) {
		f.asking.Add(1)
		defer f.asking.Add(-1)
		return f.inner.Read(ctx)
	})
}

// Write implements lease.Store.
func (f *Faulty) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	fate := f.send(true)
	if fate.fault == CommitLate && ctx.Err() == nil {
		f.commitLate(r, prev, fate.lateness)
		return "", lost(ctx, CommitLate)
	}
	return meet(ctx, fate, func() (lease.Version, error) {
		f.asking.Add(1)
		defer f.asking.Add(-1)
		return f.inner.Write(ctx, r, prev)
	})
}

// busy: the store behind it has a request to answer.
func (f *Faulty) busy() bool { return f.asking.Load() > 0 }

// meet sends a request by way of its fate.
func meet[T any](ctx context.Context, t fate, send func() (T, error)) (answer T, err error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	switch t.fault {
	case Unavailable:
		return none, fmt.Errorf("%w: %v", ErrInjected, Unavailable)
	case LoseRequest:
		return none, lost(ctx, LoseRequest)
	}
	if err := sleep.For(ctx, t.delay/2); err != nil {
		return none, err
	}
	switch t.fault {
	case Conflict:
		return none, fmt.Errorf("%w (%w)", lease.ErrConflict, ErrInjected)
	case Refuse:
		return none, fmt.Errorf("%w (%w)", lease.ErrRefused, ErrInjected)
	}
	answer, err = send()
	switch t.fault {
	case LoseResponse:
		return none, lost(ctx, LoseResponse)
	case BreakResponse:
		return none, fmt.Errorf("%w: %v", ErrInjected, BreakResponse)
	}
	if slow := sleep.For(ctx, t.delay-t.delay/2); slow != nil {
		return none, slow
	}
	return answer, err
}

// lost waits for an answer that never comes.
func lost(ctx context.Context, fault Fault) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %v: %w", ErrInjected, fault, ctx.Err())
}

// lateTimeout bounds a late write: no caller waits for it.
const lateTimeout = 10 * time.Second

func (f *Faulty) commitLate(r lease.Record, prev lease.Version, after time.Duration) {
	r.Verdict = r.Verdict.Clone()
	f.late.Add(1)
	timer := time.AfterFunc(after, func() {
		defer f.late.Done()
		ctx, cancel := context.WithTimeout(f.root, lateTimeout)
		defer cancel()
		_, _ = f.inner.Write(ctx, r, prev)
	})
	context.AfterFunc(f.root, func() {
		if timer.Stop() {
			f.late.Done()
		}
	})
}

// Watch implements lease.Watcher.
func (f *Faulty) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	w, ok := f.inner.(lease.Watcher)
	if !ok {
		return errors.ErrUnsupported
	}
	f.mu.Lock()
	f.counters.Watches++
	f.mu.Unlock()
	return w.Watch(ctx, func(s lease.Snapshot) {
		held, ok := f.passes(ctx)
		if held { // what was under way is lost with the connection: the next one begins with the present
			if now, err := f.inner.Read(ctx); err == nil {
				s = now
			}
		}
		if ok {
			fn(s)
		}
	})
}

// Window implements lease.Limiter.
func (f *Faulty) Window(s lease.Settings) (time.Duration, error) {
	if l, ok := f.inner.(lease.Limiter); ok {
		return l.Window(s)
	}
	return s.Window(), nil
}

// Identity implements lease.Identified.
func (f *Faulty) Identity(ctx context.Context) (string, error) {
	if i, ok := f.inner.(lease.Identified); ok {
		return i.Identity(ctx)
	}
	return "", errors.ErrUnsupported
}

// Location implements lease.Located.
func (f *Faulty) Location() string {
	if l, ok := f.inner.(lease.Located); ok {
		return l.Location()
	}
	return fmt.Sprintf("%p", f.inner)
}

// passes holds a report back while watches are silent. ok is false when ctx has ended.
func (f *Faulty) passes(ctx context.Context) (held, ok bool) {
	for {
		f.mu.Lock()
		silent, delay, changed := f.silent, f.delay/2, f.changed
		for _, r := range f.rules {
			silent = silent || (r.fault == Unavailable && r.left < 0 && r.on.include(false))
		}
		f.mu.Unlock()
		if !silent {
			return held, sleep.For(ctx, delay) == nil
		}
		held = true
		select {
		case <-changed:
		case <-ctx.Done():
			return held, false
		}
	}
}

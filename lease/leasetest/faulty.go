package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
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
type Fault uint8

// The faults.
const (
	// Unavailable: the request fails at once and is not sent. If it is so for all reads, for Always, watches are silent too.
	Unavailable Fault = iota
	// LoseRequest: the request vanishes on its way; the client waits until its ctx ends.
	LoseRequest
	// LoseResponse: the request takes effect and the answer vanishes; the client waits until its ctx ends.
	LoseResponse
	// BreakResponse: the request takes effect and the connection breaks; the client gets an error at once.
	BreakResponse
	// Conflict: the write fails with lease.ErrConflict although nothing has changed. Writes only.
	Conflict
	// Refuse: the write fails with lease.ErrRefused. Writes only.
	Refuse
	// CommitLate: the write gets stuck; the client waits until its ctx ends. After the time of SetLateness, counted from
	// when it was sent, the write reaches the store and is committed if its condition still holds. Writes only.
	CommitLate
	// Slow: the request takes longer, by a random time. Only Randomly injects it; see also SetDelay.
	Slow

	faults
)

var faultNames = [faults]string{
	"unavailable", "lose-request", "lose-response", "break-response", "conflict", "refuse", "commit-late", "slow",
}

// String returns the fault in lower case.
func (f Fault) String() string {
	if f < faults {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", f)
}

func (f Fault) writesOnly() bool { return f == Conflict || f == Refuse || f == CommitLate }

// Counters are how many requests were sent, whatever became of them.
type Counters struct{ Reads, Writes, Watches int }

// Faulty breaks the connection of one party to any store: give the lease its Store instead. Without faults that is the
// store itself. It is safe for concurrent use; its times are those of package time, so it runs in virtual time under
// testing/synctest. Make it with NewFaulty.
type Faulty struct {
	inner lease.Store
	root  context.Context
	end   context.CancelFunc
	late  sync.WaitGroup

	mu       sync.Mutex
	counters Counters
	injected [faults]int
	plan
	hook    func(write bool)
	changed chan struct{} // closed and replaced when plan changes
}

// plan is what is to go wrong.
type plan struct {
	rules           []rule
	delay, lateness time.Duration
	silent          bool
	chance          *chance
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

// Inject makes the next n requests of that kind meet the fault; Always: until Heal; zero: none any more. Where several faults are
// due, the one that was injected first hits. A fault that is for writes only lets reads pass.
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

// SetDelay makes every request take d longer, half of it before it takes effect, and every report of a watch half of it.
func (f *Faulty) SetDelay(d time.Duration) { f.change(func(p *plan) { p.delay = d }) }

// SetLateness says how late CommitLate commits. Zero, the default: at once, as LoseResponse.
func (f *Faulty) SetLateness(d time.Duration) { f.change(func(p *plan) { p.lateness = d }) }

// SilenceWatch holds the reports of watches back, as a connection that swallows packets does, until it is called with false.
func (f *Faulty) SilenceWatch(silent bool) { f.change(func(p *plan) { p.silent = silent }) }

// Randomly makes each request meet one of the faults with probability p, as far as none is injected on purpose. Slow and CommitLate
// take up to longest. The n-th read and the n-th write always meet the same fate under the same seed, whatever is between them.
func (f *Faulty) Randomly(seed uint64, p float64, longest time.Duration) {
	f.change(func(plan *plan) { plan.chance = &chance{seed, p, longest} })
}

// Heal ends all faults. Late writes that are under way still arrive.
func (f *Faulty) Heal() { f.change(func(p *plan) { *p = plan{} }) }

// OnRequest calls fn before each request is sent, when its fate is sealed: what fn injects hits the next one. Nil ends that.
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

// Injected returns how many requests have met the fault.
func (f *Faulty) Injected(fault Fault) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.injected[fault]
}

// Close gives up the late writes that have not been sent yet, and waits for those that have. It is needed only after CommitLate.
// The store is not closed.
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

// fate is what one request meets. none as the fault: nothing.
type fate struct {
	fault           Fault
	delay, lateness time.Duration
}

const none = faults

// send counts a request and settles its fate.
func (f *Faulty) send(write bool) fate {
	f.mu.Lock()
	out := fate{fault: none, delay: f.delay, lateness: f.lateness}
	count := &f.counters.Reads
	if write {
		count = &f.counters.Writes
	}
	*count++
	for i := range f.rules {
		if r := &f.rules[i]; r.left != 0 && r.on.include(write) && (write || !r.fault.writesOnly()) {
			if out.fault = r.fault; r.left > 0 {
				r.left--
			}
			break
		}
	}
	if out.fault == none && f.chance != nil {
		f.chance.draw(&out, write, uint64(*count))
	}
	if out.fault != none {
		f.injected[out.fault]++
	}
	hook := f.hook
	f.mu.Unlock()
	if hook != nil {
		hook(write)
	}
	return out
}

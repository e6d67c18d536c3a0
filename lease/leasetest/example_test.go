package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// A lease whose time passes only when the test says so.
func ExampleClock() {
	clock := leasetest.NewClock()
	settings := lease.DefaultSettings()
	view := leasetest.NewMemory().View("a")
	l, err := lease.New(view, "a", settings, lease.Options{Clock: clock})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	l.Acquire(context.Background(), lease.Proposal{}, nil)
	view.SetUnavailable(true) // no heartbeat gets through
	clock.Advance(settings.Window() - time.Nanosecond)
	fmt.Println(l.Check())
	clock.Advance(time.Nanosecond)
	fmt.Println(l.Check())
	// Output:
	// true
	// false
}

// doer is all that singleInstanceAction needs of a lock: a *lock.Lock and a *lease.Lease have it, and so do their mocks.
type doer interface {
	Do(ctx context.Context, fn func(ctx context.Context) error) error
}

func singleInstanceAction(ctx context.Context, lock doer) (executed bool, err error) {
	err = lock.Do(ctx, func(context.Context) error { executed = true; return nil })
	return executed, err
}

// Code that takes a lock, tested in three lines for each answer that it may get.
func ExampleMock_Lock() {
	lock := leasetest.Open().Lock()
	fmt.Println(singleInstanceAction(context.Background(), lock))
	fmt.Println("released:", lock.WasReleased())

	lock = leasetest.Closed().Lock()
	fmt.Println(singleInstanceAction(context.Background(), lock))
	fmt.Println("released:", lock.WasReleased(), "asked:", lock.Attempts())

	lock = leasetest.Broken(errors.New("connection refused")).Lock()
	fmt.Println(singleInstanceAction(context.Background(), lock))
	// Output:
	// true <nil>
	// released: true
	// false lease: held by "somebody else"
	// released: false asked: 1
	// false connection refused
}

// held is all that the work needs of a lease.
type held interface {
	Acquire(ctx context.Context, p lease.Proposal, lost func(error)) lease.Outcome
	Check() bool
	Release(ctx context.Context) lease.ReleaseOutcome
}

// What does the code do when the lease is lost?
func ExampleMock() {
	work := func(l held) {
		stop := func(reason error) { fmt.Println("stop:", reason) }
		fmt.Println(l.Acquire(context.Background(), lease.Proposal{}, stop))
	}
	m := leasetest.Open()
	work(m)
	m.Lose(errors.New("cut off"))
	fmt.Println(m.Check(), m.Acquired(), m.Released())
	// Output:
	// granted (token 1)
	// stop: lease: lost: cut off
	// false 1 0
}

// Answers one after another; the last one repeats.
func ExampleScripted() {
	m := leasetest.Scripted(leasetest.Held("b"), leasetest.Unknown(errors.New("no answer")), leasetest.Granted())
	for range 4 {
		fmt.Println(m.Acquire(context.Background(), lease.Proposal{}, nil))
	}
	// Output:
	// held by "b" (token 1)
	// unknown: no answer
	// granted (token 1)
	// granted (token 2)
}

// The answer to the write that takes the lease is lost with its connection. That is not a lost lease.
func ExampleNewFaulty() {
	faulty := leasetest.NewFaulty(leasetest.NewMemory().View("a"))
	l, err := lease.New(faulty, "a", lease.DefaultSettings(), lease.Options{})
	if err != nil {
		panic(err)
	}
	defer l.Close()
	faulty.Inject(leasetest.Writes, leasetest.BreakResponse, 1)
	fmt.Println(l.Acquire(context.Background(), lease.Proposal{}, nil))
	fmt.Println(faulty.Counters(), faulty.Injected(leasetest.BreakResponse))
	// Output:
	// granted (token 1)
	// {2 1 0} 1
}

// A bad connection that is equally bad each time.
func ExampleFaulty_Randomly() {
	play := func() (fates []bool) {
		faulty := leasetest.NewFaulty(leasetest.NewMemory().View("a"))
		defer faulty.Close()
		faulty.Randomly(42, 0.5, time.Microsecond)
		for range 20 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			_, err := faulty.Read(ctx)
			fates = append(fates, err == nil)
			cancel()
		}
		return fates
	}
	first, second := play(), play()
	fmt.Println(slices.Contains(first, false), slices.Equal(first, second))
	// Output: true true
}

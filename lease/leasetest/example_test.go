package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
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
	_, _ = l.Acquire(context.Background(), lease.Proposal{})
	view.SetUnavailable(true) // no heartbeat gets through
	clock.Advance(settings.Window() - time.Nanosecond)
	fmt.Println(l.Check())
	clock.Advance(time.Nanosecond)
	fmt.Println(l.Check())
	// Output:
	// true
	// false
}

// doer is all that singleInstanceAction needs of a lock: a *lock.Lock has it, and so has its mock.
type doer interface {
	Do(ctx context.Context, fn func(ctx context.Context) error) error
}

func singleInstanceAction(ctx context.Context, lock doer) (executed bool, err error) {
	err = lock.Do(ctx, func(context.Context) error { executed = true; return nil })
	return executed, err
}

// Code that takes a lock, tested in three lines for each answer that it may get.
func ExampleMock() {
	lock := leasetest.Open()
	fmt.Println(singleInstanceAction(context.Background(), lock))
	fmt.Println("released:", lock.WasReleased())

	lock = leasetest.Closed()
	fmt.Println(singleInstanceAction(context.Background(), lock))
	fmt.Println("released:", lock.WasReleased(), "asked:", lock.Attempts())

	lock = leasetest.Broken(errors.New("connection refused"))
	fmt.Println(singleInstanceAction(context.Background(), lock))
	// Output:
	// true <nil>
	// released: true
	// false could not acquire lock: lease: held by "somebody else" (token 1)
	// released: false asked: 1
	// false could not acquire lock: connection refused
}

// What does the code do when the lock is lost?
func ExampleMock_Lose() {
	m := leasetest.Open()
	err := m.Do(context.Background(), func(ctx context.Context) error {
		m.Lose(errors.New("cut off"))
		return ctx.Err()
	})
	fmt.Println(err, m.Held(), m.Acquired(), m.Released())
	// Output: context canceled; lease: lost: cut off false 1 0
}

// Answers one after another; the last one repeats.
func ExampleScripted() {
	m := leasetest.Scripted(leasetest.Held("b"), errors.New("no answer"), nil)
	for range 4 {
		fmt.Println(m.Acquire(context.Background()))
	}
	m.Script(leasetest.Held("b"))
	fmt.Println(m.TryAcquire(context.Background()))
	// Output:
	// false <nil>
	// false could not acquire lock: no answer
	// true <nil>
	// true <nil>
	// false
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
	g, err := l.Acquire(context.Background(), lease.Proposal{})
	fmt.Println(g.Token(), err)
	fmt.Println(faulty.Counters())
	// Output:
	// 1 <nil>
	// {2 1 0}
}

// A store of one's own proves itself in a few lines of a test; RunLease is the half that checks the lease
// over it.
func ExampleRun() {
	harness := func(*testing.T) leasetest.Harness {
		store := leasetest.NewMemory() // yours
		return leasetest.Harness{Open: func(_ testing.TB, party string) lease.Store { return store.View(party) }}
	}
	_ = func(t *testing.T) { leasetest.Run(t, harness) }
	_ = func(t *testing.T) { leasetest.RunLease(t, harness) }
	// Output:
}

// All that a lock can do, its mock can: every acquire is the next answer of the script.
func ExampleMock_Held() {
	ctx := context.Background()
	lock := leasetest.Scripted(leasetest.Held("b"), nil)
	fmt.Println(lock.AcquireFor(ctx, time.Minute))
	fmt.Println(lock.AcquireForever(ctx))
	fmt.Println(lock.Owner(), lock.Held(), lock.Token())
	fmt.Println(lock.Release(ctx))
	fmt.Println(lock.AcquireWait(ctx), lock.AcquireWaitFor(ctx, time.Minute))
	fmt.Println(lock.ForceRelease(ctx))
	fmt.Println(lock.DoWait(ctx, func(ctx context.Context) error { return ctx.Err() }))
	fmt.Println(lock.Attempts(), lock.Acquired(), lock.Released())
	// Output:
	// false <nil>
	// true <nil>
	// mock true 1
	// true <nil>
	// <nil> <nil>
	// true <nil>
	// <nil>
	// 5 4 3
}

// Here nobody knows what became of the release.
func ExampleMock_BreakRelease() {
	ctx := context.Background()
	m := leasetest.Open()
	_, _ = m.Acquire(ctx)
	m.BreakRelease(context.DeadlineExceeded)
	fmt.Println(m.Release(ctx))
	fmt.Println(m.Held())
	// Output:
	// false could not release lock: context deadline exceeded
	// false
}

// What else can go wrong: slow answers, writes that are committed after the client gave up, a watch that
// stands still.
func ExampleFaulty() {
	store := leasetest.NewMemory()
	faulty := leasetest.NewFaulty(store.View("a"))
	defer faulty.Close()
	faulty.OnRequest(func(write bool) { fmt.Println("request, write:", write) })
	faulty.SetDelay(time.Millisecond)
	faulty.CommitLate(1, 300*time.Millisecond)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := faulty.Write(ctx, lease.Record{Holder: "a", Token: 1}, "")
	fmt.Printf("%t holder: %q\n", err != nil, store.Snapshot().Record.Holder)
	for store.Snapshot().Record.Holder == "" {
		time.Sleep(time.Millisecond)
	}
	fmt.Printf("holder: %q\n", store.Snapshot().Record.Holder)
	faulty.SilenceWatch(true)
	fmt.Println(faulty.Watch(ctx, func(lease.Snapshot) { fmt.Println("never") }) != nil)
	faulty.Heal()
	now, err := faulty.Read(context.Background())
	fmt.Println(now.Record.Holder, err)
	// Output:
	// request, write: true
	// true holder: ""
	// holder: "a"
	// true
	// request, write: false
	// a <nil>
}

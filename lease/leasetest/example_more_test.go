package leasetest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// A store of one's own proves itself in three lines of a test.
func ExampleRun() {
	_ = func(t *testing.T) {
		leasetest.Run(t, func(*testing.T) leasetest.Harness {
			store := leasetest.NewMemory() // yours
			return leasetest.Harness{Open: func(_ testing.TB, party string) lease.Store { return store.View(party) }}
		})
	}
	// Output:
}

// In two halves: what a store must do, and what the lease does over it.
func ExampleRunStore() {
	harness := func(*testing.T) leasetest.Harness {
		store := leasetest.NewMemory()
		return leasetest.Harness{
			Open:   func(_ testing.TB, party string) lease.Store { return store.View(party) },
			Delete: func(testing.TB) { store.Delete() },
		}
	}
	_ = func(t *testing.T) { leasetest.RunStore(t, harness) }
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

// What else can go wrong: slow answers, writes that are committed after the client gave up, a watch that stands still.
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
	// Output:
	// request, write: true
	// true holder: ""
	// holder: "a"
	// true
}

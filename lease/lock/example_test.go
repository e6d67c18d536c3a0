package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/lock"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

var ctx = context.Background()

// must is for examples.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Two instances, one lock.
func Example() {
	store := leasetest.NewMemory()
	a := must(lock.New(store.View("a"), lock.Config{}))
	b := must(lock.New(store.View("b"), lock.Config{}))
	defer a.Close()
	defer b.Close()

	fmt.Println("a acquires:", must(a.Acquire(ctx)))
	fmt.Println("b acquires:", must(b.Acquire(ctx)))
	fmt.Println("a again:   ", must(a.Acquire(ctx)))
	fmt.Println("b releases:", must(b.Release(ctx)))
	fmt.Println("a releases:", must(a.Release(ctx)))
	fmt.Println("b acquires:", must(b.Acquire(ctx)))
	// Output:
	// a acquires: true
	// b acquires: false
	// a again:    false
	// b releases: false
	// a releases: true
	// b acquires: true
}

// Run something if nobody else does, and be told when to stop.
func ExampleLock_Do() {
	store := leasetest.NewMemory()
	a := must(lock.New(store.View("a"), lock.Config{KeepAlive: true}))
	b := must(lock.New(store.View("b"), lock.Config{KeepAlive: true}))
	defer a.Close()
	defer b.Close()

	err := a.Do(ctx, func(ctx context.Context) error {
		fmt.Println("working under token", a.Token())
		err := b.Do(ctx, func(context.Context) error { fmt.Println("never printed"); return nil })
		fmt.Println("b is refused:", errors.Is(err, lock.ErrHeld))
		return ctx.Err() // context.Cause(ctx) says why the lock is gone
	})
	fmt.Println(err, a.Held())
	// Output:
	// working under token 1
	// b is refused: true
	// <nil> false
}

// Take turns.
func ExampleLock_DoWait() {
	store := leasetest.NewMemory()
	a := must(lock.New(store.View("a"), lock.Config{}))
	b := must(lock.New(store.View("b"), lock.Config{}))
	defer a.Close()
	defer b.Close()

	done := make(chan error)
	_ = a.Do(ctx, func(context.Context) error {
		go func() {
			done <- b.DoWait(ctx, func(context.Context) error { fmt.Println("then b"); return nil })
		}()
		fmt.Println("first a")
		return nil
	})
	fmt.Println(<-done)
	// Output:
	// first a
	// then b
	// <nil>
}

func ExampleLock_AcquireFor() {
	store := leasetest.NewMemory()
	k := must(lock.New(store.View("a"), lock.Config{Type: lock.Reentrant}))
	defer k.Close()

	fmt.Println(must(k.AcquireFor(ctx, 3*time.Minute)), store.Snapshot().Record.TTL)
	fmt.Println(must(k.AcquireFor(ctx, time.Hour)), store.Snapshot().Record.TTL)
	fmt.Println(must(k.AcquireForever(ctx)), store.Snapshot().Record.TTL, "is for ever")
	_, err := k.AcquireFor(ctx, time.Nanosecond)
	fmt.Println(errors.Is(err, lease.ErrRefused))
	// Output:
	// true 3m0s
	// true 1h0m0s
	// true 0s is for ever
	// true
}

// Yes, no, and nobody knows.
func ExampleLock_Acquire() {
	store := leasetest.NewMemory()
	k := must(lock.New(store.View("a"), lock.Config{OperationTimeout: 10 * time.Millisecond}))
	defer k.Close()

	store.View("a").Inject(leasetest.All, leasetest.LoseResponse, leasetest.Always)
	_, err := k.Acquire(ctx)
	fmt.Println("an error:", err != nil, "held:", k.Held())
	fmt.Println("or simply no:", k.TryAcquire(ctx))
	store.View("a").Heal()
	fmt.Println("now yes:", must(k.Acquire(ctx)))
	// Output:
	// an error: true held: false
	// or simply no: false
	// now yes: true
}

// An administrator takes a lock away, or frees it.
func ExampleLock_ForceRelease() {
	store := leasetest.NewMemory()
	k := must(lock.New(store.View("a"), lock.Config{Owner: "a"}))
	admin := must(lock.New(store.View("admin"), lock.Config{Type: lock.Overriding, Owner: "admin"}))
	defer k.Close()
	defer admin.Close()

	_ = must(k.AcquireForever(ctx))
	fmt.Println(must(admin.Acquire(ctx)), "held by", store.Snapshot().Record.Holder, "under token",
		admin.Token())
	fmt.Println(must(k.ForceRelease(ctx)), must(k.ForceRelease(ctx)))
	// Output:
	// true held by admin under token 2
	// true false
}

// Locks by name, over any backend.
func ExampleManager() {
	m := must(lock.NewManager(lock.ManagerConfig{
		Open:   memory.Factory(), // or that of another backend: kubernetes.Factory(log), file.Factory(log)
		System: "billing",
		Lock:   lock.Config{Duration: 10 * time.Minute, KeepAlive: true},
	}))
	defer m.Close()

	invoices, reports := must(m.Lock(ctx, "invoices")), must(m.ReentrantLock(ctx, "reports"))
	fmt.Println(must(invoices.Acquire(ctx)), must(reports.Acquire(ctx)), must(reports.Acquire(ctx)))
	fmt.Println(m.ForceReleaseAll(ctx))
	// Output:
	// true true true
	// [invoices reports] <nil>
}

// All locks of this process are one owner: any of them may release.
func ExampleProcessOwner() {
	store := leasetest.NewMemory()
	cfg := lock.Config{Type: lock.Reentrant, Owner: lock.ProcessOwner()}
	one, other := must(lock.New(store.View("1"), cfg)), must(lock.New(store.View("2"), cfg))
	defer one.Close()
	defer other.Close()

	fmt.Println(must(one.Acquire(ctx)), must(other.Acquire(ctx)), must(one.Release(ctx)),
		must(other.Release(ctx)))
	// Output: true true true false
}

func ExampleLock_AcquireWait() {
	store := leasetest.NewMemory()
	a := must(lock.New(store.View("a"), lock.Config{Owner: "a"}))
	b := must(lock.New(store.View("b"), lock.Config{Owner: "b"}))
	defer a.Close()
	defer b.Close()

	fmt.Println(a.AcquireWait(ctx))
	soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	err := b.AcquireWait(soon)
	fmt.Println(errors.Is(err, lock.ErrHeld), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// <nil>
	// true true
}

// What is wrong with a configuration, all at once.
func ExampleConfig_Validate() {
	cfg := lock.DefaultConfig()
	cfg.Duration, cfg.OperationTimeout = time.Nanosecond, -1
	fmt.Println(len(cfg.Validate().Error()) > 0)
	// Output: true
}

// Waiting, for a time of one's own; an administrator's lock under the same name.
func ExampleLock_AcquireWaitFor() {
	m := must(lock.NewManager(lock.ManagerConfig{Open: memory.Factory(), Lock: lock.Config{Owner: "a"}}))
	defer m.Close()
	k, admin := must(m.Lock(ctx, "backup")), must(m.OverridingLock(ctx, "backup"))
	fmt.Println(k.AcquireWaitFor(ctx, time.Minute), k.Owner())
	fmt.Println(must(admin.Release(ctx)))
	// Output:
	// <nil> a
	// true
}

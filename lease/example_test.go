package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// open returns the lease of owner over one store in memory.
func open(store *leasetest.Memory, owner string) *lease.Lease {
	l, err := lease.New(store.View(owner), owner, lease.DefaultSettings(), lease.Options{})
	if err != nil {
		panic(err)
	}
	return l
}

// A plain lock: acquire, check before each thing that needs it, release.
func ExampleLease() {
	store := leasetest.NewMemory()
	a, b := open(store, "a"), open(store, "b")
	defer a.Close()
	defer b.Close()
	ctx := context.Background()

	grant, err := a.Acquire(ctx, lease.Proposal{})
	fmt.Println(grant.Token(), err, a.Check())
	_, err = b.Acquire(ctx, lease.Proposal{})
	fmt.Println(err, b.Check())
	err = grant.Release(ctx)
	<-grant.Done() // or a loss: stop working
	fmt.Println(err, a.Check(), grant.Lost(), grant.Err())
	grant, err = b.Acquire(ctx, lease.Proposal{})
	fmt.Println(grant.Token(), err)
	// Output:
	// 1 <nil> true
	// lease: held by "a" (token 1) false
	// <nil> false <nil> lease: lost: released by its owner
	// 2 <nil>
}

// Two sides of a partition propose; the second learns from the record that it has lost, even after the release.
func ExampleLease_Acquire_verdict() {
	store := leasetest.NewMemory()
	a, d := open(store, "a"), open(store, "d")
	defer a.Close()
	defer d.Close()
	ctx := context.Background()
	now, err := d.Read(ctx)
	if err != nil {
		panic(err)
	}

	grant, err := a.Acquire(ctx, lease.Proposal{Base: now.Token, Verdict: &sbr.Verdict{
		Survivors: []sbr.ID{"a", "b", "c"}, Down: []sbr.ID{"d", "e"}, DecidedBy: "a", Reason: "the majority",
	}})
	fmt.Println(grant.Token(), err)
	fmt.Println(grant.Release(ctx))
	_, err = d.Acquire(ctx, lease.Proposal{Base: now.Token, Verdict: &sbr.Verdict{Survivors: []sbr.ID{"d", "e"}}})
	var held *lease.HeldError
	fmt.Println(errors.As(err, &held), err)
	fmt.Println("d is out:", held.Record.Verdict.Standing("d", 0) == sbr.Out)
	// Output:
	// 1 <nil>
	// <nil>
	// true lease: held: superseded by token 1 (holder "")
	// d is out: true
}

// A store that cannot be reached is neither yes nor no.
func ExampleOutcomeOf() {
	store := leasetest.NewMemory()
	a := open(store, "a")
	defer a.Close()
	store.View("a").SetUnavailable(true)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := a.Acquire(ctx, lease.Proposal{})
	fmt.Println(lease.OutcomeOf(err), a.Check())
	// Output: unknown false
}

// Watch reports the record, and each change of it.
func ExampleLease_Watch() {
	store := leasetest.NewMemory()
	a, b := open(store, "a"), open(store, "b")
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(context.Background())
	_, _ = a.Acquire(ctx, lease.Proposal{})
	_ = b.Watch(ctx, func(r lease.Record) {
		fmt.Printf("holder %q under token %d\n", r.Holder, r.Token)
		if r.Holder == "" {
			cancel()
			return
		}
		_ = a.Release(ctx)
	})
	// Output:
	// holder "a" under token 1
	// holder "" under token 1
}

package lease_test

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
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

	out := a.Acquire(ctx, lease.Proposal{}, func(reason error) { fmt.Println("stop working:", reason) })
	fmt.Println(out, a.Check(), a.Token())
	fmt.Println(b.Acquire(ctx, lease.Proposal{}, nil), b.Check())
	fmt.Println(a.Release(ctx), a.Check())
	fmt.Println(b.Acquire(ctx, lease.Proposal{}, nil))
	// Output:
	// granted (token 1) true 1
	// held by "a" (token 1) false
	// released false
	// granted (token 2)
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

	fmt.Println(a.Acquire(ctx, lease.Proposal{Base: now.Token, Verdict: &sbr.Verdict{
		Survivors: []sbr.ID{"a", "b", "c"}, Down: []sbr.ID{"d", "e"}, DecidedBy: "a", Reason: "the majority",
	}}, nil))
	fmt.Println(a.Release(ctx))
	out := d.Acquire(ctx, lease.Proposal{Base: now.Token, Verdict: &sbr.Verdict{Survivors: []sbr.ID{"d", "e"}}}, nil)
	fmt.Println(out)
	fmt.Println("d is", out.Record.Verdict.Standing("d", 0))
	// Output:
	// granted (token 1)
	// released
	// held: superseded by token 1 (holder "")
	// d is out
}

// A store that cannot be reached is neither yes nor no.
func ExampleOutcome_unknown() {
	store := leasetest.NewMemory()
	a := open(store, "a")
	defer a.Close()
	store.View("a").SetUnavailable(true)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	out := a.Acquire(ctx, lease.Proposal{}, nil)
	fmt.Println(out.Kind, a.Check())
	// Output: unknown false
}

// Watch reports the record, and each change of it.
func ExampleLease_Watch() {
	store := leasetest.NewMemory()
	a, b := open(store, "a"), open(store, "b")
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(context.Background())
	a.Acquire(ctx, lease.Proposal{}, nil)
	_ = b.Watch(ctx, func(r lease.Record) {
		fmt.Printf("holder %q under token %d\n", r.Holder, r.Token)
		if r.Holder == "" {
			cancel()
			return
		}
		a.Release(ctx)
	})
	// Output:
	// holder "a" under token 1
	// holder "" under token 1
}

// A third party registers its store under a key of the configuration.
func ExampleRegistry() {
	registry := lease.NewRegistry()
	registry.Register("memory", memory.Factory())
	ctx, spec := context.Background(), lease.Spec{System: "payments", Name: "payments-sbr", Owner: "node-1"}

	store, err := registry.Open(ctx, "memory", spec)
	if err != nil {
		panic(err)
	}
	l, err := lease.New(store, spec.Owner, lease.DefaultSettings(), lease.Options{})
	fmt.Println(l.Owner(), err)
	l.Close()
	_, err = registry.Open(ctx, "zookeeper", spec)
	fmt.Println(err)
	// Output:
	// node-1 <nil>
	// lease: unknown implementation "zookeeper" (known: memory)
}

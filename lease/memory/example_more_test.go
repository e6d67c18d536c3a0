package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// Every party has a view of its own, with faults of its own.
func ExampleView() {
	store := memory.NewStore()
	a, b := store.View("a"), store.View("b")
	ctx := context.Background()

	first, err := a.Write(ctx, lease.Record{Holder: "a", Token: 1}, "")
	fmt.Println(first.Record.Holder, err)
	_, err = b.Write(ctx, lease.Record{Holder: "b", Token: 1}, "") // "" means: only if there is none
	fmt.Println(err)

	b.SetUnavailable(true)
	_, err = b.Read(ctx)
	fmt.Println(err != nil)
	b.Heal()
	now, err := b.Read(ctx)
	fmt.Println(now.Record.Holder, err)
	fmt.Printf("%+v\n", b.Counters())
	// Output:
	// a <nil>
	// lease: the version has moved on
	// true
	// a <nil>
	// {Reads:2 Writes:1 Watches:0}
}

// The faults of a real store: what is lost, refused, late or slow, for the next so many requests or memory.Always.
func ExampleView_CommitLate() {
	store := memory.NewStore()
	v := store.View("a")
	try := func(what string) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := v.Write(ctx, lease.Record{Holder: "a", Token: 1}, store.Snapshot().Version)
		fmt.Printf("%s: error %t, written %t\n", what, err != nil, store.Snapshot().Record.Holder != "")
		v.Heal()
		store.Restore(lease.Record{})
	}
	v.SpareReads(true)
	v.LoseRequests(1)
	try("request lost")
	v.SpareWrites(false)
	v.LoseResponses(1)
	try("answer lost")
	v.Conflict(1)
	try("conflict")
	v.Refuse(1)
	try("refused")
	v.SetDelay(time.Second)
	try("slow")
	v.CommitLate(1, time.Hour)
	try("late")
	// Output:
	// request lost: error true, written false
	// answer lost: error true, written true
	// conflict: error true, written false
	// refused: error true, written false
	// slow: error true, written false
	// late: error true, written false
}

// What an operator, or a backup, does to the record behind everybody's back.
func ExampleStore_Restore() {
	store := memory.NewStore()
	store.OnCommit(func(r lease.Record) { fmt.Printf("%q %d\n", r.Holder, r.Token) })
	backup := lease.Record{Token: 1}
	store.Restore(lease.Record{Holder: "a", Token: 7})
	store.Touch() // another version of the same
	store.Restore(backup)
	store.Delete()
	fmt.Println(store.Snapshot().Version == "", len(store.History()))
	// Output:
	// "a" 7
	// "" 1
	// "" 0
	// true 3
}

// A watch reports each change; here it is silenced, as that of a store which stands still.
func ExampleView_Watch() {
	store := memory.NewStore()
	v := store.View("a")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	v.SilenceWatch(true)
	err := v.Watch(ctx, func(lease.Snapshot) { fmt.Println("never") })
	fmt.Println(err)
	// Output: context deadline exceeded
}

// As an implementation under a key.
func ExampleFactory() {
	registry := lease.NewRegistry()
	registry.Register("memory", memory.Factory())
	_, err := registry.Open(context.Background(), "memory", lease.Spec{Name: "payments-sbr", Owner: "a"})
	fmt.Println(registry.Keys(), err)
	// Output: [memory] <nil>
}

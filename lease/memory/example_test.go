package memory_test

import (
	"context"
	"fmt"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// Every write names the version that it replaces.
func ExampleStore() {
	store := memory.NewStore()
	ctx, cancel := context.WithCancel(context.Background())
	first, err := store.Write(ctx, lease.Record{Holder: "a", Token: 1}, "") // "": only if there is none
	fmt.Println(first != "", err)
	_, err = store.Write(ctx, lease.Record{Holder: "b", Token: 1}, "")
	fmt.Println(err)
	now, err := store.Read(ctx)
	fmt.Println(now.Record.Holder, err)
	err = store.Watch(ctx, func(s lease.Snapshot) { fmt.Println("seen:", s.Record.Holder); cancel() })
	fmt.Println(err)
	// Output:
	// true <nil>
	// lease: the version has moved on
	// a <nil>
	// seen: a
	// context canceled
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

// As an implementation under a key.
func ExampleFactory() {
	lease.Register("memory", memory.Factory())
	_, err := lease.Open(context.Background(), "memory", lease.Spec{Name: "payments-sbr", Owner: "a"})
	fmt.Println(lease.Implementations(), err)
	// Output: [memory] <nil>
}

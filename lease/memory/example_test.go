package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// A test of what a program does when the answer to its acquire is lost.
func ExampleView_LoseResponses() {
	store := memory.NewStore()
	view := store.View("a")
	l, err := lease.New(view, "a", lease.Settings{
		HeartbeatTimeout: 10 * time.Second, HeartbeatInterval: time.Second, OperationTimeout: 50 * time.Millisecond,
	}, lease.Options{})
	if err != nil {
		panic(err)
	}
	defer l.Close()

	view.LoseResponses(memory.Always)
	out := l.Acquire(context.Background(), lease.Proposal{}, nil)
	fmt.Println(out.Kind, l.Check())
	view.Heal()
	fmt.Println(l.Acquire(context.Background(), lease.Proposal{}, nil).Kind, l.Check())
	// Output:
	// unknown false
	// granted true
}

package leasetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// A lease whose time passes only when the test says so.
func ExampleClock() {
	clock := leasetest.NewClock()
	settings := lease.DefaultSettings()
	view := memory.NewStore().View("a")
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

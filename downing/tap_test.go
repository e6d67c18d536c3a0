package downing

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"
)

func nobodys(serf.Event) bool { return false }

func userEvent(i int) serf.UserEvent {
	return serf.UserEvent{LTime: serf.LamportTime(i), Name: fmt.Sprint(i)}
}

// The sender of events is never blocked, however slow the application is; the application still gets all of
// them, in order.
func TestTap_SlowReaderBlocksNobodyAndMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := make(chan serf.Event)
		tap := newTap(app, nobodys)
		const n = 5000 // far more than all buffers together
		for i := range n {
			tap.in <- userEvent(i)
		}
		for i := range n {
			require.Equal(t, userEvent(i), <-app)
		}
		tap.close()
	})
}

// An application that never reads costs memory, and nothing else: not even the end of the tap waits for it.
func TestTap_UnreadChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := newTap(make(chan serf.Event), nobodys)
		for i := range 3000 {
			tap.in <- userEvent(i)
		}
		tap.close()
	})
}

// Without a channel of the application events are looked at and dropped.
func TestTap_WithoutAnApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := 0
		tap := newTap(nil, func(serf.Event) bool { seen++; return false })
		for i := range 3000 {
			tap.in <- userEvent(i)
		}
		tap.close()
		require.Equal(t, 3000, seen)
		require.Empty(t, tap.out.queue)
	})
}

// What the resolver owns does not reach the application; everything else does, and the resolver has seen it
// before.
func TestTap_OwnEventsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := make(chan serf.Event, 10)
		var seen []string
		tap := newTap(app, func(e serf.Event) bool {
			u := e.(serf.UserEvent)
			seen = append(seen, u.Name)
			return u.LTime%2 == 1
		})
		for i := range 4 {
			tap.in <- userEvent(i)
		}
		synctest.Wait()
		require.Equal(t, []string{"0", "1", "2", "3"}, seen)
		require.Len(t, app, 2)
		require.Equal(t, userEvent(0), <-app)
		require.Equal(t, userEvent(2), <-app)
		tap.close()
	})
}

// Serf's goroutines end only once their last send succeeded: the tap goes on reading for a while after its
// end was asked for.
func TestTap_ReadsOnWhileItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := newTap(nil, nobodys)
		sent := make(chan int)
		go func() {
			defer close(sent)
			for i := range 2000 { // more than the channel holds
				tap.in <- userEvent(i)
				if i%1000 == 0 {
					time.Sleep(drainFor / 4)
				}
			}
		}()
		tap.close()
		<-sent
		tap.close() // a second time is harmless
	})
}

// The first event is how Start knows that events come this way.
func TestTap_FirstEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap := newTap(nil, nobodys)
		synctest.Wait()
		select {
		case <-tap.first:
			t.Fatal("there was none")
		default:
		}
		tap.in <- userEvent(1)
		<-tap.first
		tap.close()
	})
}

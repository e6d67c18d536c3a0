package downing

import (
	"math"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"
)

// tap stands between Serf and the application's event channel. Serf holds its locks while it sends an event,
// so an unread channel freezes the node: the tap always reads, and hands on through a queue without a bound.
type tap struct {
	in   chan serf.Event
	app  chan<- serf.Event
	seen func(serf.Event) (own bool)

	out     serial // to the application
	stop    chan struct{}
	stopped sync.Once
	done    sync.WaitGroup
	begun   sync.Once
	first   chan struct{} // closed by the first event
}

// drainFor is how long events are still taken in after Serf has shut down: its goroutines end only once their
// last send succeeded.
const drainFor = time.Second

// newTap starts a tap. seen is called with each event, one at a time, and must not block; an event it owns is
// not handed on.
func newTap(app chan<- serf.Event, seen func(serf.Event) bool) *tap {
	t := &tap{in: make(chan serf.Event, 1024), app: app, seen: seen, stop: make(chan struct{}),
		first: make(chan struct{})}
	t.done.Go(t.read)
	return t
}

func (t *tap) read() {
	var quiet <-chan time.Time // once Serf has shut down
	for stop := t.stop; ; {
		select {
		case e := <-t.in:
			t.begun.Do(func() { close(t.first) })
			t.take(e)
		case <-stop:
			stop, quiet = nil, time.After(drainFor)
		case <-quiet:
			return
		}
	}
}

func (t *tap) take(e serf.Event) {
	if t.seen(e) || t.app == nil {
		return
	}
	t.out.post(func() {
		if isClosed(t.stop) {
			return
		}
		select {
		case t.app <- e:
		case <-t.stop:
		}
	}, math.MaxInt)
}

// close ends the tap. Call it only after Serf has shut down, or before it was created.
func (t *tap) close() {
	t.stopped.Do(func() { close(t.stop) })
	t.done.Wait()
}

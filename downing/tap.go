package downing

import (
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"
)

// tap stands between Serf and the application's event channel. Serf holds its locks while it sends an event, so an unread
// channel freezes the node: the tap always reads, and hands on through a queue without a bound.
type tap struct {
	in   chan serf.Event
	app  chan<- serf.Event
	seen func(serf.Event) (own bool)

	mu      sync.Mutex
	queue   []serf.Event
	more    chan struct{}
	stop    chan struct{}
	stopped sync.Once
	done    sync.WaitGroup
	first   chan struct{} // closed by the first event
}

// drainFor is how long events are still taken in after Serf has shut down: its goroutines end only once their last send succeeded.
const drainFor = time.Second

// newTap starts a tap. seen is called with each event, one at a time, and must not block; an event it owns is not handed on.
func newTap(app chan<- serf.Event, seen func(serf.Event) bool) *tap {
	t := &tap{in: make(chan serf.Event, 1024), app: app, seen: seen, more: make(chan struct{}, 1), stop: make(chan struct{}), first: make(chan struct{})}
	t.done.Go(t.read)
	if app != nil {
		t.done.Go(t.forward)
	}
	return t
}

func (t *tap) read() {
	select {
	case e := <-t.in:
		close(t.first)
		t.take(e)
	case <-t.stop:
	}
	for {
		select {
		case e := <-t.in:
			t.take(e)
		case <-t.stop:
			t.drain()
			return
		}
	}
}

func (t *tap) drain() {
	quiet := time.NewTimer(drainFor)
	defer quiet.Stop()
	for {
		select {
		case e := <-t.in:
			t.take(e)
		case <-quiet.C:
			return
		}
	}
}

func (t *tap) take(e serf.Event) {
	if t.seen(e) || t.app == nil {
		return
	}
	t.mu.Lock()
	t.queue = append(t.queue, e)
	t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
}

func (t *tap) forward() {
	for {
		e, ok := t.next()
		if !ok {
			select {
			case <-t.more:
				continue
			case <-t.stop:
				return
			}
		}
		select {
		case t.app <- e:
		case <-t.stop:
			return
		}
	}
}

func (t *tap) next() (serf.Event, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return nil, false
	}
	e := t.queue[0]
	t.queue[0] = nil // do not keep it until the queue is moved
	t.queue = t.queue[1:]
	return e, true
}

// close ends the tap. Call it only after Serf has shut down, or before it was created.
func (t *tap) close() {
	t.stopped.Do(func() { close(t.stop) })
	t.done.Wait()
}

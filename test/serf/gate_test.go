package serf_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
)

// gate is what a process has to pass before it does anything that others can notice. It stands in for SIGSTOP
// and SIGKILL, which can only be sent to a whole operating system process.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // not nil while the process is paused
	dead   bool
}

// pass waits while the process is paused. It reports false once the process is dead.
func (g *gate) pass() bool {
	for {
		g.mu.Lock()
		closed, dead := g.closed, g.dead
		g.mu.Unlock()
		if dead || closed == nil {
			return !dead
		}
		<-closed
	}
}

func (g *gate) paused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed != nil
}

// pause closes the gate. It reports false if it was closed before.
func (g *gate) pause() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead || g.closed != nil {
		return false
	}
	g.closed = make(chan struct{})
	return true
}

func (g *gate) resume() { g.open(false) }
func (g *gate) kill()   { g.open(true) }

func (g *gate) open(dead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead = g.dead || dead
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// transport holds Serf's probing up while the process is paused: a stopped process suspects no member.
// Whatever else Serf wants to send is held by the frozen network; it must not wait here, because Serf sends
// some of it with its locks held.
type transport struct {
	*memnet.Transport
	gate *gate
}

var _ memberlist.NodeAwareTransport = (*transport)(nil)

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if t.gate.paused() && probing() {
		t.gate.pass()
	}
	return t.Transport.WriteToAddress(b, a)
}

// probing reports whether the caller is memberlist's prober, which holds no lock while it sends.
func probing() bool {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, ".(*Memberlist).probeNode") {
			return true
		}
		if !more {
			return false
		}
	}
}

// errDead is what a dead process would hear from its store, if it could hear.
var errDead = errors.New("this process is dead")

// underWay is how long a request may be under way.
const underWay = 30 * time.Second

// connection is a process's way to the lease store. A request that was sent still arrives when the process
// has died or given it up.
type connection struct {
	view *leasetest.Faulty
	gate *gate
}

var _ lease.Watcher = (*connection)(nil)

// Read implements lease.Store.
func (c *connection) Read(ctx context.Context) (lease.Snapshot, error) {
	return send(ctx, c.gate, c.view.Read)
}

// Write implements lease.Store.
func (c *connection) Write(ctx context.Context, r lease.Record, prev lease.Version) (lease.Version, error) {
	r.Verdict = r.Verdict.Clone()
	return send(ctx, c.gate,
		func(ctx context.Context) (lease.Version, error) { return c.view.Write(ctx, r, prev) })
}

func send[T any](ctx context.Context, g *gate, request func(context.Context) (T, error)) (T, error) {
	var none T
	if !g.pass() {
		return none, errDead
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	type answer struct {
		s   T
		err error
	}
	answered := make(chan answer, 1)
	under, cancel := context.WithTimeout(context.WithoutCancel(ctx), underWay)
	go func() {
		defer cancel()
		s, err := request(under)
		answered <- answer{s, err}
	}()
	select {
	case a := <-answered:
		if !g.pass() {
			return none, errDead
		}
		return a.s, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Watch implements lease.Watcher.
func (c *connection) Watch(ctx context.Context, fn func(lease.Snapshot)) error {
	return c.view.Watch(ctx, func(s lease.Snapshot) {
		if c.gate.pass() {
			fn(s)
		}
	})
}

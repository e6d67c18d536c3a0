package clustertest

import "sync"

// Gate blocks the callers that pass it while it is closed. The zero Gate is open. It is safe for concurrent
// use.
type Gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil: open
}

// Pass returns at once, or when the gate is opened.
func (g *Gate) Pass() {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed != nil {
		<-closed
	}
}

// Close closes the gate, if it is not.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

// Open lets all blocked callers go on.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// Gates are a gate for each member. The zero Gates are open. They are safe for concurrent use.
type Gates struct {
	mu    sync.Mutex
	gates map[string]*Gate
}

// Of returns the gate of a member.
func (g *Gates) Of(name string) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates == nil {
		g.gates = make(map[string]*Gate)
	}
	if g.gates[name] == nil {
		g.gates[name] = new(Gate)
	}
	return g.gates[name]
}

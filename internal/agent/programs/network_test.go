package programs_test

import (
	"context"
	"net"
	"sync"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// conn is one end of a connection in memory, with an address. While it is frozen nothing comes through.
type conn struct {
	net.Conn
	peer string
	gate *clustertest.Gate
}

func (c conn) RemoteAddr() net.Addr { return addr(c.peer) }

func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.Pass()
	return n, err
}

func (c conn) Write(p []byte) (int, error) {
	c.gate.Pass()
	return c.Conn.Write(p)
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// listener takes connections in memory.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
	gate  clustertest.Gate
	peer  string

	mu   sync.Mutex
	open []net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *listener) Addr() net.Addr { return addr("127.0.0.1:7380") }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	l.mu.Lock()
	l.open = append(l.open, ours, theirs)
	l.mu.Unlock()
	select {
	case l.conns <- conn{theirs, l.peer, &l.gate}:
		return ours, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// cut ends all connections, as a reset does.
func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

package memnet

import (
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// stream is a connection; its two ends are what the hosts hold. Everything in it is guarded by the lock of
// the network, so that a cut is one instant for packets and streams alike.
type stream struct {
	net  *Network
	ends [2]*conn
	wake chan struct{} // closed and replaced on each change that a waiter may wait for
}

// conn is one end. Bytes wait at the receiving end, and are shown to its reader when their time has come
// and the path is open.
type conn struct {
	stream *stream
	owner  *Transport
	peer   *conn

	inbox  []chunk
	lastAt time.Time // arrival of the youngest chunk; none may overtake it
	fin    time.Time // arrival of the peer's close; zero while the peer is open

	closed                      bool
	readDeadline, writeDeadline time.Time
}

type chunk struct {
	data []byte
	at   time.Time
}

var _ net.Conn = (*conn)(nil)

func newStream(n *Network, a, b *Transport) (*conn, *conn) {
	s := &stream{net: n, wake: make(chan struct{})}
	ca := &conn{stream: s, owner: a}
	cb := &conn{stream: s, owner: b, peer: ca}
	ca.peer = cb
	s.ends = [2]*conn{ca, cb}
	return ca, cb
}

func (s *stream) wakeAll() {
	close(s.wake)
	s.wake = make(chan struct{})
}

func (c *conn) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.owner.addr) }
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.peer.owner.addr) }

func (c *conn) Read(b []byte) (int, error) {
	for {
		got, next, wake, err := c.readStep(b)
		if got > 0 || err != nil || len(b) == 0 {
			return got, err
		}
		waitUntil(next, wake)
	}
}

// readStep reads what can be read now; without a byte and an error the caller is to come again at next
// (zero: never by itself) or when wake is closed.
func (c *conn) readStep(b []byte) (got int, next time.Time, wake <-chan struct{}, err error) {
	n := c.stream.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if c.closed {
		return 0, next, nil, c.opError("read", net.ErrClosed)
	}
	if expired(c.readDeadline, now) {
		return 0, next, nil, c.opError("read", os.ErrDeadlineExceeded)
	}
	next = c.readDeadline
	if len(b) > 0 && n.flows(c.peer.owner.host, c.owner.host) {
		if got = c.take(b, now); got > 0 {
			c.stream.wakeAll()
			return got, next, nil, nil
		}
		arrival := c.fin
		if len(c.inbox) > 0 {
			arrival = c.inbox[0].at
		} else if expired(c.fin, now) {
			return 0, next, nil, io.EOF
		}
		next = earlier(next, arrival)
	}
	return 0, next, c.stream.wake, nil
}

// take moves arrived bytes into b.
func (c *conn) take(b []byte, now time.Time) (got int) {
	for got < len(b) && len(c.inbox) > 0 && !c.inbox[0].at.After(now) {
		first := &c.inbox[0]
		moved := copy(b[got:], first.data)
		got += moved
		if first.data = first.data[moved:]; len(first.data) == 0 {
			c.inbox = c.inbox[1:]
		}
	}
	return got
}

// Write never waits: across a cut it is as if the kernels' buffers had room for everything.
func (c *conn) Write(b []byte) (int, error) {
	n := c.stream.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	switch {
	case c.closed:
		return 0, c.opError("write", net.ErrClosed)
	case expired(c.writeDeadline, now):
		return 0, c.opError("write", os.ErrDeadlineExceeded)
	case c.peer.closed && n.flows(c.peer.owner.host, c.owner.host):
		// Across a cut nobody says that the other end is gone.
		return 0, c.opError("write", os.NewSyscallError("write", syscall.EPIPE))
	}
	from, to := c.owner.host, c.peer.owner.host
	c.peer.put(slices.Clone(b), now.Add(n.delay(from, to)+n.resent(from, to, resendData)))
	c.stream.wakeAll()
	return len(b), nil
}

// put queues data that arrives at the given time, or with what came before it.
func (c *conn) put(data []byte, at time.Time) {
	if at.Before(c.lastAt) {
		at = c.lastAt
	}
	c.lastAt = at
	c.inbox = append(c.inbox, chunk{data, at})
}

// Close is safe to call again. The other end reads what was written before, then io.EOF.
func (c *conn) Close() error {
	n := c.stream.net
	n.mu.Lock()
	defer n.mu.Unlock()
	c.closeLocked()
	return nil
}

func (c *conn) closeLocked() {
	if c.closed {
		return
	}
	n := c.stream.net
	c.closed = true
	c.inbox = nil
	if fin := time.Now().Add(n.delay(c.owner.host, c.peer.owner.host)); fin.After(c.peer.lastAt) {
		c.peer.fin = fin
	} else {
		c.peer.fin = c.peer.lastAt
	}
	if c.peer.closed {
		delete(n.streams, c.stream)
	}
	c.stream.wakeAll()
}

func (c *conn) SetDeadline(t time.Time) error {
	return c.setDeadlines(t, &c.readDeadline, &c.writeDeadline)
}

func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.readDeadline) }

func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.writeDeadline) }

func (c *conn) setDeadlines(t time.Time, which ...*time.Time) error {
	n := c.stream.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	for _, deadline := range which {
		*deadline = t
	}
	c.stream.wakeAll()
	return nil
}

func (c *conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// expired reports whether a time that is set has come.
func expired(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// earlier returns the earlier of two times, of which a zero one means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// waitUntil returns at the given time (zero: never) or when wake is closed.
func waitUntil(at time.Time, wake <-chan struct{}) {
	if at.IsZero() {
		<-wake
		return
	}
	select {
	case <-time.After(time.Until(at)):
	case <-wake:
	}
}

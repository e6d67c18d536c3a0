package memnet

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// backlog is how many accepted streams wait for a reader of StreamCh.
const backlog = 128

// DialTimeout opens a stream to addr ("IP:port"). Where a host is shut down it fails at once with
// ECONNREFUSED. Across a cut, to an address that never was, or from a frozen host it waits for the path;
// after timeout it returns a *net.OpError whose Timeout() is true. A timeout of zero or less does not wait,
// and so connects only where Latency and Jitter are 0.
func (t *Transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	dst, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
	}
	deadline := time.Now().Add(timeout)
	var ready time.Time // when the handshake's round trip is over; zero before its start
	for {
		conn, changed, err := t.dialStep(dst, &ready, deadline)
		if err != nil {
			return nil, err
		}
		if conn != nil {
			return conn, nil
		}
		next := deadline
		if !ready.IsZero() && ready.Before(deadline) {
			next = ready
		}
		waitUntil(next, changed)
	}
}

// DialAddressTimeout is [Transport.DialTimeout]; a.Name is ignored.
func (t *Transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

// dialStep goes as far as it can without waiting. Without a connection and an error the caller is to come
// again at *ready, at the deadline, or when the channel is closed.
func (t *Transport) dialStep(dst netip.AddrPort, ready *time.Time, deadline time.Time) (
	net.Conn, <-chan struct{}, error) {
	n := t.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if t.closed {
		return nil, nil, t.dialError(dst, net.ErrClosed)
	}
	if n.pathOpen(t.host, dst) {
		to := n.listening(dst)
		if to == nil {
			return nil, nil, t.dialError(dst, os.NewSyscallError("connect", syscall.ECONNREFUSED))
		}
		if ready.IsZero() {
			*ready = now.Add(n.delay(t.host, to) + n.delay(to, t.host) + n.resent(t.host, to, resendHandshake))
		}
		if !now.Before(*ready) {
			if conn := n.connect(t, to); conn != nil {
				return conn, nil, nil
			}
			*ready = time.Time{}
		}
	} else {
		// The handshake was lost on its way; it starts over when the path is back.
		*ready = time.Time{}
	}
	if !now.Before(deadline) {
		return nil, nil, t.dialError(dst, os.ErrDeadlineExceeded)
	}
	return nil, n.changed, nil
}

// pathOpen reports whether a handshake, and so a refusal too, can pass. The kernel of a frozen target
// answers, but a frozen process does not dial.
func (n *Network) pathOpen(from *host, dst netip.AddrPort) bool {
	to := n.byIP[dst.Addr()]
	return to != nil && !from.frozen && !n.isCut(from, to) && !n.isCut(to, from)
}

func (t *Transport) dialError(dst netip.AddrPort, err error) error {
	from, to := net.TCPAddrFromAddrPort(t.addr), net.TCPAddrFromAddrPort(dst)
	return &net.OpError{Op: "dial", Net: "tcp", Source: from, Addr: to, Err: err}
}

// connect returns the dialling end of a new stream, or nil when the other side's backlog is full: a kernel
// would let the handshake go unanswered.
func (n *Network) connect(t *Transport, to *host) net.Conn {
	if len(to.heldStreams) >= backlog {
		return nil
	}
	client, server := newStream(n, t, to.running)
	if to.frozen {
		to.heldStreams = append(to.heldStreams, server)
	} else if !to.running.offer(server) {
		return nil
	}
	n.streams[client.stream] = struct{}{}
	return client
}

// offer hands c to the reader of StreamCh, if there is room.
func (t *Transport) offer(c *conn) bool {
	select {
	case t.conns <- c:
		return true
	default:
		return false
	}
}

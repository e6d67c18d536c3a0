package probe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// ErrPortInUse is returned by Listen when another process has the port.
var ErrPortInUse = errors.New("the port is in use")

// Options say where a Server listens.
type Options struct {
	// Addr is the UDP address, host:port. An empty host means all addresses, port 0 any free port. Required.
	Addr string
	// Logger takes the log lines. Nil: slog.Default().
	Logger *slog.Logger
}

// Server answers probes and sends them. It is a downing.Prober, safe for concurrent use.
type Server struct {
	conn *net.UDPConn
	log  *slog.Logger
	self atomic.Pointer[string] // nil: nothing is announced, nobody is answered

	done   chan struct{}
	reader sync.WaitGroup
	closed sync.Once

	mu      sync.Mutex
	waiting map[nonce]chan struct{}
}

var _ downing.Prober = (*Server)(nil)

// Listen opens the port and starts to read datagrams. No request is answered before Announce. Errors:
// ErrPortInUse, and an address that cannot be listened on.
func Listen(o Options) (*Server, error) {
	addr, err := net.ResolveUDPAddr("udp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("probe: cannot listen at %q: %w; give a UDP address as host:port", o.Addr, err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("probe: cannot listen at UDP %s: %w: end the process that has it, or choose another port", o.Addr, ErrPortInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("probe: cannot listen at UDP %s: %w; choose an address of this host and a port that is allowed", o.Addr, err)
	}
	s := &Server{
		conn: conn, log: cmp.Or(o.Logger, slog.Default()),
		done: make(chan struct{}), waiting: make(map[nonce]chan struct{}),
	}
	s.reader.Go(s.read)
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Announce implements downing.Prober: from now on the probes for id are answered, and those for any other
// incarnation no more. The tag is the port, in base 36.
func (s *Server) Announce(id sbr.ID) (tag string) {
	name := string(id)
	s.self.Store(&name)
	return strconv.FormatInt(int64(s.Addr().Port()), 36)
}

// Ping implements downing.Prober. A target without a valid tag, address or id is not reachable.
func (s *Server) Ping(ctx context.Context, t downing.Target, timeout time.Duration) bool {
	to, err := address(t)
	if err != nil || len(t.ID) == 0 || len(t.ID) > maxID {
		return false
	}
	n, answered := s.expect()
	defer s.forget(n)
	timer := time.After(timeout)
	if _, err := s.conn.WriteToUDPAddrPort(newRequest(n, string(t.ID)), to); err != nil {
		return false
	}
	select {
	case <-answered:
		return true
	case <-timer:
	case <-ctx.Done():
	case <-s.done:
	}
	return false
}

// address is the host of the Serf node and the port of its tag.
func address(t downing.Target) (netip.AddrPort, error) {
	port, err := strconv.ParseUint(t.Tag, 36, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	node, err := netip.ParseAddrPort(t.Addr)
	if err != nil || port == 0 {
		return netip.AddrPort{}, errors.New("no address")
	}
	return netip.AddrPortFrom(node.Addr(), uint16(port)), nil
}

func (s *Server) expect() (n nonce, answered <-chan struct{}) {
	_, _ = rand.Read(n[:]) // never fails: crypto/rand ends the process instead
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[n] = c
	return n, c
}

func (s *Server) forget(n nonce) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, n)
}

// Close ends the server. Pings that wait end with false. It may be called more than once.
func (s *Server) Close() {
	s.closed.Do(func() {
		close(s.done)
		_ = s.conn.Close()
	})
	s.reader.Wait()
}

const (
	// retryAfter keeps an error that lasts (a network that is down) from taking the processor.
	retryAfter = 50 * time.Millisecond
	sayEvery   = time.Minute
)

func (s *Server) read() {
	var in [headSize + 1 + maxID + 1]byte // one more, so that what is too long is not taken for valid
	var out [headSize]byte
	var said time.Time
	for {
		size, from, err := s.conn.ReadFromUDPAddrPort(in[:])
		switch {
		case err == nil:
			s.handle(in[:size], from, out[:0])
			continue
		case errors.Is(err, net.ErrClosed):
			return
		case time.Since(said) >= sayEvery:
			said = time.Now()
			s.log.Warn("sbr: a probe could not be read", "error", err)
		}
		select {
		case <-time.After(retryAfter):
		case <-s.done:
			return
		}
	}
}

// handle handles one datagram. It allocates nothing: any host may send one.
func (s *Server) handle(b []byte, from netip.AddrPort, out []byte) {
	d, ok := parse(b)
	if !ok {
		return
	}
	if d.kind == kindReply {
		s.settle(d.nonce)
		return
	}
	if self := s.self.Load(); self != nil && string(d.id) == *self {
		_, _ = s.conn.WriteToUDPAddrPort(appendReply(out, d.nonce), from) // a lost reply is a lost probe
	}
}

func (s *Server) settle(n nonce) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.waiting[n] <- struct{}{}: // nil for a nonce that nobody waits for
	default:
	}
}

const (
	magic   = "sbr"
	version = 1

	kindRequest byte = 1
	kindReply   byte = 2

	nonceSize = 16
	headSize  = len(magic) + 1 + 1 + nonceSize
	maxID     = 255
)

type nonce [nonceSize]byte

// datagram is a received datagram; id points into it.
type datagram struct {
	kind  byte
	nonce nonce
	id    []byte
}

// parse accepts exactly what newRequest and appendReply write.
func parse(b []byte) (d datagram, ok bool) {
	if len(b) < headSize || string(b[:len(magic)]) != magic || b[len(magic)] != version {
		return d, false
	}
	d.kind = b[len(magic)+1]
	copy(d.nonce[:], b[len(magic)+2:])
	rest := b[headSize:]
	switch d.kind {
	case kindReply:
		return d, len(rest) == 0
	case kindRequest:
		if len(rest) < 2 || int(rest[0]) != len(rest)-1 {
			return d, false
		}
		d.id = rest[1:]
		return d, true
	default:
		return d, false
	}
}

func appendHead(b []byte, kind byte, n nonce) []byte {
	return append(append(append(b, magic...), version, kind), n[:]...)
}

func appendReply(b []byte, n nonce) []byte { return appendHead(b, kindReply, n) }

// newRequest needs an id of 1 to maxID bytes.
func newRequest(n nonce, id string) []byte {
	return append(append(appendHead(nil, kindRequest, n), byte(len(id))), id...)
}

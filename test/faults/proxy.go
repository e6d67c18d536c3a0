package faults

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Mode is what becomes of what passes a Proxy.
type Mode uint8

// The modes. A connection that was struck once by ResetBefore to Late stays dead.
const (
	// Pass passes everything.
	Pass Mode = iota
	// Refuse resets all connections, and no new one can be made.
	Refuse
	// ResetBefore resets a connection when its client sends: the server does not see it.
	ResetBefore
	// ResetAfter resets a connection when the server answers what its client has sent.
	ResetAfter
	// StallBefore swallows what a client sends, as a network does that drops packets.
	StallBefore
	// StallAfter swallows what the server answers.
	StallAfter
	// Half passes half of the bytes of an answer, and then resets the connection.
	Half
	// Slow passes an answer late, after the client gave up.
	Slow
	// Late passes what a client sends late, after the client gave up, and swallows the answer.
	Late
)

// lateBy is longer than any call waits.
const lateBy = 3500 * time.Millisecond

// Proxy is a TCP proxy on loopback between one party and a server. It knows no protocol.
type Proxy struct {
	address, server string

	mu       sync.Mutex
	mode     Mode
	once     bool
	struck   func()
	listener net.Listener
	links    map[*link]bool
	turns    int
	done     sync.WaitGroup
}

// NewProxy starts a proxy that ends with the cell. It calls struck whenever its mode has struck something.
func NewProxy(t *T, server string, struck func()) *Proxy {
	p := &Proxy{server: server, struck: struck, links: map[*link]bool{}}
	require.NoError(t, p.listen("127.0.0.1:0"))
	p.address = p.listener.Addr().String()
	release, err := reserve(p.listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Set(Refuse, false)
		p.done.Wait()
		release()
	})
	return p
}

// reserve binds a port of a proxy once more, without listening: a proxy that refuses closes its listener, and
// the port must not become that of another proxy, or of a connection, meanwhile.
func reserve(port int) (release func(), err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	if err = share(fd); err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return func() { _ = unix.Close(fd) }, nil
}

// share lets two sockets of this user have one port.
func share(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }

// Address is where the party reaches the server.
func (p *Proxy) Address() string { return p.address }

func (p *Proxy) listen(address string) error {
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = share(int(fd)) }); e != nil {
			return e
		}
		return err
	}}
	listener, err := shared.Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	p.listener = listener
	p.done.Go(func() { p.accept(listener) })
	return nil
}

// Set changes the mode: for everything until the next Set, or for the first connection that it strikes.
func (p *Proxy) Set(mode Mode, once bool) {
	if mode == Refuse {
		p.struck()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.mode
	p.mode, p.once = mode, once
	for l := range p.links {
		l.asked = false
	}
	switch {
	case mode == Refuse && was != Refuse:
		_ = p.listener.Close()
		for l := range p.links {
			l.reset()
		}
	case mode != Refuse && was == Refuse:
		for p.listen(p.address) != nil { // a connection to it is still in its last state
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Turns is how often the party has sent something after an answer: a request and its answer are one turn,
// however many packets they take.
func (p *Proxy) Turns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turns
}

// Break resets all connections, or only dead ones.
func (p *Proxy) Break(deadOnly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.dead || !deadOnly {
			l.reset()
		}
	}
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			reset(client)
			continue
		}
		l := &link{proxy: p, client: client, server: server, ended: make(chan struct{})}
		p.mu.Lock()
		p.links[l] = true
		refused := p.mode == Refuse
		p.mu.Unlock()
		if refused {
			l.reset()
		}
		p.done.Go(func() { l.pump(client, server, l.ask) })
		p.done.Go(func() { l.pump(server, client, l.answer) })
	}
}

// link is one connection through the proxy. what changes is guarded by the proxy's mutex.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	asked          bool // since the mode was set
	waiting        bool // for the answer to what the client sent last
	dead           bool // nothing passes any more
	over           atomic.Bool
	ended          chan struct{}
}

// pump passes what comes from one side to the other; a verdict of false ends the link.
func (l *link) pump(from, to net.Conn, pass func(to net.Conn, data []byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !pass(to, buffer[:n]) || err != nil {
			break
		}
	}
	if from == l.client && l.isLate() {
		return // the server still gets what was sent
	}
	l.reset()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}

func (l *link) isLate() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.dead && !l.over.Load()
}

// strike says what becomes of data that came now. Pass where the mode does not strike it.
func (l *link) strike(modes ...Mode) (mode Mode, dead bool) {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range modes {
		if p.mode != m || l.dead {
			continue
		}
		l.dead = m != Slow
		if p.once {
			p.mode = Pass
		}
		p.struck()
		return m, false
	}
	return Pass, l.dead
}

func (l *link) ask(to net.Conn, data []byte) bool {
	mode, dead := l.strike(ResetBefore, StallBefore, Late)
	switch {
	case dead, mode == StallBefore:
		return true
	case mode == ResetBefore:
		l.reset()
		return false
	case mode == Late:
		late := append([]byte(nil), data...)
		l.proxy.done.Go(func() {
			select {
			case <-time.After(lateBy):
				_, _ = to.Write(late)
				time.Sleep(lateBy / 4) // until it is executed
			case <-l.ended:
			}
			l.reset()
		})
		return true
	}
	l.proxy.mu.Lock()
	l.asked = true
	if !l.waiting {
		l.waiting = true
		l.proxy.turns++
	}
	l.proxy.mu.Unlock()
	_, err := to.Write(data)
	return err == nil
}

func (l *link) answer(to net.Conn, data []byte) bool {
	l.proxy.mu.Lock()
	asked := l.asked
	l.waiting = false
	l.proxy.mu.Unlock()
	modes := []Mode{ResetAfter, StallAfter, Half, Slow}
	if !asked || onlyControl(data) {
		modes = nil // it answers something older, or nothing
	}
	mode, dead := l.strike(modes...)
	switch {
	case dead, mode == StallAfter:
		return true
	case mode == ResetAfter:
		return false
	case mode == Half:
		_, _ = to.Write(data[:len(data)/2])
		return false
	case mode == Slow:
		select {
		case <-time.After(lateBy):
		case <-l.ended:
		}
	}
	_, err := to.Write(data)
	return err == nil
}

// onlyControl reports whether data is frames of HTTP/2 about the connection itself (settings, pings,
// windows): gRPC sends a ping as soon as a request arrives, before it is executed. Other protocols do not
// begin like that.
func onlyControl(data []byte) bool {
	const head, settings, ping, window = 9, 4, 6, 8
	for len(data) >= head {
		size := head + int(data[0])<<16 + int(data[1])<<8 + int(data[2])
		if kind := data[3]; size > len(data) || kind != settings && kind != ping && kind != window {
			return false
		}
		data = data[size:]
	}
	return len(data) == 0
}

// reset ends both sides at once.
func (l *link) reset() {
	if !l.over.Swap(true) {
		close(l.ended)
		reset(l.client)
		reset(l.server)
	}
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

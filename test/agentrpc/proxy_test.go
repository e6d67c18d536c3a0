package agentrpc_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy stands between a sidecar and its agent, and makes the way bad.
type proxy struct {
	tb     testing.TB
	target string
	listen net.Listener
	work   sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // from the sidecar, in the order in which they came
	delay time.Duration
	left  int // bytes until every connection is cut; negative: none is
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{tb: t, target: target, listen: l, left: -1}
	p.work.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.work.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.listen.Addr().String() }

func (p *proxy) accept() {
	for {
		near, err := p.listen.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near)
		p.mu.Unlock()
		p.work.Go(func() { p.copy(far, near, false) })
		p.work.Go(func() { p.copy(near, far, true) })
	}
}

func (p *proxy) copy(to, from net.Conn, bad bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 1500)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if bad {
			n, err = p.worsen(n)
		}
		if _, werr := to.Write(b[:n]); err != nil || werr != nil {
			return
		}
	}
}

// worsen delays a piece of n bytes, and reports how much of it passes, and whether the connection ends after
// that.
func (p *proxy) worsen(n int) (int, error) {
	p.mu.Lock()
	delay := p.delay
	if p.left >= 0 {
		n, p.left = min(n, p.left), p.left-min(n, p.left)
		if p.left == 0 {
			p.left = -1
			p.mu.Unlock()
			return n, net.ErrClosed
		}
	}
	p.mu.Unlock()
	time.Sleep(delay) // a slow way is what is tested
	return n, nil
}

// cut ends all connections, or those with the given numbers, counted from 0.
func (p *proxy) cut(numbers ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.conns {
		if len(numbers) == 0 || i == numbers[0] {
			_ = c.Close()
		}
	}
}

func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// cutAfter ends the connection that carries the byte after the next n.
func (p *proxy) cutAfter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

func (p *proxy) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

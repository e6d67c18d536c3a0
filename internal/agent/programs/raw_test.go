package programs_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/attach"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
)

// raw is a program's side that says what the test wants.
type raw struct {
	t    *testing.T
	to   *io.PipeWriter
	resp *http.Response
	in   *attach.Reader[attach.FromAgent]
}

// post sends a request to the agent, with the first lines.
func (a *agent) post(change func(r *http.Request), lines ...string) *raw {
	a.t.Helper()
	body, to := io.Pipe()
	r, err := http.NewRequest(http.MethodPost, "http://agent"+attach.Path, body)
	require.NoError(a.t, err)
	r.Header.Set("Content-Type", attach.ContentType)
	if change != nil {
		change(r)
	}
	x := &raw{t: a.t, to: to}
	go x.say(lines...)
	x.resp, err = a.http.Do(r)
	require.NoError(a.t, err)
	x.in = attach.NewReader[attach.FromAgent](x.resp.Body)
	return x
}

// begins attaches a program that is told to start.
func (a *agent) begins(hello string) (*raw, *attach.Start) {
	a.t.Helper()
	x := a.post(nil, hello)
	return x, x.hears(func(m attach.FromAgent) bool { return m.Start != nil }).Start
}

func (x *raw) say(lines ...string) {
	for _, line := range lines {
		if _, err := io.WriteString(x.to, line+"\n"); err != nil {
			return
		}
	}
}

// hears returns the next message of a kind.
func (x *raw) hears(is func(m attach.FromAgent) bool) attach.FromAgent {
	x.t.Helper()
	for {
		m, err := x.in.Read()
		require.NoError(x.t, err)
		if is(m) {
			return m
		}
	}
}

func (x *raw) close() {
	_ = x.to.Close()
	_ = x.resp.Body.Close()
}

// refused returns status and text of an answer.
func (x *raw) refused() (int, string) {
	defer x.close()
	line, err := bufio.NewReader(x.resp.Body).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		require.NoError(x.t, err)
	}
	return x.resp.StatusCode, strings.TrimSpace(line)
}

func hello(singleton, client string, pid int) string {
	return fmt.Sprintf(`{"attach":{"singleton":%q,"client":%q,"pid":%d,"stop-timeout":"2s"}}`, singleton,
		client, pid)
}

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

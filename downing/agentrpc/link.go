package agentrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/serf/client"

	"github.com/serf-sbr/serf-sbr/downing"
)

// maxAnswer bounds what an agent may send from one finished request, or one event, to the next. A member
// takes at most 1 KiB.
const maxAnswer = 16 << 20

// link is a client and its way to the agent: client <-> near <-> far <-> agent. The client cannot be
// interrupted and must not be closed from outside, so it is left alone: cut takes the connection away from
// it.
type link struct {
	client    *client.RPCClient
	near, far net.Conn
	received  atomic.Int64 // since the last request that was finished
	streams   bool         // the client delivers without being asked
	once      sync.Once
	cause     atomic.Pointer[error] // why it was cut; nil: the agent hung up
	copying   sync.WaitGroup
}

// dial connects, shakes hands and shows the key, all within the time-out.
func dial(ctx context.Context, o *Options) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", connecting(err))
	}
	entrance, err := listenLoopback()
	if err != nil {
		_ = far.Close()
		return nil, err
	}
	type result struct {
		client *client.RPCClient
		err    error
	}
	made := make(chan result, 1)
	go func() {
		c, err := client.ClientFromConfig(&client.Config{Addr: entrance.Addr().String(), AuthKey: o.AuthKey,
			Timeout: o.Timeout})
		made <- result{c, err}
	}()
	_ = entrance.(*net.TCPListener).SetDeadline(time.Now().Add(o.Timeout))
	near, err := entrance.Accept()
	_ = entrance.Close()
	if err != nil {
		_ = far.Close()
		r := <-made // the connection has no far end any more
		return nil, errors.Join(err, r.err)
	}
	l := &link{near: near, far: far}
	l.copying.Go(l.toAgent)
	l.copying.Go(l.fromAgent)
	var r result
	select {
	case r = <-made:
	case <-ctx.Done():
		l.cut(late(ctx, "it accepts the connection and does not answer"))
		r = <-made
	}
	if r.err != nil {
		l.close()
		return nil, l.explain(r.err)
	}
	l.client = r.client
	return l, nil
}

// listenLoopback opens the relay's entrance. It takes in one connection, the client's, and is closed at once.
// Another process of this host that were faster would get what it can have from the agent's port directly,
// and without the auth key no more than that.
func listenLoopback() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l, err = net.Listen("tcp", "[::1]:0")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on loopback, which the way to the agent needs: %w; bring the interface lo up", err)
	}
	return l, nil
}

// toAgent ends when the client has closed itself, so waiting for it is waiting for the client.
func (l *link) toAgent() {
	_, err := io.Copy(l.far, l.near)
	l.cut(err)
	_, _ = io.Copy(io.Discard, l.near) // what the client still writes
	_ = l.near.Close()
}

func (l *link) fromAgent() {
	_, err := io.Copy(io.MultiWriter(l.near, (*meter)(l)), l.far)
	l.cut(err)
}

// meter counts what the agent sends.
type meter link

func (m *meter) Write(b []byte) (int, error) {
	if m.received.Add(int64(len(b))) > maxAnswer {
		return 0, fmt.Errorf("the Serf agent sent more than %d MiB without an end", maxAnswer>>20)
	}
	return len(b), nil
}

// finished says that what the agent sent until now was taken in.
func (l *link) finished() { l.received.Store(0) }

// cut ends the connection on the agent's side. The client reads its end, and closes itself.
func (l *link) cut(cause error) {
	l.once.Do(func() {
		if cause != nil {
			l.cause.Store(&cause)
		}
		_ = l.far.Close()
		_ = l.near.(*net.TCPConn).CloseWrite()
	})
}

// close ends everything and waits for it. No request may be under way.
func (l *link) close() {
	if l.client != nil && !l.streams {
		_ = l.client.Close() // otherwise it would log that its connection ended
	}
	l.cut(nil)
	l.copying.Wait()
}

// do makes a request. When ctx ends first the link is cut.
func (l *link) do(ctx context.Context, request func(*client.RPCClient) error) error {
	done := make(chan error, 1)
	go func() { done <- request(l.client) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		l.cut(late(ctx, "it does not answer the request"))
		err = <-done
	}
	if err != nil {
		return l.explain(err)
	}
	l.finished()
	return nil
}

// The texts of errors that the agent and the client make.
const (
	textClosed   = "client closed"
	textNeedsKey = "Authentication required"
	textWrongKey = "Invalid authentication token"
)

func (l *link) explain(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, textNeedsKey), strings.Contains(text, textWrongKey):
		return downing.ErrAgentAuth
	case !strings.Contains(text, textClosed) && !connectionEnded(err):
		return err
	}
	// That the connection has ended is all that a cause with the two addresses says; the port of this side would
	// make it another text each time.
	switch cause := l.cause.Load(); {
	case cause == nil, connectionEnded(*cause):
		return downing.ErrAgentClosed
	case errors.Is(*cause, downing.ErrAgentTimeout), errors.Is(*cause, context.Canceled):
		return *cause
	default:
		return fmt.Errorf("%w: %w", downing.ErrAgentClosed, *cause)
	}
}

// connectionEnded reports whether the client wrote or read when its connection had ended: it closes itself
// when it reads the end, and a request that comes just then meets the closed connection, not the closed
// client.
func connectionEnded(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNRESET)
}

// late is why a connection is cut whose request was waited for until ctx ended.
func late(ctx context.Context, what string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %s", downing.ErrAgentTimeout, what)
	}
	return ctx.Err()
}

// connecting says in our words why there is no connection.
func connecting(err error) error {
	var slow net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return downing.ErrAgentRefused
	case errors.As(err, &slow) && slow.Timeout():
		return fmt.Errorf("%w: it does not accept the connection", downing.ErrAgentTimeout)
	default:
		return err
	}
}

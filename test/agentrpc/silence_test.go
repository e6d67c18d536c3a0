package agentrpc_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
)

// An agent that does not answer is said to be what was seen of it.
func TestSilence(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(net.Listener)
		want  error
		text  string
	}{
		"nobody listens": {func(l net.Listener) { _ = l.Close() }, downing.ErrAgentRefused,
			"connection refused (does it run, with this rpc_addr?)"},
		"it is frozen": {func(net.Listener) {}, downing.ErrAgentTimeout,
			"time-out: it accepts the connection and does not answer"},
		"it hangs up": {func(l net.Listener) {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_ = c.Close()
			}
		}, downing.ErrAgentClosed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			go tc.serve(l)
			o := agentrpc.DefaultOptions()
			o.Addr, o.Timeout = l.Addr().String(), 200*time.Millisecond
			a, err := agentrpc.New(o)
			require.NoError(t, err)
			t.Cleanup(a.Close)
			ctx, cancel := context.WithCancel(t.Context())
			opened := make(chan error)
			go func() {
				_, err := a.Open(ctx, downing.AgentEvents{})
				opened <- err
			}()
			require.Eventually(t, func() bool {
				_, _, silence := a.Members()
				return errors.Is(silence, tc.want) && strings.Contains(silence.Error(), tc.text)
			}, time.Minute, 10*time.Millisecond)
			cancel()
			require.ErrorIs(t, <-opened, context.Canceled)
		})
	}
}

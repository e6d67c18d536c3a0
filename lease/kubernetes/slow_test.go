package kubernetes_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// later passes on what arrives after the latency.
func later(relays *sync.WaitGroup, to io.WriteCloser, from io.ReadCloser, latency time.Duration) {
	defer from.Close()
	type piece struct {
		data []byte
		at   time.Time
	}
	pieces := make(chan piece, 1024)
	relays.Go(func() {
		defer close(pieces)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				pieces <- piece{buf[:n], time.Now().Add(latency)}
			}
			if err != nil {
				return
			}
		}
	})
	defer to.Close()
	for p := range pieces {
		time.Sleep(time.Until(p.at))
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

// far is a way to an API server with a latency, and how many connections took it.
func far(t *testing.T, address string, latency time.Duration) (string, *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var relays sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		relays.Wait()
	})
	taken := new(atomic.Int64)
	relays.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			server, err := net.Dial("tcp", address)
			if err != nil {
				near.Close()
				continue
			}
			mu.Lock()
			open = append(open, near, server)
			mu.Unlock()
			relays.Go(func() { later(&relays, server, near, latency) })
			relays.Go(func() { later(&relays, near, server, latency) })
		}
	})
	return l.Addr().String(), taken
}

// With default times an API server whose answers take a second and a half is slow, not gone: operations
// succeed, and the connection is kept, although its pings take as long.
func TestSlowNetwork(t *testing.T) {
	f := kubefake.New(t)
	address, taken := far(t, f.Listener.Addr().String(), 750*time.Millisecond)
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
		contexts: [{name: c, context: {cluster: c, user: u, namespace: team-a}}], users: [{name: u, user: {token: secret}}],
		clusters: [{name: c, cluster: {server: "https://%s", certificate-authority-data: %s}}]}`,
		address, base64.StdEncoding.EncodeToString(certificatePEM(f.Certificate()))), 0o600))
	store, err := lease.Open(t.Context(), kubernetes.Key, lease.Spec{
		System: "payments", Settings: lease.DefaultSettings(), Decode: func(into any) error {
			return yaml.Unmarshal([]byte("{kubeconfig: "+path+"}"), into)
		},
	})
	require.NoError(t, err)
	defer func() { _ = store.(io.Closer).Close() }()
	l, err := lease.New(store, "a", lease.DefaultSettings(), lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Read(t.Context())
	require.NoError(t, err, "the first one has a handshake as well")
	time.Sleep(4 * time.Second) // pings
	out := linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{}))
	require.Equal(t, sbr.Granted, out.Kind, "%v", out)
	require.NoError(t, l.Release(t.Context()))
	require.EqualValues(t, 1, taken.Load(), "connections")
}

package memnet_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started runs a transport for each name; the end of the test shuts them down.
func started(t *testing.T, n *memnet.Network, names ...string) map[string]*memnet.Transport {
	t.Helper()
	running := map[string]*memnet.Transport{}
	for _, name := range names {
		tr, err := n.Transport(name)
		require.NoError(t, err)
		t.Cleanup(func() { _ = tr.Shutdown() })
		running[name] = tr
	}
	return running
}

// pair runs a test in virtual time, on a network of a and b.
func pair(
	t *testing.T, latency time.Duration, f func(t *testing.T, n *memnet.Network, a, b *memnet.Transport),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Latency: latency})
		trs := started(t, n, "a", "b")
		f(t, n, trs["a"], trs["b"])
	})
}

func send(t *testing.T, from, to *memnet.Transport, payload string) {
	t.Helper()
	_, err := from.WriteTo([]byte(payload), to.Addr())
	require.NoError(t, err)
}

// received drains what has arrived up to now.
func received(tr *memnet.Transport) []string {
	var got []string
	for {
		select {
		case p := <-tr.PacketCh():
			got = append(got, string(p.Buf))
		default:
			return got
		}
	}
}

// connected opens a stream and returns the dialling and the accepting end.
func connected(t *testing.T, from, to *memnet.Transport) (client, server net.Conn) {
	t.Helper()
	client, err := from.DialTimeout(to.Addr(), time.Second)
	require.NoError(t, err)
	return client, <-to.StreamCh()
}

func requireTimeout(t *testing.T, err error) {
	t.Helper()
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.True(t, op.Timeout(), "%v", err)
}

func readString(c net.Conn) (string, error) {
	buf := make([]byte, 64)
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

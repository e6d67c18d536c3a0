package memnet_test

import (
	"cmp"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

func TestDial_RoundTrip(t *testing.T) {
	pair(t, 10*time.Millisecond, func(t *testing.T, _ *memnet.Network, a, b *memnet.Transport) {
		start := time.Now()
		client, server := connected(t, a, b)
		require.Equal(t, 20*time.Millisecond, time.Since(start), "a handshake is a round trip")
		require.Equal(t, a.Addr(), server.RemoteAddr().String())
		require.Equal(t, b.Addr(), client.RemoteAddr().String())

		_, err := client.Write([]byte("hello"))
		require.NoError(t, err)
		got, err := readString(server)
		require.NoError(t, err)
		require.Equal(t, "hello", got)
		require.Equal(t, 30*time.Millisecond, time.Since(start))

		require.NoError(t, client.Close())
		_, err = readString(server)
		require.Equal(t, io.EOF, err)
		require.Equal(t, 40*time.Millisecond, time.Since(start))
		_, err = server.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

func TestDial_WhereNothingListensIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		require.NoError(t, n.Add("never-ran"))
		trs := started(t, n, "a", "b")
		require.NoError(t, trs["b"].Shutdown())
		start := time.Now()
		for _, addr := range []string{"10.0.0.1:7946", trs["b"].Addr(), "10.0.0.2:80"} {
			_, err := trs["a"].DialTimeout(addr, time.Hour)
			require.ErrorIs(t, err, syscall.ECONNREFUSED, addr)
			var op *net.OpError
			require.ErrorAs(t, err, &op)
			require.False(t, op.Timeout())
		}
		require.Zero(t, time.Since(start))
		_, err := trs["b"].DialTimeout(trs["a"].Addr(), time.Hour)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = trs["a"].DialTimeout("b:7946", time.Hour)
		require.Error(t, err)
	})
}

func TestDial_BlocksForTheTimeout(t *testing.T) {
	none := func(*memnet.Network) error { return nil }
	for name, tc := range map[string]struct {
		blocked func(*memnet.Network) error
		addr    string
	}{
		"cut":                 {blocked: func(n *memnet.Network) error { return n.Cut("a", "b") }},
		"cut there":           {blocked: func(n *memnet.Network) error { return n.CutOneWay("a", "b") }},
		"cut back":            {blocked: func(n *memnet.Network) error { return n.CutOneWay("b", "a") }},
		"frozen dialler":      {blocked: func(n *memnet.Network) error { return n.Freeze("a") }},
		"latency beyond time": {blocked: none},
		"unknown address":     {blocked: none, addr: "10.9.9.9:7946"},
	} {
		t.Run(name, func(t *testing.T) {
			pair(t, 6*time.Second, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
				require.NoError(t, tc.blocked(n))
				start := time.Now()
				for _, timeout := range []time.Duration{10 * time.Second, 0, -time.Second} {
					_, err := a.DialTimeout(cmp.Or(tc.addr, b.Addr()), timeout)
					requireTimeout(t, err)
				}
				require.Equal(t, 10*time.Second, time.Since(start), "no time left is none")
			})
		})
	}
}

func TestDial_SucceedsWhenHealedInTime(t *testing.T) {
	pair(t, time.Millisecond, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
		require.NoError(t, n.Cut("a", "b"))
		start := time.Now()
		time.AfterFunc(4*time.Second, n.Heal)
		client, err := a.DialTimeout(b.Addr(), 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, 4*time.Second+2*time.Millisecond, time.Since(start))
		require.NoError(t, client.Close())
	})
}

func TestDial_EndsWithItsTransport(t *testing.T) {
	pair(t, 0, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
		require.NoError(t, n.Cut("a", "b"))
		start := time.Now()
		time.AfterFunc(time.Second, func() { _ = a.Shutdown() })
		_, err := a.DialTimeout(b.Addr(), time.Hour)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestDial_FullBacklogIsSilent(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		pair(t, 0, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
			if frozen {
				require.NoError(t, n.Freeze("b"))
			}
			for range 128 {
				_, err := a.DialTimeout(b.Addr(), 0)
				require.NoError(t, err)
			}
			_, err := a.DialTimeout(b.Addr(), time.Second)
			requireTimeout(t, err)
		})
	}
}

func TestStream_StandsStillAcrossACutAndGoesOn(t *testing.T) {
	pair(t, 0, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
		client, server := connected(t, a, b)
		require.NoError(t, n.Cut("a", "b"))
		_, err := client.Write([]byte("held"))
		require.NoError(t, err, "the sender's kernel takes it")
		require.NoError(t, client.Close())

		start := time.Now()
		require.NoError(t, server.SetReadDeadline(start.Add(10*time.Second)))
		_, err = readString(server)
		requireTimeout(t, err)
		require.Equal(t, 10*time.Second, time.Since(start))

		require.NoError(t, server.SetReadDeadline(time.Time{}))
		time.AfterFunc(time.Second, n.Heal)
		got, err := readString(server)
		require.NoError(t, err)
		require.Equal(t, "held", got)
		require.Equal(t, 11*time.Second, time.Since(start))
		_, err = readString(server)
		require.Equal(t, io.EOF, err)
	})
}

func TestStream_OneWayCutStopsOneDirection(t *testing.T) {
	pair(t, 0, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
		client, server := connected(t, a, b)
		require.NoError(t, n.CutOneWay("a", "b"))
		for _, c := range []net.Conn{client, server} {
			_, err := c.Write([]byte("x"))
			require.NoError(t, err)
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Second)))
		}
		got, err := readString(client)
		require.NoError(t, err)
		require.Equal(t, "x", got)
		_, err = readString(server)
		requireTimeout(t, err)
	})
}

func TestStream_FrozenReaderIsServedAfterThaw(t *testing.T) {
	pair(t, 0, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
		require.NoError(t, n.Freeze("b"))
		client, err := a.DialTimeout(b.Addr(), time.Second)
		require.NoError(t, err, "the kernel of a stopped process accepts")
		_, err = client.Write([]byte("hello"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Empty(t, b.StreamCh())

		require.NoError(t, n.Thaw("b"))
		server := <-b.StreamCh()
		got, err := readString(server)
		require.NoError(t, err)
		require.Equal(t, "hello", got)
	})
}

func TestStream_ShutdownClosesBothEndsWhereItCan(t *testing.T) {
	pair(t, 0, func(t *testing.T, _ *memnet.Network, a, b *memnet.Transport) {
		client, server := connected(t, a, b)
		_, err := a.DialTimeout(b.Addr(), 0)
		require.NoError(t, err, "one that nobody accepts")

		time.AfterFunc(time.Second, func() { _ = b.Shutdown() })
		_, err = readString(client)
		require.Equal(t, io.EOF, err)
		_, err = readString(server)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, server.SetDeadline(time.Now()), net.ErrClosed)
		require.NoError(t, server.Close(), "again")
	})
}

func TestStream_CutHidesThatThePeerIsGone(t *testing.T) {
	pair(t, 0, func(t *testing.T, n *memnet.Network, a, b *memnet.Transport) {
		client, _ := connected(t, a, b)
		require.NoError(t, n.Cut("a", "b"))
		require.NoError(t, b.Shutdown())
		_, err := client.Write([]byte("x"))
		require.NoError(t, err)
		require.NoError(t, client.SetReadDeadline(time.Now().Add(time.Second)))
		_, err = readString(client)
		requireTimeout(t, err)
		n.Heal()
		_, err = client.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.EPIPE)
	})
}

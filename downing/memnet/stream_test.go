package memnet_test

import (
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
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Latency: 10 * time.Millisecond})
		trs := started(t, n, "a", "b")
		start := time.Now()
		client, server := connected(t, trs["a"], trs["b"])
		require.Equal(t, 20*time.Millisecond, time.Since(start), "a handshake is a round trip")
		require.Equal(t, trs["a"].Addr(), server.RemoteAddr().String())
		require.Equal(t, trs["b"].Addr(), client.RemoteAddr().String())

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
	for name, blocked := range map[string]func(*memnet.Network) error{
		"cut":                 func(n *memnet.Network) error { return n.Cut("a", "b") },
		"cut there":           func(n *memnet.Network) error { return n.CutOneWay("a", "b") },
		"cut back":            func(n *memnet.Network) error { return n.CutOneWay("b", "a") },
		"frozen dialler":      func(n *memnet.Network) error { return n.Freeze("a") },
		"latency beyond time": func(*memnet.Network) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New(memnet.Config{Latency: 6 * time.Second})
				trs := started(t, n, "a", "b")
				require.NoError(t, blocked(n))
				start := time.Now()
				_, err := trs["a"].DialTimeout(trs["b"].Addr(), 10*time.Second)
				requireTimeout(t, err)
				require.Equal(t, 10*time.Second, time.Since(start))
			})
		})
	}
}

func TestDial_UnknownAddressAndNoTimeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trs := started(t, n, "a")
		start := time.Now()
		_, err := trs["a"].DialTimeout("10.9.9.9:7946", 3*time.Second)
		requireTimeout(t, err)
		require.Equal(t, 3*time.Second, time.Since(start))
		for _, timeout := range []time.Duration{0, -time.Second} {
			_, err = trs["a"].DialTimeout("10.9.9.9:7946", timeout)
			requireTimeout(t, err)
		}
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestDial_SucceedsWhenHealedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{Latency: time.Millisecond})
		trs := started(t, n, "a", "b")
		require.NoError(t, n.Cut("a", "b"))
		start := time.Now()
		time.AfterFunc(4*time.Second, n.Heal)
		client, err := trs["a"].DialTimeout(trs["b"].Addr(), 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, 4*time.Second+2*time.Millisecond, time.Since(start))
		require.NoError(t, client.Close())
	})
}

func TestDial_EndsWithItsTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trs := started(t, n, "a", "b")
		require.NoError(t, n.Cut("a", "b"))
		start := time.Now()
		time.AfterFunc(time.Second, func() { _ = trs["a"].Shutdown() })
		_, err := trs["a"].DialTimeout(trs["b"].Addr(), time.Hour)
		require.ErrorIs(t, err, net.ErrClosed)
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestDial_FullBacklogIsSilent(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New(memnet.Config{})
			trs := started(t, n, "a", "b")
			if frozen {
				require.NoError(t, n.Freeze("b"))
			}
			for range 128 {
				_, err := trs["a"].DialTimeout(trs["b"].Addr(), 0)
				require.NoError(t, err)
			}
			_, err := trs["a"].DialTimeout(trs["b"].Addr(), time.Second)
			requireTimeout(t, err)
		})
	}
}

func TestStream_StandsStillAcrossACutAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trs := started(t, n, "a", "b")
		client, server := connected(t, trs["a"], trs["b"])
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
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trs := started(t, n, "a", "b")
		client, server := connected(t, trs["a"], trs["b"])
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
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trs := started(t, n, "a", "b")
		require.NoError(t, n.Freeze("b"))
		client, err := trs["a"].DialTimeout(trs["b"].Addr(), time.Second)
		require.NoError(t, err, "the kernel of a stopped process accepts")
		_, err = client.Write([]byte("hello"))
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Empty(t, trs["b"].StreamCh())

		require.NoError(t, n.Thaw("b"))
		server := <-trs["b"].StreamCh()
		got, err := readString(server)
		require.NoError(t, err)
		require.Equal(t, "hello", got)
	})
}

func TestStream_ShutdownClosesBothEndsWhereItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trs := started(t, n, "a", "b")
		client, server := connected(t, trs["a"], trs["b"])
		_, err := trs["a"].DialTimeout(trs["b"].Addr(), 0)
		require.NoError(t, err, "one that nobody accepts")

		time.AfterFunc(time.Second, func() { _ = trs["b"].Shutdown() })
		_, err = readString(client)
		require.Equal(t, io.EOF, err)
		_, err = readString(server)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, server.SetDeadline(time.Now()), net.ErrClosed)
		require.NoError(t, server.Close(), "again")
	})
}

func TestStream_CutHidesThatThePeerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(memnet.Config{})
		trs := started(t, n, "a", "b")
		client, _ := connected(t, trs["a"], trs["b"])
		require.NoError(t, n.Cut("a", "b"))
		require.NoError(t, trs["b"].Shutdown())
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

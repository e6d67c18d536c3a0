package memnet_test

import (
	"net"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
)

func TestNew_RefusesImpossibleNetworks(t *testing.T) {
	for _, cfg := range []memnet.Config{{Latency: -1}, {Jitter: -1}} {
		require.Panics(t, func() { memnet.New(cfg) }, cfg)
	}
}

func TestTransport_AddressesAreDistinctAndStable(t *testing.T) {
	n := memnet.New(memnet.Config{})
	require.NoError(t, n.Add("n1", "n2"))
	trs := started(t, n, "n2", "n1", "n3")
	require.Equal(t, "10.0.0.1:7946", trs["n1"].Addr(), "Add settles the order")
	require.Equal(t, "10.0.0.2:7946", trs["n2"].Addr())
	require.Equal(t, "10.0.0.3:7946", trs["n3"].Addr())

	ip, port, err := trs["n1"].FinalAdvertiseAddr("192.0.2.1", 1)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1", ip.String())
	require.Equal(t, memnet.Port, port)

	_, err = n.Transport("n1")
	require.EqualError(t, err, `memnet: "n1" is running; shut its transport down first`)
	require.NoError(t, trs["n1"].Shutdown())
	require.NoError(t, trs["n1"].Shutdown(), "again")
	again := started(t, n, "n1")["n1"]
	require.Equal(t, trs["n1"].Addr(), again.Addr())
	require.NoError(t, trs["n1"].Shutdown(), "an old run does not end the new one")
	send(t, again, trs["n2"], "x")
	require.Len(t, received(trs["n2"]), 1)

	_, err = n.Transport("")
	require.EqualError(t, err, "memnet: a name must not be empty")
	require.EqualError(t, n.Add("n9", ""), "memnet: a name must not be empty")
	_, err = n.Addr("nobody")
	require.EqualError(t, err, `memnet: unknown name "nobody"`)
}

func TestTransportAt_MovesTheHost(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "n1", "n2")
	_, err := n.TransportAt("n1", netip.Addr{})
	require.EqualError(t, err, `memnet: "n1" is running; shut its transport down first`)
	require.NoError(t, trs["n1"].Shutdown())

	_, err = n.TransportAt("n1", netip.MustParseAddr("10.0.0.2"))
	require.EqualError(t, err, `memnet: 10.0.0.2 belongs to "n2"`)
	_, err = n.TransportAt("n1", netip.MustParseAddr("0.0.0.0"))
	require.EqualError(t, err, "memnet: 0.0.0.0 cannot be the address of a host")

	_, err = n.TransportAt("n9", netip.MustParseAddr("10.0.0.2"))
	require.EqualError(t, err, `memnet: 10.0.0.2 belongs to "n2"`)
	_, err = n.Addr("n9")
	require.EqualError(t, err, `memnet: unknown name "n9"`, "a failure makes no name known")

	moved, err := n.TransportAt("n1", netip.Addr{})
	require.NoError(t, err)
	require.Equal(t, "10.0.0.3:7946", moved.Addr(), "one that nobody had before")
	_, err = trs["n2"].DialTimeout("10.0.0.1:7946", time.Hour)
	require.ErrorContains(t, err, "connection refused", "the address that was left")
	require.NoError(t, moved.Shutdown())

	chosen, err := n.TransportAt("n1", netip.MustParseAddr("127.0.0.9"))
	require.NoError(t, err)
	defer chosen.Shutdown()
	addr, err := n.Addr("n1")
	require.NoError(t, err)
	require.Equal(t, "127.0.0.9:7946", addr)
	send(t, trs["n2"], chosen, "hello")
	require.Equal(t, []string{"hello"}, received(chosen))
}

func TestWriteTo_CopiesAndStamps(t *testing.T) {
	pair(t, 3*time.Millisecond, func(t *testing.T, _ *memnet.Network, a, b *memnet.Transport) {
		buf := []byte("one")
		sentAt, err := a.WriteTo(buf, b.Addr())
		require.NoError(t, err)
		require.Equal(t, time.Now(), sentAt)
		copy(buf, "xxx")

		p := <-b.PacketCh()
		require.Equal(t, "one", string(p.Buf))
		require.Equal(t, a.Addr(), p.From.String())
		require.Equal(t, sentAt.Add(3*time.Millisecond), p.Timestamp)
	})
}

func TestWriteTo_JitterStaysInItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency, jitter = 5 * time.Millisecond, 2 * time.Millisecond
		n := memnet.New(memnet.Config{Latency: latency, Jitter: jitter, Seed: 7})
		trs := started(t, n, "a", "b")
		start := time.Now()
		least, most := time.Hour, time.Duration(0)
		for range 500 {
			send(t, trs["a"], trs["b"], "x")
		}
		for range 500 {
			took := (<-trs["b"].PacketCh()).Timestamp.Sub(start)
			least, most = min(least, took), max(most, took)
		}
		require.GreaterOrEqual(t, least, latency)
		require.Less(t, least, latency+jitter/10)
		require.LessOrEqual(t, most, latency+jitter)
		require.Greater(t, most, latency+jitter*9/10)
	})
}

func TestWriteTo_JitterFollowsTheSeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		arrival := func(seed uint64) time.Duration {
			n := memnet.New(memnet.Config{Jitter: time.Second, Seed: seed})
			trs := started(t, n, "a", "b")
			began := time.Now()
			send(t, trs["a"], trs["b"], "x")
			return (<-trs["b"].PacketCh()).Timestamp.Sub(began)
		}
		require.Equal(t, arrival(1), arrival(1))
		require.NotEqual(t, arrival(1), arrival(2))
	})
}

func TestWriteTo_DropsWhenNobodyReads(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b")
	for i := range 1030 {
		send(t, trs["a"], trs["b"], strconv.Itoa(i))
	}
	got := received(trs["b"])
	require.Len(t, got, 1024)
	require.Equal(t, "0", got[0], "the oldest stay")
}

func TestWriteTo_ErrorsAndAbsentHosts(t *testing.T) {
	n := memnet.New(memnet.Config{})
	trs := started(t, n, "a", "b")
	_, err := trs["a"].WriteTo([]byte("x"), "b:7946")
	require.Error(t, err)
	for _, addr := range []string{"10.9.9.9:7946", "10.0.0.2:80"} {
		_, err = trs["a"].WriteTo([]byte("x"), addr)
		require.NoError(t, err, "as with UDP")
	}
	require.NoError(t, trs["b"].Shutdown())
	send(t, trs["a"], trs["b"], "x")
	_, err = trs["b"].WriteTo([]byte("x"), trs["a"].Addr())
	require.ErrorIs(t, err, net.ErrClosed)
}

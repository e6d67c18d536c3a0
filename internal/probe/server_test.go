package probe_test

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/probe"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is a bound for a loaded machine: an answer takes far less than a millisecond. short is enough to see
// that none comes.
const (
	long  = 10 * time.Second
	short = 100 * time.Millisecond
)

func listen(t *testing.T, addr string) *probe.Server {
	t.Helper()
	s, err := probe.Listen(probe.Options{Addr: addr})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func target(s *probe.Server, id sbr.ID, tag string) downing.Target {
	return downing.Target{ID: id, Name: "n2", Addr: netip.AddrPortFrom(s.Addr().Addr(), 7946).String(), Tag: tag}
}

func TestPing_AnswersForTheAnnouncedIncarnationAlone(t *testing.T) {
	n1, n2 := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	tag := strconv.FormatInt(int64(n2.Addr().Port()), 36)
	require.False(t, n1.Ping(t.Context(), target(n2, "n2#a", tag), short), "nothing is announced")
	require.Equal(t, tag, n2.Announce("n2#a"))
	require.True(t, n1.Ping(t.Context(), target(n2, "n2#a", tag), long))
	require.True(t, n1.Ping(t.Context(), target(n2, "n2#a", tag), long), "again")
	for _, other := range []sbr.ID{"n2#b", "n2", "", "n2#ab", sbr.ID(make([]byte, 300))} {
		require.False(t, n1.Ping(t.Context(), target(n2, other, tag), short), "%q", other)
	}
	n2.Announce("n2#b")
	require.False(t, n1.Ping(t.Context(), target(n2, "n2#a", tag), short), "its predecessor")
	require.True(t, n1.Ping(t.Context(), target(n2, "n2#b", tag), long))
}

func TestPing_NeedsAValidTarget(t *testing.T) {
	n1 := listen(t, "127.0.0.1:0")
	for name, tc := range map[string]downing.Target{
		"no tag":              {ID: "a", Addr: "127.0.0.1:1"},
		"a tag of no number":  {ID: "a", Addr: "127.0.0.1:1", Tag: "-!"},
		"port 0":              {ID: "a", Addr: "127.0.0.1:1", Tag: "0"},
		"a port out of range": {ID: "a", Addr: "127.0.0.1:1", Tag: "zzzzzz"},
		"no address":          {ID: "a", Tag: "1e"},
		"a name for address":  {ID: "a", Addr: "localhost:1", Tag: "1e"},
	} {
		t.Run(name, func(t *testing.T) { require.False(t, n1.Ping(t.Context(), tc, long)) })
	}
}

// A socket for all addresses serves both families, and each is reached at its own loopback address.
func TestPing_BothFamilies(t *testing.T) {
	n1, n2 := listen(t, ":0"), listen(t, ":0")
	tag := n2.Announce("n2#a")
	hosts := []string{"127.0.0.1:1", "[::ffff:127.0.0.1]:1"}
	if c, err := net.ListenPacket("udp", "[::1]:0"); err == nil { // a machine without IPv6 has one less
		require.NoError(t, c.Close())
		hosts = append(hosts, "[::1]:1")
	}
	for _, host := range hosts {
		require.True(t, n1.Ping(t.Context(), downing.Target{ID: "n2#a", Addr: host, Tag: tag}, long), host)
	}
	v4 := listen(t, "127.0.0.1:0")
	require.True(t, v4.Ping(t.Context(), downing.Target{ID: "n2#a", Addr: "[::ffff:127.0.0.1]:1", Tag: tag},
		long), "a socket of IPv4 alone")
}

func TestPing_Concurrently(t *testing.T) {
	n1, n2 := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	t1, t2 := target(n1, "n1#a", n1.Announce("n1#a")), target(n2, "n2#a", n2.Announce("n2#a"))
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if i%2 == 0 {
				require.True(t, n1.Ping(t.Context(), t2, long))
			} else {
				require.True(t, n2.Ping(t.Context(), t1, long))
			}
		})
	}
	wg.Wait()
}

// Nobody listens at the port: a refused datagram is an unreachable member and not the end of the server.
func TestPing_RefusedIsUnreachable(t *testing.T) {
	n1, n2, n3 := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	gone := target(n2, "n2#a", n2.Announce("n2#a"))
	n2.Close()
	for range 3 {
		require.False(t, n1.Ping(t.Context(), gone, short))
	}
	require.True(t, n1.Ping(t.Context(), target(n3, "n3#a", n3.Announce("n3#a")), long))
}

// host answers as a test wants it to.
type host struct {
	conn *net.UDPConn
	tb   testing.TB
}

func newHost(t *testing.T) *host {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &host{conn: c, tb: t}
}

func (h *host) target(id sbr.ID) downing.Target {
	return downing.Target{ID: id, Addr: "127.0.0.1:1",
		Tag: strconv.FormatInt(int64(h.conn.LocalAddr().(*net.UDPAddr).Port), 36)}
}

func (h *host) receive() (request []byte, from *net.UDPAddr) {
	b := make([]byte, 1000)
	require.NoError(h.tb, h.conn.SetReadDeadline(time.Now().Add(long)))
	n, from, err := h.conn.ReadFromUDP(b)
	require.NoError(h.tb, err)
	return b[:n], from
}

func (h *host) send(b []byte, to *net.UDPAddr) {
	_, err := h.conn.WriteToUDP(b, to)
	require.NoError(h.tb, err)
}

// replyTo is the reply that a request should get.
func replyTo(request []byte) []byte {
	reply := append([]byte(nil), request[:21]...)
	reply[4] = 2
	return reply
}

func TestPing_TakesTheReplyWithItsNonceAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(reply []byte) []byte
		want   bool
	}{
		"the reply":         {func(b []byte) []byte { return b }, true},
		"another nonce":     {func(b []byte) []byte { b[20] ^= 1; return b }, false},
		"another version":   {func(b []byte) []byte { b[3]++; return b }, false},
		"another magic":     {func(b []byte) []byte { b[0]++; return b }, false},
		"a request":         {func(b []byte) []byte { b[4] = 1; return b }, false},
		"of no known kind":  {func(b []byte) []byte { b[4] = 3; return b }, false},
		"too short":         {func(b []byte) []byte { return b[:20] }, false},
		"too long":          {func(b []byte) []byte { return append(b, 0) }, false},
		"empty":             {func(b []byte) []byte { return nil }, false},
		"much too long":     {func(b []byte) []byte { return append(b, make([]byte, 5000)...) }, false},
		"the request again": {func([]byte) []byte { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			n1, h := listen(t, "127.0.0.1:0"), newHost(t)
			answer := make(chan bool, 1)
			go func() {
				timeout := long
				if !tc.want {
					timeout = 2 * short
				}
				answer <- n1.Ping(t.Context(), h.target("n2#a"), timeout)
			}()
			request, from := h.receive()
			h.send(tc.change(replyTo(request)), from)
			require.Equal(t, tc.want, <-answer)
		})
	}
}

func TestPing_LateAndRepeatedRepliesAreIgnored(t *testing.T) {
	n1, h := listen(t, "127.0.0.1:0"), newHost(t)
	require.False(t, n1.Ping(t.Context(), h.target("n2#a"), short))
	late, from := h.receive()
	for range 3 {
		h.send(replyTo(late), from)
	}
	require.False(t, n1.Ping(t.Context(), h.target("n2#a"), short), "a reply to the ping before")
}

// A reply is shorter than its request, and an invalid request gets none.
func TestServer_DoesNotAmplify(t *testing.T) {
	n1, n2, h := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0"), newHost(t)
	require.False(t, n2.Ping(t.Context(), h.target("n#a"), short))
	request, _ := h.receive()
	to := net.UDPAddrFromAddrPort(n1.Addr())
	tag := n1.Announce("n#b")
	h.send(request, to) // names another incarnation
	h.send(replyTo(request), to)
	h.send([]byte("sbr"), to)
	require.True(t, n2.Ping(t.Context(), target(n1, "n#b", tag), long),
		"which is handled after the datagrams before it")
	n1.Announce("n#a")
	h.send(request, to)
	reply, _ := h.receive()
	require.Equal(t, replyTo(request), reply)
	require.Less(t, len(reply), len(request))
}

func TestListen_PortInUse(t *testing.T) {
	first := listen(t, "127.0.0.1:0")
	_, err := probe.Listen(probe.Options{Addr: first.Addr().String()})
	require.ErrorIs(t, err, probe.ErrPortInUse)
	require.EqualError(t, err, fmt.Sprintf("probe: cannot listen at UDP %s: the port is in use: end the process that has it, or choose another port", first.Addr()))
}

func TestListen_BadAddress(t *testing.T) {
	for _, addr := range []string{"nonsense", "127.0.0.1:99999", "192.0.2.1:7947"} {
		_, err := probe.Listen(probe.Options{Addr: addr})
		require.ErrorContains(t, err, addr)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestClose_EndsPingsAndMayBeRepeated(t *testing.T) {
	n1, h := listen(t, "127.0.0.1:0"), newHost(t)
	answer := make(chan bool, 1)
	go func() { answer <- n1.Ping(t.Context(), h.target("n2#a"), time.Hour) }()
	h.receive()
	n1.Close()
	require.False(t, <-answer)
	n1.Close()
	require.False(t, n1.Ping(t.Context(), h.target("n2#a"), time.Hour))
}

// Junk costs no memory, and the server answers beside it.
func TestServer_Flood(t *testing.T) {
	n1, n2, h := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0"), newHost(t)
	t2 := target(n2, "n2#a", n2.Announce("n2#a"))
	to := n2.Addr()
	junk := [][]byte{[]byte("junk"), make([]byte, 1400), append([]byte("sbr\x01\x01"), make([]byte, 40)...),
		append([]byte("sbr\x01\x02"), make([]byte, 16)...)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const packets = 20_000
	for i := range packets {
		_, _ = h.conn.WriteToUDPAddrPort(junk[i%len(junk)], to)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.Mallocs-before.Mallocs, uint64(packets/10))
	require.Eventually(t, func() bool { return n1.Ping(t.Context(), t2, short) }, long, short,
		"a probe may be lost in a full queue, not all")
}

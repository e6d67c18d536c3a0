package probe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

// Whatever parse accepts is exactly what this package writes.
func FuzzParse(f *testing.F) {
	n := nonce{1, 2, 3}
	f.Add(appendReply(nil, n))
	f.Add(newRequest(n, "n1#abcdefgh"))
	f.Add([]byte("sbr"))
	f.Add(append(newRequest(n, "n1#a"), 'b'))
	f.Add(newRequest(n, "n1#a")[:headSize+2])
	f.Add(newRequest(n, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, ok := parse(b)
		if !ok {
			return
		}
		again := appendReply(nil, d.nonce)
		if d.kind == kindRequest {
			again = newRequest(d.nonce, string(d.id))
		}
		require.Equal(t, again, b)
	})
}

func TestHandle_AllocatesNothing(t *testing.T) {
	s, err := Listen(Options{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	defer s.Close()
	s.Announce("n1#a")
	var out [headSize]byte
	for _, b := range [][]byte{newRequest(nonce{1}, "n1#a"), newRequest(nonce{1}, "n2#a"),
		appendReply(nil, nonce{1}), []byte("junk")} {
		require.Zero(t, testing.AllocsPerRun(100, func() { s.handle(b, s.Addr(), out[:0]) }))
	}
}

// A read that fails, as while the network is down, does not end the server, and a ping that is over leaves
// nothing behind.
func TestServer_OutlivesErrors(t *testing.T) {
	s, err := Listen(Options{Addr: "127.0.0.1:0"})
	require.NoError(t, err)
	defer s.Close()
	self := downing.Target{ID: "n1#a", Addr: s.Addr().String(), Tag: s.Announce("n1#a")}
	require.NoError(t, s.conn.SetReadDeadline(time.Unix(1, 0)))
	require.False(t, s.Ping(t.Context(), self, 4*retryAfter))
	require.NoError(t, s.conn.SetReadDeadline(time.Time{}))
	require.True(t, s.Ping(t.Context(), self, 10*time.Second))
	require.Empty(t, s.waiting)
}

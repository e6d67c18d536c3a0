package agentrpc_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-msgpack/v2/codec"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
	"github.com/serf-sbr/serf-sbr/downing/wire"
)

type object map[string]any

// pack encodes what an agent says.
func pack(v any) (b []byte) {
	codec.NewEncoderBytes(&b, new(codec.MsgpackHandle)).MustEncode(v)
	return b
}

func packHeader(seq uint64) []byte { return pack(object{"Seq": seq, "Error": ""}) }

// impostor speaks the protocol of an agent as far as needed, and then says what a test wants.
type impostor struct {
	listen net.Listener
	work   sync.WaitGroup

	mu      sync.Mutex
	members []byte        // what follows the header of an answer to members
	stream  func() []byte // what follows the opening of the resolver's stream
	talk    func() []byte // what follows the opening of the other one; may be nil
	conns   []net.Conn

	refused   atomic.Int64 // how much of an answer had been sent when it was cut off
	onMembers func()
	hangsUp   bool // at a leave
}

func member(name string) object {
	return object{"Name": name, "Addr": "\x7f\x00\x00\x01", "Port": 1, "Status": "alive"}
}

// lists makes it list these members.
func (i *impostor) lists(members ...object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.members = pack(object{"Members": members})
}

func newImpostor(tb testing.TB, stream func() []byte) *impostor {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	i := &impostor{listen: l, stream: stream, members: pack(object{"Members": []object{member("n1")}})}
	i.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			i.mu.Lock()
			i.conns = append(i.conns, c)
			i.mu.Unlock()
			i.work.Go(func() { i.serve(c) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		i.mu.Lock()
		for _, c := range i.conns {
			_ = c.Close()
		}
		i.mu.Unlock()
		i.work.Wait()
	})
	return i
}

// serve answers requests. The client waits for each answer, so one read is one request.
func (i *impostor) serve(c net.Conn) {
	defer c.Close()
	b := make([]byte, 1<<16)
	for seq := uint64(1); ; seq++ {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		answer := packHeader(seq)
		request := b[:n]
		i.mu.Lock()
		switch {
		case bytes.Contains(request, []byte("stats")):
			answer = append(answer, pack(object{"agent": object{"name": "n1"}})...)
		case bytes.Contains(request, []byte("members")):
			answer = append(answer, i.members...)
			if i.onMembers != nil {
				i.onMembers()
			}
		case bytes.Contains(request, []byte("\xa5leave")) && i.hangsUp:
			i.mu.Unlock()
			return
		case bytes.Contains(request, []byte("\xa5leave")):
			i.mu.Unlock()
			continue // it takes its time
		case bytes.Contains(request, []byte("query:"+wire.FrameQuery)):
			if i.talk != nil {
				answer = append(answer, i.talk()...)
			}
		case bytes.Contains(request, []byte("stream")):
			answer = append(answer, i.stream()...)
		}
		i.mu.Unlock()
		if n, err := c.Write(answer); err != nil {
			i.refused.Store(int64(n))
			return
		}
	}
}

func quietOptions(addr string) agentrpc.Options {
	o := agentrpc.DefaultOptions()
	o.Addr, o.Timeout, o.Interval = addr, 5*time.Second, 20*time.Millisecond
	return o
}

// record is what follows the opening of a stream: a header and a packed record.
func streamed(records ...[]byte) func() []byte {
	return func() []byte {
		var b []byte
		for _, r := range records {
			b = append(append(b, packHeader(2)...), r...)
		}
		return b
	}
}

func packQuery(id uint64, name, payload string) []byte {
	return pack(object{"Event": "query", "ID": id, "Name": name, "Payload": payload})
}

// An agent that hangs up instead of an answer has left and ended; a silent agent may still be there.
func TestLeave_HangingUpIsTheEnd(t *testing.T) {
	i := newImpostor(t, streamed())
	s := open(t, quietOptions(i.listen.Addr().String()))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Leave(ctx), downing.ErrAgentTimeout)
	i.mu.Lock()
	i.hangsUp = true
	i.mu.Unlock()
	require.NoError(t, s.Leave(bounded(t)))
}

// A member list without the agent's own node is not current.
func TestMembers_WithoutItsOwnNode(t *testing.T) {
	i := newImpostor(t, streamed())
	s := open(t, quietOptions(i.listen.Addr().String()))
	i.lists(member("n2"))
	eventually(t, "it is not current", func() bool { return !s.current() })
	i.lists(member("n1"))
	eventually(t, "it is", s.current)
}

// Records that make no sense are passed over, and what follows them is heard.
func TestStream_RecordsOfAnyKind(t *testing.T) {
	i := newImpostor(t, streamed(
		pack(object{}),
		pack(object{"Event": 7}),
		pack(object{"Event": "query", "ID": "x"}),
		pack(object{"Event": "query", "ID": 1, "Name": []any{}, "Payload": object{}}),
		pack(object{"Event": "member-join", "Members": 3}),
		pack(object{"\xff\xfe": nil}),
		packQuery(1, wire.MessageQuery, "heard"),
	))
	s := open(t, quietOptions(i.listen.Addr().String()))
	eventually(t, "the record after them is heard", func() bool { return s.heard(wire.MessageQuery + " heard") })
	require.True(t, s.current())
}

// More than the sidecar takes in a second: what is too much is dropped, and members stay current.
func TestStream_Flood(t *testing.T) {
	const flood = 20_000
	records := slices.Repeat([][]byte{packQuery(1, wire.MessageQuery, "junk")}, flood)
	i := newImpostor(t, streamed(records...))
	s := open(t, quietOptions(i.listen.Addr().String()))
	eventually(t, "some are heard", func() bool { return s.heard(wire.MessageQuery + " junk") })
	require.Never(t, func() bool { return !s.current() }, time.Second, time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Less(t, len(s.queries), flood/2)
}

// A flood of questions that applications ask each other takes nothing from the resolver's queries, and what
// comes on the wrong line is dropped.
func TestStream_FloodOfTheOtherLine(t *testing.T) {
	const flood, ours = 20_000, 100
	i := newImpostor(t, streamed(slices.Repeat([][]byte{packQuery(1, wire.MessageQuery, "ours"), packQuery(1, wire.FrameQuery, "astray")}, ours)...))
	i.talk = streamed(slices.Repeat([][]byte{packQuery(1, wire.FrameQuery, "junk"),
		packQuery(1, wire.MessageQuery, "astray")}, flood)...)
	s := open(t, quietOptions(i.listen.Addr().String()))
	count := func(what string) (n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, q := range s.queries {
			if strings.HasSuffix(q, what) {
				n++
			}
		}
		return n
	}
	eventually(t, "the resolver's queries are heard",
		func() bool { return count(wire.MessageQuery+" ours") == ours })
	eventually(t, "some of the others are heard", func() bool { return count(" junk") > 0 })
	require.Never(t, func() bool { return !s.current() }, time.Second, time.Millisecond)
	require.Less(t, count(" junk"), flood/2)
	require.Zero(t, count(" astray"))
}

// An answer without an end is cut off long before it fills the memory.
func TestMembers_AnswerWithoutAnEnd(t *testing.T) {
	i := newImpostor(t, streamed())
	s := open(t, quietOptions(i.listen.Addr().String()))
	endless := append([]byte{0xdb, 0x7f, 0xff, 0xff, 0xff}, bytes.Repeat([]byte{'x'}, 96<<20)...)
	i.mu.Lock()
	i.members = slices.Concat([]byte{0x81}, pack("Members"), []byte{0x91, 0x81}, pack("Name"), endless)
	i.mu.Unlock()
	eventually(t, "it is cut off", func() bool { return i.refused.Load() > 0 })
	eventually(t, "it is not current", func() bool { return !s.current() })
	require.Less(t, i.refused.Load(), int64(48<<20), "the bound, and what the sockets hold")
}

// The bound is for one answer and not for all together.
func TestMembers_ManyAnswersAreNoFlood(t *testing.T) {
	i := newImpostor(t, streamed())
	list := []object{member("n1")}
	for n := range 5000 {
		list = append(list, object{"Name": fmt.Sprint("m", n), "Status": "alive",
			"Tags": object{"pad": strings.Repeat("x", 300)}})
	}
	i.lists(list...)
	var read atomic.Int64
	i.onMembers = func() { read.Add(1) }
	s := open(t, quietOptions(i.listen.Addr().String()))
	eventually(t, "more than the bound has been read",
		func() bool { return read.Load()*int64(len(i.members)) > 40<<20 })
	require.True(t, s.current())
	i.mu.Lock()
	defer i.mu.Unlock()
	require.Len(t, i.conns, 3, "it had to connect again")
}

// An agent that takes tags and does not show them has not set them.
func TestTag_IsReadBack(t *testing.T) {
	i := newImpostor(t, streamed())
	s := open(t, quietOptions(i.listen.Addr().String()))
	require.ErrorContains(t, s.Tag(bounded(t), map[string]string{"uid": "x"}, nil), "n1 has not got its tags")
	require.NoError(t, s.Tag(bounded(t), nil, []string{"uid"}))
}

// Whatever an agent streams, the sidecar neither panics nor hangs, and ends.
func FuzzStream(f *testing.F) {
	f.Add(packQuery(1, wire.MessageQuery, "x"))
	f.Add(pack(object{"Event": "member-join"}))
	f.Add([]byte{0x81, 0x90, 0xc0}) // a list as the key of a map
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x81, 0xa5, 'E', 'v', 'e', 'n', 't', 0x81, 0x90, 0xc0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		i := newImpostor(t, streamed(raw, packQuery(1, wire.MessageQuery, "after")))
		s := open(t, quietOptions(i.listen.Addr().String()))
		s.Close()
	})
}

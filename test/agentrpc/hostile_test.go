package agentrpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/serf/client"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// field is one entry of a packed map; its value is packed already.
type field struct {
	name  string
	value []byte
}

func packMap(fields ...field) []byte {
	b := []byte{0x80 | byte(len(fields))}
	for _, f := range fields {
		b = append(append(b, packText(f.name)...), f.value...)
	}
	return b
}

func packText(s string) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0xda}, uint16(len(s))), s...)
}

func packNumber(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{0xcf}, n) }

func packList(entries ...[]byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0xdc}, uint16(len(entries))), bytes.Join(entries, nil)...)
}

func packHeader(seq uint64) []byte {
	return packMap(field{"Seq", packNumber(seq)}, field{"Error", packText("")})
}

// impostor speaks the protocol of an agent as far as needed, and then says what a test wants.
type impostor struct {
	listen net.Listener
	work   sync.WaitGroup

	mu      sync.Mutex
	members []byte        // what follows the header of an answer to members
	says    string        // what it says to everything, if not empty
	stream  func() []byte // what follows the opening of the resolver's stream
	talk    func() []byte // what follows the opening of the other one; may be nil
	conns   []net.Conn

	refused   atomic.Int64 // how much of an answer had been sent when it was cut off
	onMembers func()
	hangsUp   bool // at a leave
}

func packMember(name, status string) []byte {
	return packMap(field{"Name", packText(name)}, field{"Addr", packText("\x7f\x00\x00\x01")}, field{"Port", packNumber(1)}, field{"Status", packText(status)})
}

// restart makes it an agent that lists other members, and ends its connections.
func (i *impostor) restart(members ...[]byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.members = packMap(field{"Members", packList(members...)})
	for _, c := range i.conns {
		_ = c.Close()
	}
}

func newImpostor(tb testing.TB, stream func() []byte) *impostor {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	i := &impostor{listen: l, stream: stream, members: packMap(field{"Members", packList(packMember("n1", "alive"))})}
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

// speaks makes it another kind of server, and returns its address.
func (i *impostor) speaks(text string) (addr string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.says = text
	return i.listen.Addr().String()
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
		case i.says != "":
			answer = []byte(i.says)
		case bytes.Contains(request, []byte("stats")):
			answer = append(answer, packMap(field{"agent", packMap(field{"name", packText("n1")})})...)
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
	return packMap(field{"Event", packText("query")}, field{"ID", packNumber(id)}, field{"Name", packText(name)}, field{"Payload", packText(payload)})
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
	i.mu.Lock()
	i.members = packMap(field{"Members", packList(packMember("n2", "alive"))})
	i.mu.Unlock()
	eventually(t, "it is not current", func() bool { return !s.current() })
	i.restart(packMember("n1", "alive"))
	eventually(t, "it is", s.current)
}

// Records that make no sense are passed over, and what follows them is heard.
func TestStream_RecordsOfAnyKind(t *testing.T) {
	i := newImpostor(t, streamed(
		packMap(),
		packMap(field{"Event", packNumber(7)}),
		packMap(field{"Event", packText("query")}, field{"ID", packText("x")}),
		packMap(field{"Event", packText("query")}, field{"ID", packNumber(1)}, field{"Name", packList()}, field{"Payload", packMap()}),
		packMap(field{"Event", packText("member-join")}, field{"Members", packNumber(3)}),
		packMap(field{"\xff\xfe", []byte{0xc0}}),
		packQuery(1, wire.MessageQuery, "heard"),
	))
	s := open(t, quietOptions(i.listen.Addr().String()))
	eventually(t, "the record after them is heard", func() bool { return s.heard(wire.MessageQuery + " heard") })
	require.True(t, s.current())
}

// Members that a restarted agent has forgotten are failed until it lists them again, unless they had left.
func TestRestart_TheForgottenAreFailed(t *testing.T) {
	i := newImpostor(t, streamed())
	i.restart(packMember("n1", "alive"), packMember("n2", "alive"), packMember("n3", "failed"), packMember("n4", "left"))
	s := open(t, quietOptions(i.listen.Addr().String()))
	s.sees(t, map[string]string{"n1": "alive", "n2": "alive", "n3": "failed", "n4": "left"})
	i.restart(packMember("n1", "alive"))
	s.sees(t, map[string]string{"n1": "alive", "n2": "failed", "n3": "failed"})
	i.mu.Lock()
	i.members = packMap(field{"Members", packList(packMember("n1", "alive"), packMember("n2", "alive"))})
	i.mu.Unlock()
	s.sees(t, map[string]string{"n1": "alive", "n2": "alive", "n3": "failed"})
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
	i.talk = streamed(slices.Repeat([][]byte{packQuery(1, wire.FrameQuery, "junk"), packQuery(1, wire.MessageQuery, "astray")}, flood)...)
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
	eventually(t, "the resolver's queries are heard", func() bool { return count(wire.MessageQuery+" ours") == ours })
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
	i.members = packMap(field{"Members", packList(packMap(field{"Name", endless}))})
	i.mu.Unlock()
	eventually(t, "it is cut off", func() bool { return i.refused.Load() > 0 })
	eventually(t, "it is not current", func() bool { return !s.current() })
	require.Less(t, i.refused.Load(), int64(48<<20), "the bound, and what the sockets hold")
}

// What it costs to read the members of a cluster of 100, which happens twice a second.
func BenchmarkMembers100(b *testing.B) {
	i := newImpostor(b, streamed())
	var list [][]byte
	for n := range 100 {
		list = append(list, packMap(field{"Name", packText(fmt.Sprintf("n%d", n+1))}, field{"Addr", packText("\x7f\x00\x00\x01")}, field{"Port", packNumber(7946)},
			field{"Status", packText("alive")}, field{"Tags", packMap(field{"sbr_uid", packText("abcdefgh")}, field{"sbr_born", packText("lkjhgfds")},
				field{"sbr_seen", packText("1a")}, field{"sbr_cfg", packText("0123456789ab")}, field{"sbr_udp", packText("64r")}, field{"role", packText("web")})}))
	}
	i.members = packMap(field{"Members", packList(list...)})
	read := make(chan struct{}, 1)
	o := quietOptions(i.listen.Addr().String())
	o.Interval = time.Nanosecond
	a, err := agentrpc.New(o)
	require.NoError(b, err)
	defer a.Close()
	i.onMembers = func() {
		select {
		case read <- struct{}{}:
		default:
		}
	}
	_, err = a.Open(b.Context(), downing.AgentEvents{})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		<-read
	}
}

// The bound is for one answer and not for all together.
func TestMembers_ManyAnswersAreNoFlood(t *testing.T) {
	i := newImpostor(t, streamed())
	list := [][]byte{packMember("n1", "alive")}
	for n := range 5000 {
		list = append(list, packMap(field{"Name", packText(fmt.Sprintf("m%d", n))}, field{"Status", packText("alive")}, field{"Tags", packMap(field{"pad", packText(strings.Repeat("x", 300))})}))
	}
	i.members = packMap(field{"Members", packList(list...)})
	var read atomic.Int64
	i.onMembers = func() { read.Add(1) }
	s := open(t, quietOptions(i.listen.Addr().String()))
	eventually(t, "more than the bound has been read", func() bool { return read.Load()*int64(len(i.members)) > 40<<20 })
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
	f.Add(packMap(field{"Event", packText("member-join")}))
	f.Add(append([]byte{0x81}, append(packList(), 0xc0)...)) // a list as the key of a map
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x81, 0xa5, 'E', 'v', 'e', 'n', 't', 0x81, 0x90, 0xc0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		i := newImpostor(t, streamed(raw, packQuery(1, wire.MessageQuery, "after")))
		s := open(t, quietOptions(i.listen.Addr().String()))
		s.Close()
	})
}

// Junk from other members, at the rate of a real agent: what is not the resolvers' stays with the agent, and
// the rest neither grows memory nor delays the members.
func TestFlood_RealAgent(t *testing.T) {
	agents, s := cluster(t, serftest.Module, 2)
	c, err := agents[1].Dial()
	require.NoError(t, err)
	defer c.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	junk := bytes.Repeat([]byte("j"), 100)
	for range 2000 {
		require.NoError(t, c.UserEvent("junk", junk, false))
		require.NoError(t, c.Query(&client.QueryParam{Name: wire.MessageQuery, Payload: junk, Timeout: 10 * time.Millisecond}))
		require.True(t, s[0].current())
	}
	eventually(t, "some was heard", func() bool { return s[0].heard(wire.MessageQuery + " " + string(junk)) })
	s[0].mu.Lock()
	s[0].queries = nil
	s[0].mu.Unlock()
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20))
}

package message_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func draw(t *rapid.T) message.Message {
	number := rapid.Uint64Range(1, 1<<62)
	m := message.Message{Kind: message.Kind(rapid.IntRange(1, int(message.Resigned)).Draw(t, "kind")),
		Digest: rapid.Uint64().Draw(t, "digest")}
	m.Number = number.Draw(t, "number")
	m.Term = message.TermOf(m.Number)
	shards := rapid.SliceOfNDistinct(rapid.IntRange(0, message.MaxShards-1), 0, 300, rapid.ID).Draw(t, "shards")
	slices.Sort(shards)
	keys := rapid.SliceOfN(rapid.Uint64Range(0, 3<<60), 1, 90).Draw(t, "keys")
	key := func() message.Key { return message.Key(rapid.SampledFrom(keys).Draw(t, "key")) }
	switch m.Kind {
	case message.Report:
		m.First = rapid.IntRange(0, message.MaxShards).Draw(t, "first")
	case message.Orders:
		for _, s := range shards {
			n := message.Number(m.Term, rapid.Uint64Range(1, message.MaxCounter).Draw(t, "n"))
			m.Orders = append(m.Orders, message.Order{Shard: s, From: key(), To: key(), Number: n})
		}
	case message.State:
		m.Full, m.Leaving, m.Busy = rapid.Bool().Draw(t, "full"), rapid.Bool().Draw(t, "leaving"),
			rapid.Bool().Draw(t, "busy")
		m.Refused = rapid.Bool().Draw(t, "refused")
		m.Next = message.MaxShards
		m.Seq = number.Draw(t, "seq")
		m.Wait = time.Duration(rapid.IntRange(0, 1e6).Draw(t, "wait")) * time.Millisecond
		for _, s := range shards {
			e := message.Entry{Shard: s, Phase: slot.Phase(rapid.IntRange(0, int(slot.Stopping)).Draw(t, "phase"))}
			if e.Phase != slot.Idle {
				e.Number = number.Draw(t, "number")
			}
			e.Seen = e.Number + rapid.Uint64Range(0, 1000).Draw(t, "seen")
			e.Token = rapid.Uint64Range(0, 1000).Draw(t, "token")
			m.Entries = append(m.Entries, e)
		}
	case message.Noted, message.Resigned:
		m.Seq = number.Draw(t, "seq")
	case message.HandOver:
		for _, s := range shards {
			m.Takes = append(m.Takes, message.Take{Shard: s, Number: number.Draw(t, "number")})
		}
	case message.HandedOver:
		for _, s := range shards[:min(len(shards), 20)] {
			h := message.Handed{Shard: s, Number: number.Draw(t, "number"), Refused: rapid.Bool().Draw(t, "refused"),
				Token: rapid.Uint64Range(0, math.MaxInt64).Draw(t, "token")}
			if b := rapid.SliceOfN(rapid.Byte(), 0, message.MaxState).Draw(t, "state"); len(b) > 0 {
				h.State = b
			}
			m.Handed = append(m.Handed, h)
		}
	}
	return m
}

// TestProperty_FitFits: as much of a message as Fit allows is at most MaxSize long, and comes back as it was.
func TestProperty_FitFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := draw(t)
		n := message.Fit(&m)
		if items := len(m.Orders) + len(m.Entries) + len(m.Takes) + len(m.Handed); items > 0 {
			require.Positive(t, n, "at least one fits")
		}
		m.Orders, m.Entries = m.Orders[:min(n, len(m.Orders))], m.Entries[:min(n, len(m.Entries))]
		m.Takes, m.Handed = m.Takes[:min(n, len(m.Takes))], m.Handed[:min(n, len(m.Handed))]
		b := message.Append(nil, &m)
		require.LessOrEqual(t, len(b), message.MaxSize)
		got, err := message.Decode(b)
		require.NoError(t, err)
		require.Equal(t, message.Append(nil, &m), message.Append(nil, &got))
		require.Equal(t, m, got)
	})
}

// TestDecode_Strict: what is cut off, goes on, or was changed so that it means nothing is not read.
func TestDecode_Strict(t *testing.T) {
	report := message.Message{Kind: message.Report, Term: 3, Number: message.Number(3, 7), First: 5}
	state := message.Message{Kind: message.State, Term: 3, Full: true, First: 10, Next: 20,
		Entries: []message.Entry{{Shard: 12, Phase: slot.Active, Number: 9, Seen: 9}}}
	change := func(m message.Message, f func(*message.Message)) []byte {
		f(&m)
		m.Entries = slices.Clone(m.Entries)
		return message.Append(nil, &m)
	}
	whole := message.Append(nil, &report)
	for name, b := range map[string][]byte{
		"nothing":                  {},
		"kind 0":                   append([]byte{0}, whole[1:]...),
		"unknown kind":             append([]byte{99}, whole[1:]...),
		"cut off":                  whole[:len(whole)-1],
		"goes on":                  append(slices.Clone(whole), 0),
		"too long":                 bytes.Repeat([]byte{1}, message.MaxSize+1),
		"number of another term":   change(report, func(m *message.Message) { m.Term = 4 }),
		"shard out of range":       change(report, func(m *message.Message) { m.First = message.MaxShards + 1 }),
		"entry out of its range":   change(state, func(m *message.Message) { m.First = 13 }),
		"range ends before":        change(state, func(m *message.Message) { m.First, m.Next, m.Full = 20, 10, false }),
		"idle with a number":       change(state, func(m *message.Message) { m.Entries = []message.Entry{{Shard: 12, Number: 9, Seen: 9}} }),
		"running without":          change(state, func(m *message.Message) { m.Entries = []message.Entry{{Shard: 12, Phase: slot.Active}} }),
		"longer than it has to be": append(slices.Clone(whole[:len(whole)-1]), 0x85, 0x00),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := message.Decode(b)
			require.ErrorIs(t, err, message.ErrInvalid)
		})
	}
	for _, m := range []message.Message{report, state} {
		_, err := message.Decode(message.Append(nil, &m))
		require.NoError(t, err)
	}
}

func TestDigest_TellsListsApart(t *testing.T) {
	all := map[uint64]string{}
	for _, c := range []struct {
		kind  string
		names []string
		lease bool
	}{
		{"a", []string{"x", "y"}, false}, {"a", []string{"x", "y"}, true}, {"b", []string{"x", "y"}, false}, {"a", []string{"xy"}, false},
		{"a", []string{"x"}, false}, {"ax", []string{"y"}, false},
	} {
		d := message.Digest(c.kind, c.names, c.lease)
		require.Empty(t, all[d], "%v", c)
		all[d] = fmt.Sprint(c)
		require.Equal(t, d, message.Digest(c.kind, c.names, c.lease))
	}
}

func TestKeyOf(t *testing.T) {
	require.Equal(t, message.Nobody, message.KeyOf(""))
	require.NotEqual(t, message.Nobody, message.KeyOf("n1#a"))
	require.NotEqual(t, message.KeyOf("n1#a"), message.KeyOf(sbr.ID("n1#b")))
}

func TestNumber(t *testing.T) {
	require.EqualValues(t, 5, message.TermOf(message.Number(5, message.MaxCounter)))
	require.Less(t, message.Number(5, message.MaxCounter), message.Number(6, 1))
	require.Less(t, message.Number(message.MaxTerm, message.MaxCounter), uint64(1)<<63)
}

func TestNames(t *testing.T) {
	require.Equal(t, "hand-over", message.HandOver.String())
	require.Equal(t, "none", message.Kind(200).String())
}

// FuzzDecode: whatever comes is refused, or is exactly what would be written.
func FuzzDecode(f *testing.F) {
	for k := message.Report; k <= message.Resigned; k++ {
		m := message.Message{Kind: k, Term: 1, Number: message.Number(1, 2)}
		f.Add(message.Append(nil, &m))
	}
	orders := message.Message{Kind: message.Orders, Term: 1, Number: message.Number(1, 9),
		Orders: []message.Order{{Shard: 3, From: 7, To: 8, Number: message.Number(1, 8)}}}
	f.Add(message.Append(nil, &orders))
	handed := message.Message{Kind: message.HandedOver, Handed: []message.Handed{{Shard: 3, Number: 7, Token: 4,
		State: []byte("x")}, {Shard: 9, Number: 5, Refused: true}}}
	f.Add(message.Append(nil, &handed))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := message.Decode(b)
		if err != nil {
			require.ErrorIs(t, err, message.ErrInvalid)
			return
		}
		require.Equal(t, b, message.Append(nil, &m))
		for i := range m.Orders {
			require.Less(t, m.Orders[i].Shard, message.MaxShards)
			require.Equal(t, m.Term, message.TermOf(m.Orders[i].Number))
		}
	})
}

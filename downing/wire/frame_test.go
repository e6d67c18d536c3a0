package wire_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var (
	n1, n2 = wire.KeyOf("n1#abcdefgh"), wire.KeyOf("n2#abcdefgh")
	full   = bytes.Repeat([]byte{0xff}, wire.MaxPayload)
)

// frames are one message of each kind, and the extremes.
var frames = map[string]wire.Frame{
	"a question to one":       {Kind: wire.Question, From: n1, To: n2, Within: time.Second, Topic: "backup", Payload: []byte("who?")},
	"a question to everybody": {Kind: wire.Question, From: n1, Within: time.Millisecond, Topic: "a"},
	"the longest question":    {Kind: wire.Question, From: n1, To: n2, Within: wire.MaxWithin, Topic: strings.Repeat("z", 63), Payload: full},
	"an answer":               {Kind: wire.Answer, From: n2, Payload: []byte("me")},
	"an empty answer":         {Kind: wire.Answer, From: n2},
	"the longest answer":      {Kind: wire.Answer, From: n2, Payload: full},
	"unserved":                {Kind: wire.Unserved, From: n2},
}

// Whatever is sent arrives unchanged.
func TestFrame_RoundTrip(t *testing.T) {
	for name, m := range frames {
		t.Run(name, func(t *testing.T) {
			b, err := m.Encode()
			require.NoError(t, err)
			require.LessOrEqual(t, len(b), wire.MaxMessage, "what has room beside Serf's own header")
			got, err := wire.DecodeFrame(b)
			require.NoError(t, err)
			require.Equal(t, m, got)
		})
	}
}

// What was decoded does not change with the buffer that it was read from.
func TestDecodeFrame_SharesNothing(t *testing.T) {
	answer := frames["an answer"]
	b, err := answer.Encode()
	require.NoError(t, err)
	m, err := wire.DecodeFrame(b)
	require.NoError(t, err)
	clear(b)
	require.Equal(t, frames["an answer"], m)
}

// What makes no sense is neither written nor read.
func TestFrameEncode_RefusesWhatDecodeWould(t *testing.T) {
	with := func(change func(*wire.Frame)) wire.Frame {
		m := frames["a question to one"]
		change(&m)
		return m
	}
	for name, m := range map[string]wire.Frame{
		"no kind":                  with(func(m *wire.Frame) { m.Kind = 0 }),
		"an unknown kind":          with(func(m *wire.Frame) { m.Kind = 9 }),
		"no sender":                with(func(m *wire.Frame) { m.From = wire.Key{} }),
		"no topic":                 with(func(m *wire.Frame) { m.Topic = "" }),
		"a topic that is too long": with(func(m *wire.Frame) { m.Topic = strings.Repeat("a", 63+1) }),
		"a topic with a comma":     with(func(m *wire.Frame) { m.Topic = "a,b" }),
		"no time":                  with(func(m *wire.Frame) { m.Within = 0 }),
		"too much time":            with(func(m *wire.Frame) { m.Within = wire.MaxWithin + time.Millisecond }),
		"a part of a millisecond":  with(func(m *wire.Frame) { m.Within = 1500 * time.Microsecond }),
		"too much payload":         with(func(m *wire.Frame) { m.Payload = append(slices.Clip(full), 0) }),
		"an answer to somebody":    {Kind: wire.Answer, From: n1, To: n2},
		"an answer with a topic":   {Kind: wire.Answer, From: n1, Topic: "a"},
		"an answer with a time":    {Kind: wire.Answer, From: n1, Within: time.Second},
		"unserved with a payload":  {Kind: wire.Unserved, From: n1, Payload: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := m.Encode()
			require.ErrorIs(t, err, wire.ErrInvalid)
			require.Nil(t, b)
		})
	}
}

// Only what Encode can have written is accepted.
func TestDecodeFrame_RefusesEverythingElse(t *testing.T) {
	encoded := func(name string) []byte {
		m := frames[name]
		b, err := m.Encode()
		require.NoError(t, err)
		return b
	}
	question := encoded("a question to one")
	changed := func(at int, to byte) []byte {
		b := bytes.Clone(question)
		b[at] = to
		return b
	}
	const topicLength = 2 + 8 + 8 + 4
	for name, data := range map[string][]byte{
		"nothing":                          nil,
		"text":                             []byte("hello, is anybody there?"),
		"a message of the resolver":        []byte(`{"k":"done","f":"n1#abcdefgh"}`),
		"another version":                  changed(0, 2),
		"an unknown kind":                  changed(1, 7),
		"half a sender":                    question[:6],
		"half a question":                  question[:topicLength],
		"a topic longer than the message":  changed(topicLength, 200),
		"no topic":                         changed(topicLength, 0),
		"a topic that is none":             changed(topicLength+1, 'A'),
		"more than the limit":              append(encoded("the longest question"), 0),
		"an answer with too much payload":  append(encoded("the longest answer"), 0),
		"unserved with something after it": append(encoded("unserved"), 0),
		"a sender that is nobody":          append([]byte{1, byte(wire.Answer)}, make([]byte, 8)...),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := wire.DecodeFrame(data)
			require.ErrorIs(t, err, wire.ErrInvalid)
			require.Zero(t, m, "what was refused must not be used")
		})
	}
}

func TestCheckTopic(t *testing.T) {
	for topic, ok := range map[string]bool{
		"backup": true, "a": true, "0": true, "sys-shard-orders_7.v2": true, strings.Repeat("a", 63): true,
		"": false, strings.Repeat("a", 64): false, "Backup": false, "a b": false, "a,b": false, "a/b": false, "ä": false, "a\x00": false, "a:": false, "`": false, "{": false,
	} {
		if ok {
			require.NoError(t, wire.CheckTopic(topic), topic)
		} else {
			require.ErrorIs(t, wire.CheckTopic(topic), wire.ErrTopic, topic)
		}
	}
}

// Two lives of a node have two keys.
func TestKeyOf(t *testing.T) {
	require.Equal(t, n1, wire.KeyOf("n1#abcdefgh"))
	require.NotEqual(t, n1, wire.KeyOf("n1#abcdefgi"))
	require.NotZero(t, wire.KeyOf(sbr.ID("")))
}

// Decode never panics, and what it accepts is exactly what Encode writes.
func FuzzDecodeFrame(f *testing.F) {
	for _, m := range frames {
		b, err := m.Encode()
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wire.DecodeFrame(data)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrInvalid)
			require.Zero(t, m)
			return
		}
		require.LessOrEqual(t, len(m.Payload), wire.MaxPayload)
		b, err := m.Encode()
		require.NoError(t, err)
		require.Equal(t, data, b)
	})
}

// Encode writes nothing that Decode refuses, or reads as something else.
func FuzzFrameEncode(f *testing.F) {
	f.Add(uint8(1), "n1#a", "n2#b", int64(1000), "backup", []byte("x"))
	f.Add(uint8(2), "n1#a", "", int64(0), "", []byte(nil))
	f.Fuzz(func(t *testing.T, kind uint8, from, to string, within int64, topic string, payload []byte) {
		m := wire.Frame{Kind: wire.FrameKind(kind), From: wire.Key([]byte(from + "12345678")[:8]),
			Within: time.Duration(within) * time.Millisecond, Topic: topic, Payload: payload}
		if to != "" {
			m.To = wire.Key([]byte(to + "12345678")[:8])
		}
		b, err := m.Encode()
		if err != nil {
			require.ErrorIs(t, err, wire.ErrInvalid)
			return
		}
		got, err := wire.DecodeFrame(b)
		require.NoError(t, err)
		if len(m.Payload) == 0 {
			m.Payload = nil
		}
		require.Equal(t, m, got)
	})
}

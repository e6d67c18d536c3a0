package talk_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/talk"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var (
	n1, n2 = talk.KeyOf("n1#abcdefgh"), talk.KeyOf("n2#abcdefgh")
	full   = bytes.Repeat([]byte{0xff}, talk.MaxPayload)
)

// samples are one message of each kind, and the extremes.
var samples = map[string]talk.Message{
	"a question to one":       {Kind: talk.Question, From: n1, To: n2, Within: time.Second, Topic: "backup", Payload: []byte("who?")},
	"a question to everybody": {Kind: talk.Question, From: n1, Within: time.Millisecond, Topic: "a"},
	"the longest question":    {Kind: talk.Question, From: n1, To: n2, Within: talk.MaxWithin, Topic: strings.Repeat("z", talk.MaxTopic), Payload: full},
	"an answer":               {Kind: talk.Answer, From: n2, Payload: []byte("me")},
	"an empty answer":         {Kind: talk.Answer, From: n2},
	"the longest answer":      {Kind: talk.Answer, From: n2, Payload: full},
	"unserved":                {Kind: talk.Unserved, From: n2},
}

// Whatever is sent arrives unchanged.
func TestMessage_RoundTrip(t *testing.T) {
	for name, m := range samples {
		t.Run(name, func(t *testing.T) {
			b, err := talk.Encode(m)
			require.NoError(t, err)
			require.LessOrEqual(t, len(b), talk.Limit)
			got, err := talk.Decode(b)
			require.NoError(t, err)
			require.Equal(t, m, got)
		})
	}
}

// What was decoded does not change with the buffer that it was read from.
func TestDecode_SharesNothing(t *testing.T) {
	b, err := talk.Encode(samples["an answer"])
	require.NoError(t, err)
	m, err := talk.Decode(b)
	require.NoError(t, err)
	clear(b)
	require.Equal(t, samples["an answer"], m)
}

// What makes no sense is neither written nor read.
func TestEncode_RefusesWhatDecodeWould(t *testing.T) {
	with := func(change func(*talk.Message)) talk.Message {
		m := samples["a question to one"]
		change(&m)
		return m
	}
	for name, m := range map[string]talk.Message{
		"no kind":                  with(func(m *talk.Message) { m.Kind = 0 }),
		"an unknown kind":          with(func(m *talk.Message) { m.Kind = 9 }),
		"no sender":                with(func(m *talk.Message) { m.From = talk.Key{} }),
		"no topic":                 with(func(m *talk.Message) { m.Topic = "" }),
		"a topic that is too long": with(func(m *talk.Message) { m.Topic = strings.Repeat("a", talk.MaxTopic+1) }),
		"a topic with a comma":     with(func(m *talk.Message) { m.Topic = "a,b" }),
		"no time":                  with(func(m *talk.Message) { m.Within = 0 }),
		"too much time":            with(func(m *talk.Message) { m.Within = talk.MaxWithin + time.Millisecond }),
		"a part of a millisecond":  with(func(m *talk.Message) { m.Within = 1500 * time.Microsecond }),
		"too much payload":         with(func(m *talk.Message) { m.Payload = append(slices.Clip(full), 0) }),
		"an answer to somebody":    {Kind: talk.Answer, From: n1, To: n2},
		"an answer with a topic":   {Kind: talk.Answer, From: n1, Topic: "a"},
		"an answer with a time":    {Kind: talk.Answer, From: n1, Within: time.Second},
		"unserved with a payload":  {Kind: talk.Unserved, From: n1, Payload: []byte("x")},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := talk.Encode(m)
			require.ErrorIs(t, err, talk.ErrInvalid)
			require.Nil(t, b)
		})
	}
}

// Only what Encode can have written is accepted.
func TestDecode_RefusesEverythingElse(t *testing.T) {
	encoded := func(name string) []byte {
		b, err := talk.Encode(samples[name])
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
		"a sender that is nobody":          append([]byte{1, byte(talk.Answer)}, make([]byte, 8)...),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := talk.Decode(data)
			require.ErrorIs(t, err, talk.ErrInvalid)
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
			require.NoError(t, talk.CheckTopic(topic), topic)
		} else {
			require.ErrorIs(t, talk.CheckTopic(topic), talk.ErrTopic, topic)
		}
	}
}

// Two lives of a node have two keys.
func TestKeyOf(t *testing.T) {
	require.Equal(t, n1, talk.KeyOf("n1#abcdefgh"))
	require.NotEqual(t, n1, talk.KeyOf("n1#abcdefgi"))
	require.NotZero(t, talk.KeyOf(sbr.ID("")))
}

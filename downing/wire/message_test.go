package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// ids makes n incarnations as nodes have them.
func ids(prefix string, n int) (out []sbr.ID) {
	for i := range n {
		out = append(out, sbr.ID(fmt.Sprintf("%s-%03d#abcdefgh", prefix, i)))
	}
	return out
}

// samples are one message of each kind.
var samples = map[wire.Kind]wire.Message{
	wire.KindReport: {Kind: wire.KindReport, From: "n1#a", Up: []sbr.ID{"n2#b"}, Down: []sbr.ID{"n3#c", "n4#d"}},
	wire.KindVerdict: {Kind: wire.KindVerdict, From: "n1#a", Token: 7, By: "n2#b", Whole: true,
		Up: []sbr.ID{"n1#a", "n2#b"}, Down: []sbr.ID{"n3#c"},
		Reason: "2 of 3 members are reachable"},
	wire.KindOrder: {Kind: wire.KindOrder, From: "n1#a", Decided: sbr.DownUnreachable.String(),
		Up: []sbr.ID{"n2#b"}, Down: []sbr.ID{"n3#c"}, Reason: "a majority"},
	wire.KindAsk:      {Kind: wire.KindAsk, From: "n1#a", Up: []sbr.ID{"n2#b"}},
	wire.KindStanding: {Kind: wire.KindStanding, From: "n1#a", Seen: 1<<64 - 1},
	wire.KindClear:    {Kind: wire.KindClear, From: "n1#a", Token: 3},
	wire.KindDone:     {Kind: wire.KindDone, From: "n1#a"},
}

// Whatever is sent arrives unchanged, for each kind.
func TestMessage_RoundTrip(t *testing.T) {
	for kind, m := range samples {
		t.Run(string(kind), func(t *testing.T) {
			payloads := wire.Encode(m)
			require.Len(t, payloads, 1)
			got, err := wire.Decode(payloads[0])
			require.NoError(t, err)
			require.Equal(t, m, got)
		})
	}
}

// Only what Encode can have written is accepted.
func TestDecode_RefusesEverythingElse(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":                              ``,
		"no JSON":                              `hello`,
		"null":                                 `null`,
		"a list":                               `[]`,
		"half a message":                       `{"k":"done","f":"n1`,
		"no sender":                            `{"k":"done"}`,
		"no kind":                              `{"f":"n1#a"}`,
		"an unknown kind":                      `{"k":"shout","f":"n1#a"}`,
		"an unknown field":                     `{"k":"done","f":"n1#a","z":1}`,
		"a second message":                     `{"k":"done","f":"n1#a"}{"k":"done","f":"n1#a"}`,
		"something behind it":                  `{"k":"done","f":"n1#a"} x`,
		"an empty incarnation":                 `{"k":"ask","f":"n1#a","u":["n2#b",""]}`,
		"a verdict without a token":            `{"k":"verdict","f":"n1#a","d":["n2#b"]}`,
		"a negative token":                     `{"k":"verdict","f":"n1#a","t":-1}`,
		"an order without a kind":              `{"k":"order","f":"n1#a","d":["n2#b"]}`,
		"an order to do nothing":               `{"k":"order","f":"n1#a","d":["n2#b"],"x":"none"}`,
		"an order that needs a lease":          `{"k":"order","f":"n1#a","d":["n2#b"],"x":"acquire-lease-and-down-unreachable"}`,
		"an order of an unknown kind":          `{"k":"order","f":"n1#a","d":["n2#b"],"x":"down-somebody"}`,
		"more than the limit":                  `{"k":"done","f":"` + strings.Repeat("n", wire.MaxMessage) + `"}`,
		"a message with blanks past the limit": `{"k":"done","f":"n1#a"}` + strings.Repeat(" ", wire.MaxMessage),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := wire.Decode([]byte(data))
			require.ErrorIs(t, err, wire.ErrInvalid)
			require.Zero(t, m, "what was refused must not be used")
		})
	}
}

// split encodes a message that takes several payloads and returns them decoded.
func split(t *testing.T, m wire.Message) (parts []wire.Message) {
	t.Helper()
	payloads := wire.Encode(m)
	require.Greater(t, len(payloads), 1)
	for _, b := range payloads {
		require.LessOrEqual(t, len(b), wire.MaxMessage)
		part, err := wire.Decode(b)
		require.NoError(t, err)
		parts = append(parts, part)
	}
	return parts
}

func union(parts []wire.Message) (up, down []sbr.ID) {
	for _, p := range parts {
		up, down = append(up, p.Up...), append(down, p.Down...)
	}
	return up, down
}

// A long message is told in parts. Each part is a message of the same kind, and says that it is a part.
func TestEncode_LongMessagesAreToldInParts(t *testing.T) {
	verdict := wire.Message{Kind: wire.KindVerdict, From: "n1#a", Token: 9, By: "n1#a", Whole: true,
		Reason: "a majority", Up: ids("winner", 300), Down: ids("loser", 200)}
	order := wire.Message{Kind: wire.KindOrder, From: "n1#a", Decided: sbr.DownAll.String(), Reason: "unstable",
		Down: ids("n", 100)}
	report := wire.Message{Kind: wire.KindReport, From: "n1#a", Up: ids("good", 50), Down: ids("bad", 50)}
	for _, m := range []wire.Message{verdict, order, report} {
		requireComplete(t, m)
	}
	for _, p := range split(t, verdict) {
		v := p.Event().(sbr.Told).Verdict
		require.True(t, v.Partial, "nobody may be out because a part does not name it")
		require.Equal(t, "a majority", v.Reason)
	}
	for _, p := range split(t, order) {
		o := p.Event().(sbr.Ordered).Order
		require.Equal(t, "unstable", o.Reason)
		require.NotEmpty(t, o.Down)
	}
}

// Characters that JSON writes longer than they are must not push anything out of a message: only the reason
// gives way.
func TestEncode_AwkwardReasonAndNames(t *testing.T) {
	for _, c := range []string{`"`, `\`, "<", "\x00", "\u2028", "é", "日", "\xff"} {
		t.Run(fmt.Sprintf("%q", c), func(t *testing.T) {
			m := wire.Message{Kind: wire.KindVerdict, From: "n1#a", Token: 1, By: "n1#a", Whole: true,
				Reason: strings.Repeat(c, 500), Up: []sbr.ID{"n1#a"}, Down: ids("n", 3)}
			payloads := wire.Encode(m)
			require.Len(t, payloads, 1)
			p, err := wire.Decode(payloads[0])
			require.NoError(t, err)
			require.True(t, utf8.ValidString(p.Reason))
			require.NotEmpty(t, p.Reason)
			require.True(t, p.Whole, "the reason gives way before the message is cut")
			require.Equal(t, m.Up, p.Up)
			require.Equal(t, m.Down, p.Down)
		})
	}
	m := wire.Message{Kind: wire.KindStanding, From: sbr.ID(strings.Repeat("<", 128) + "#abcdefgh")}
	require.Len(t, wire.Encode(m), 1, "the longest name that Serf allows, of characters that HTML would escape")
}

// What cannot be carried is left out and hurts nobody else; what has no carrier at all is no payload, rather
// than a wrong one.
func TestEncode_WhatFitsNowhere(t *testing.T) {
	huge := sbr.ID(strings.Repeat("x", wire.MaxMessage))
	m := wire.Message{Kind: wire.KindAsk, From: "n1#a",
		Up: slices.Concat(ids("n", 3), []sbr.ID{huge}, ids("m", 3))}
	up, _ := union(split(t, m))
	require.Equal(t, slices.Concat(ids("n", 3), ids("m", 3)), up)

	require.Empty(t, wire.Encode(wire.Message{Kind: wire.KindDone, From: huge}))
	require.Empty(t, wire.Encode(wire.Message{Kind: wire.KindAsk, From: huge, Up: ids("n", 3)}))
}

// A long reason is cut between two characters, and says so.
func TestEncode_ReasonIsShortened(t *testing.T) {
	m := samples[wire.KindVerdict]
	m.Reason = strings.Repeat("日", 100)
	payloads := wire.Encode(m)
	require.Len(t, payloads, 1)
	got, err := wire.Decode(payloads[0])
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(got.Reason, "日."))
	require.True(t, got.Whole, "a short reason makes no part of a whole")
}

// A member acts only on a message that names it.
func TestMessage_Names(t *testing.T) {
	m := samples[wire.KindVerdict]
	for _, id := range slices.Concat(m.Up, m.Down) {
		require.True(t, m.Names(id), id)
	}
	require.False(t, m.Names("n3#other"), "the same node in another life")
	require.False(t, m.Names(""))
}

// A verdict arrives in the form in which the resolver looks things up.
func TestMessage_VerdictIsNormal(t *testing.T) {
	m := wire.Message{Kind: wire.KindVerdict, Token: 2, Whole: true, Up: []sbr.ID{"n2#b", "n1#a"},
		Down: []sbr.ID{"n4#d", "n3#c"}}
	v := m.Event().(sbr.Told).Verdict
	require.Equal(t, sbr.Survivor, v.Standing("n1#a", 0))
	require.Equal(t, sbr.Out, v.Standing("n3#c", 0))
	require.Equal(t, sbr.Out, v.Standing("n9#z", 0), "a whole verdict does not list it")
	require.False(t, v.Partial)
}

// Decode never panics, and whatever it accepts can be passed on without loss.
func FuzzDecode(f *testing.F) {
	for _, m := range samples {
		for _, b := range wire.Encode(m) {
			f.Add(b)
		}
	}
	f.Add([]byte(`{"k":"order","f":"n1","x":"down-all","d":["\u2028","\ufffd"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := wire.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, wire.ErrInvalid)
			return
		}
		require.NotEmpty(t, m.From)
		_ = m.Event()
		requireComplete(t, m)
	})
}

// Encode never exceeds the limit, never loses anybody who fits, and writes nothing that Decode refuses.
func FuzzEncode(f *testing.F) {
	f.Add("verdict", "n1#a", uint64(3), "n2#b", "reason", "n1#a n2#b", "n3#c")
	f.Add("order", "n1#a", uint64(0), "", strings.Repeat("\"", 300), "", strings.Repeat("n3#c ", 300))
	f.Add("report", "n1#a", uint64(0), "", "", strings.Repeat("é\x00 ", 300), strings.Repeat("n", 790)+" x")
	f.Fuzz(func(t *testing.T, kind, from string, token uint64, by, reason, up, down string) {
		m := wire.Message{Kind: wire.Kind(kind), From: sbr.ID(from), Token: token, By: sbr.ID(by), Reason: reason,
			Up: list(up), Down: list(down), Whole: true}
		if m.Kind == wire.KindOrder {
			m.Decided = sbr.DownAll.String()
		}
		if _, known := samples[m.Kind]; !known || m.From == "" || m.Kind == wire.KindVerdict && token == 0 ||
			!utf8.ValidString(strings.Join([]string{from, by, up, down}, " ")) {
			return // nobody sends such
		}
		requireComplete(t, m)
	})
}

func list(s string) (ids []sbr.ID) {
	for f := range strings.FieldsSeq(s) {
		ids = append(ids, sbr.ID(f))
	}
	return ids
}

// requireComplete encodes m and requires that everything arrives, in order, apart from ids that have no room
// beside the sender's.
func requireComplete(t *testing.T, m wire.Message) {
	t.Helper()
	var parts []wire.Message
	for _, b := range wire.Encode(m) {
		require.LessOrEqual(t, len(b), wire.MaxMessage)
		p, err := wire.Decode(b)
		require.NoError(t, err)
		require.Equal(t, m.Kind, p.Kind)
		require.Equal(t, m.From, p.From)
		require.Equal(t, m.Token, p.Token)
		require.Equal(t, m.Seen, p.Seen)
		require.Equal(t, m.By, p.By)
		require.Equal(t, m.Decided, p.Decided)
		parts = append(parts, p)
	}
	if utf8.ValidString(m.Reason) { // else it is mended on its way
		require.Equal(t, parts, wire.Split(m))
	}
	if len(parts) != 1 {
		for _, p := range parts {
			require.False(t, p.Whole, "a part is not the whole")
		}
	}
	alone := func(id sbr.ID) bool {
		one := m
		one.Up, one.Down, one.Reason, one.Whole = []sbr.ID{id}, nil, "", false
		return len(wire.Encode(one)) == 0
	}
	up, down := union(parts)
	require.True(t, slices.Equal(slices.DeleteFunc(slices.Clone(m.Up), alone), up))
	require.True(t, slices.Equal(slices.DeleteFunc(slices.Clone(m.Down), alone), down))
}

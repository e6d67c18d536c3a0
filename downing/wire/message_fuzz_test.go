package wire_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

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
		m := wire.Message{Kind: wire.Kind(kind), From: sbr.ID(from), Token: token, By: sbr.ID(by), Reason: reason, Up: list(up), Down: list(down), Whole: true}
		if m.Kind == wire.KindOrder {
			m.Decided = sbr.DownAll.String()
		}
		if _, known := samples[m.Kind]; !known || m.From == "" || m.Kind == wire.KindVerdict && token == 0 || !utf8.ValidString(strings.Join([]string{from, by, up, down}, " ")) {
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

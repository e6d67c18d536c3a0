package wire_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/wire"
)

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
		m := wire.Frame{Kind: wire.FrameKind(kind), From: wire.Key([]byte(from + "12345678")[:8]), Within: time.Duration(within) * time.Millisecond, Topic: topic, Payload: payload}
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

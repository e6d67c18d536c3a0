package talk_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/talk"
)

// Decode never panics, and what it accepts is exactly what Encode writes.
func FuzzDecode(f *testing.F) {
	for _, m := range samples {
		b, err := talk.Encode(m)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte{1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := talk.Decode(data)
		if err != nil {
			require.ErrorIs(t, err, talk.ErrInvalid)
			require.Zero(t, m)
			return
		}
		require.LessOrEqual(t, len(m.Payload), talk.MaxPayload)
		b, err := talk.Encode(m)
		require.NoError(t, err)
		require.Equal(t, data, b)
	})
}

// Encode writes nothing that Decode refuses, or reads as something else.
func FuzzEncode(f *testing.F) {
	f.Add(uint8(1), "n1#a", "n2#b", int64(1000), "backup", []byte("x"))
	f.Add(uint8(2), "n1#a", "", int64(0), "", []byte(nil))
	f.Fuzz(func(t *testing.T, kind uint8, from, to string, within int64, topic string, payload []byte) {
		m := talk.Message{Kind: talk.Kind(kind), From: talk.Key([]byte(from + "12345678")[:8]), Within: time.Duration(within) * time.Millisecond, Topic: topic, Payload: payload}
		if to != "" {
			m.To = talk.Key([]byte(to + "12345678")[:8])
		}
		b, err := talk.Encode(m)
		if err != nil {
			require.ErrorIs(t, err, talk.ErrInvalid)
			return
		}
		got, err := talk.Decode(b)
		require.NoError(t, err)
		if len(m.Payload) == 0 {
			m.Payload = nil
		}
		require.Equal(t, m, got)
	})
}

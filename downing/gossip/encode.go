package gossip

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Encode returns the message as one or more payloads of at most Limit bytes each: long lists are spread over several.
// An id longer than Limit is left out, since no message can carry it.
func Encode(m Message) [][]byte {
	m.Reason = shorten(m.Reason, maxReason)
	if b, ok := fit(m); ok {
		return [][]byte{b}
	}
	m.Whole = false
	head := m
	head.Up, head.Down = nil, nil
	var out [][]byte
	for _, up := range chunks(head, m.Up, func(m *Message, ids []sbr.ID) { m.Up = ids }) {
		out = append(out, up)
	}
	for _, down := range chunks(head, m.Down, func(m *Message, ids []sbr.ID) { m.Down = ids }) {
		out = append(out, down)
	}
	return out
}

func fit(m Message) ([]byte, bool) {
	b, err := json.Marshal(m)
	return b, err == nil && len(b) <= Limit
}

func chunks(head Message, ids []sbr.ID, set func(*Message, []sbr.ID)) (out [][]byte) {
	for len(ids) > 0 {
		n := len(ids)
		for n > 0 {
			m := head
			set(&m, ids[:n])
			if b, ok := fit(m); ok {
				out = append(out, b)
				break
			}
			n = min(n/2, 64)
		}
		ids = ids[max(n, 1):]
	}
	return out
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[:limit-1]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "."
}

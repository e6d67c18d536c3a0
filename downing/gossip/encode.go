package gossip

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Encode returns the message as one or more payloads of at most Limit bytes each: long lists are spread over several.
// An id that fits into no message, with the sender's beside it, is left out; without any list there is at most one payload,
// and none if the sender itself does not fit.
func Encode(m Message) [][]byte {
	m.Reason = shorten(m.Reason, maxReason)
	if b, ok := fit(m); ok {
		return [][]byte{b}
	}
	if len(m.Up)+len(m.Down) == 0 {
		m.Reason = "" // characters that JSON escapes made it too long, and it is for people only
		if b, ok := fit(m); ok {
			return [][]byte{b}
		}
		return nil
	}
	m.Whole = false
	head := m
	head.Up, head.Down = nil, nil
	if b, ok := fit(head); !ok || len(b) > Limit/2 {
		head.Reason = ""
	}
	return append(
		chunks(head, m.Up, func(m *Message, ids []sbr.ID) { m.Up = ids }),
		chunks(head, m.Down, func(m *Message, ids []sbr.ID) { m.Down = ids })...)
}

func fit(m Message) ([]byte, bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it would make six bytes of one
	err := e.Encode(m)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err == nil && b.Len()-1 <= Limit
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

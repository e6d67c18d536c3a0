package gossip

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Encode returns the message as one or more payloads of at most Limit bytes each: long lists are spread over several.
// An id that fits into no message, with the sender's beside it, is left out, and there is no payload if not even the sender fits.
func Encode(m Message) [][]byte {
	reason := m.Reason
	for limit := maxReason; ; limit /= 2 { // the reason is for people: it gives way before the message is cut
		m.Reason = shorten(reason, limit)
		if b, ok := fit(m); ok {
			return [][]byte{b}
		}
		if limit == 0 {
			break
		}
	}
	m.Whole = false
	head := m
	head.Up, head.Down, head.Reason = nil, nil, shorten(reason, maxReason)
	if b, ok := fit(head); !ok || len(b) > Limit/2 {
		head.Reason = ""
	}
	return append(
		chunks(head, m.Up, func(m *Message, ids []sbr.ID) { m.Up = ids }),
		chunks(head, m.Down, func(m *Message, ids []sbr.ID) { m.Down = ids })...)
}

// someBytes bounds what Some returns, so that the rest of a message has room.
const someBytes = 200

// Some returns the first of the suspects, as many as any message has room for: one is enough for its receiver to know that the cluster is not
// whole.
func Some(suspects []sbr.ID) []sbr.ID {
	n, size := 0, 0
	for n < len(suspects) && size+len(suspects[n]) <= someBytes {
		size += len(suspects[n])
		n++
	}
	return suspects[:n:n]
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
		n := min(len(ids), 128) // more never fit
		for n > 0 {
			m := head
			set(&m, ids[:n])
			b, ok := fit(m)
			if !ok && n == 1 {
				m.Reason = ""
				b, ok = fit(m)
			}
			if ok {
				out = append(out, b)
				break
			}
			n /= 2
		}
		ids = ids[max(n, 1):]
	}
	return out
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if limit == 0 {
		return ""
	}
	s = s[:limit-1]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "."
}

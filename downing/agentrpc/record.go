package agentrpc

import "strings"

type eventKind uint8

const (
	otherEvent eventKind = iota
	memberEvent
	queryEvent
)

// record is what this package needs of one record of the stream.
type record struct {
	kind    eventKind
	id      uint64
	name    string
	payload []byte
}

// decode reads a record as agents of all versions write it. A record that makes no sense has no kind.
func decode(raw map[string]any) record {
	event, _ := text(raw["Event"])
	switch {
	case strings.HasPrefix(event, "member-"):
		return record{kind: memberEvent}
	case event != "query":
		return record{}
	}
	id, ok := number(raw["ID"])
	name, named := text(raw["Name"])
	payload, read := text(raw["Payload"])
	if raw["Payload"] == nil {
		read = true
	}
	if !ok || !named || !read {
		return record{}
	}
	return record{kind: queryEvent, id: id, name: name, payload: []byte(payload)}
}

func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	default:
		return "", false
	}
}

func number(v any) (uint64, bool) {
	switch v := v.(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(v), v >= 0
	default:
		return 0, false
	}
}

package agentrpc

// record is a query of the stream.
type record struct {
	id      uint64
	name    string
	payload []byte
}

// decode reads a query as agents of all versions write it; ok is false for one that makes no sense.
func decode(raw map[string]any) (r record, ok bool) {
	id, numbered := number(raw["ID"])
	name, named := text(raw["Name"])
	payload, read := text(raw["Payload"])
	r = record{id: id, name: name, payload: []byte(payload)}
	return r, numbered && named && (read || raw["Payload"] == nil)
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

package kubernetes

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// anyText is a JSON string. Anything else but null is a name too: a lease with a strange owner is not free.
type anyText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *anyText) UnmarshalJSON(raw []byte) error {
	var text *string
	if json.Unmarshal(raw, &text) != nil {
		*t = anyText(strings.ToValidUTF8(string(raw), "?"))
		return nil
	}
	*t = anyText(deref(text))
	return nil
}

// anyNumber is a whole number of 64 bits. What is larger is the largest, what is no number is zero: nothing depends on the value,
// only on its changes, and an object with a strange one must not lock everybody out.
type anyNumber int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *anyNumber) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		*n = anyNumber(whole)
		return nil
	}
	f, _ := strconv.ParseFloat(text, 64) // infinite if it is out of range
	switch {
	case f >= math.MaxInt64:
		*n = math.MaxInt64
	case f <= math.MinInt64:
		*n = math.MinInt64
	case math.IsNaN(f):
		*n = 0
	default:
		*n = anyNumber(f)
	}
	return nil
}

// Times that JSON can write. Later ones need a fifth digit in the year; the margin leaves room to add to them.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9999, 12, 1, 0, 0, 0, 0, time.UTC)
)

// fromMillis reads a time that anybody may have written. Zero and below is no time, the far future is the end of time.
func fromMillis(at int64) time.Time {
	switch {
	case at <= 0:
		return time.Time{}
	case at >= latest.UnixMilli():
		return latest
	default:
		return time.UnixMilli(at).UTC()
	}
}

// millis is how the others write a time, 0 for none.
func millis(t time.Time) int64 {
	if t.Before(earliest) {
		return 0
	}
	return writable(t).UnixMilli()
}

// writable is t, or the last time that fits into a record: one that was read from a poisoned record must not make the next write fail.
func writable(t time.Time) time.Time {
	if t.After(latest) {
		return latest
	}
	return t.UTC()
}

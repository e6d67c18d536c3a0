package handover

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// ErrInvalid is wrapped by the errors of Decode.
var ErrInvalid = errors.New("handover: not a valid message")

// AppendMessage appends the encoding of a message, which is at most MaxState and 60 bytes long. State beyond MaxState is left out.
func AppendMessage(b []byte, m Message) []byte {
	b = append(b, byte(m.Kind))
	b = binary.AppendVarint(b, m.Born)
	b = binary.AppendUvarint(b, m.Round)
	b = binary.AppendUvarint(b, m.Token)
	b = binary.AppendUvarint(b, uint64(max(m.Wait, 0)))
	if len(m.State) > slot.MaxState {
		return b
	}
	return append(b, m.State...)
}

// Decode reads what AppendMessage has written. It returns an error that wraps ErrInvalid for anything else, and never panics.
func Decode(b []byte) (m Message, err error) {
	if len(b) == 0 || Kind(b[0]) < Take || Kind(b[0]) > Started {
		return Message{}, fmt.Errorf("%w: unknown kind", ErrInvalid)
	}
	m.Kind, b = Kind(b[0]), b[1:]
	born, n := binary.Varint(b)
	if n <= 0 {
		return Message{}, fmt.Errorf("%w: cut off", ErrInvalid)
	}
	m.Born, b = born, b[n:]
	var wait uint64
	for _, field := range []*uint64{&m.Round, &m.Token, &wait} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return Message{}, fmt.Errorf("%w: cut off", ErrInvalid)
		}
		*field, b = v, b[n:]
	}
	switch {
	case m.Token > math.MaxInt64 || wait > math.MaxInt64:
		return Message{}, fmt.Errorf("%w: a number is too large", ErrInvalid)
	case len(b) > slot.MaxState:
		return Message{}, fmt.Errorf("%w: %d bytes of state", ErrInvalid, len(b))
	case len(b) > 0:
		m.State = append([]byte(nil), b...)
	}
	m.Wait = time.Duration(wait)
	return m, nil
}

package attach

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is how long a line may be, in bytes. The longest message is far shorter.
const MaxLine = 8 << 10

// message is FromProgram or FromAgent.
type message interface {
	FromProgram | FromAgent
	validate() error
}

// Append appends a message as a line.
func Append[M message](to []byte, m M) []byte {
	line, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("attach: a message cannot be written: %v", err)) // only types of this package are in it
	}
	return append(append(to, line...), '\n')
}

// decode reads one line. The error wraps ErrMessage.
func decode[M message](line []byte) (m M, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return m, fmt.Errorf("%w: more than one value in a line", ErrMessage)
	}
	return m, m.validate()
}

// Reader reads messages. It belongs to one goroutine.
type Reader[M message] struct{ lines *bufio.Scanner }

// NewReader returns a reader of the messages in r.
func NewReader[M message](r io.Reader) *Reader[M] {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 512), MaxLine)
	lines.Split(whole)
	return &Reader[M]{lines}
}

// whole is bufio.ScanLines without an incomplete last line.
func whole(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if atEOF && bytes.IndexByte(data, '\n') < 0 {
		return len(data), nil, nil
	}
	return bufio.ScanLines(data, atEOF)
}

// Read returns the next message. The error is io.EOF at the end, that of the reader, or wraps ErrMessage;
// nothing can be read after it.
func (r *Reader[M]) Read() (m M, err error) {
	if !r.lines.Scan() {
		switch err := r.lines.Err(); {
		case err == nil:
			return m, io.EOF
		case errors.Is(err, bufio.ErrTooLong):
			return m, fmt.Errorf("%w: a line of more than %d bytes", ErrMessage, MaxLine)
		default:
			return m, err
		}
	}
	return decode[M](r.lines.Bytes())
}

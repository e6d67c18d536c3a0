package file

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/lease"
)

// MaxSize is the largest record in bytes, written or read: verdicts that name about twenty thousand members.
const MaxSize = 1 << 20

// encode returns the content of the file.
func encode(r lease.Record) ([]byte, error) {
	text, err := lease.MarshalRecord(r)
	if err == nil && len(text) > MaxSize {
		err = fmt.Errorf("%w: %d bytes, at most %d: list fewer members in the verdict", lease.ErrTooLarge, len(text), MaxSize)
	}
	return text, err
}

// decode reads the content of a file that exists, whoever wrote it. Every error wraps ErrBadRecord.
func decode(text []byte) (r lease.Record, err error) {
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		err = errors.New("the file is empty")
	case len(text) > MaxSize:
		err = fmt.Errorf("more than %d bytes", MaxSize)
	default:
		r, err = lease.UnmarshalRecord(text)
	}
	if err != nil {
		return lease.Record{}, fmt.Errorf("%w: %w", ErrBadRecord, brief(err))
	}
	return r, nil
}

// brief keeps an error that quotes the file from being as long as the file.
func brief(err error) error {
	const longest = 300
	if text := err.Error(); len(text) > longest {
		return errors.New(strings.ToValidUTF8(text[:longest], "") + "…")
	}
	return err
}

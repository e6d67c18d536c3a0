package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/codec"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// FrameQuery is the name of the Serf queries that carry frames.
const FrameQuery = "sbr-app"

// The limits of a frame.
const (
	// MaxPayload is the largest payload in bytes.
	MaxPayload = 700
	// maxTopic is the longest topic in bytes.
	maxTopic = 63
	// MaxWithin is the longest time for which a question may stay open.
	MaxWithin = 10 * time.Minute
)

// FrameKind says what a frame is. The zero FrameKind is none.
type FrameKind uint8

// The kinds of frame.
const (
	// Question: From asks To, or all members.
	Question FrameKind = iota + 1
	// Answer: From answers.
	Answer
	// Unserved: From's process does not answer questions of this topic.
	Unserved
)

// String returns the name that metrics use.
func (k FrameKind) String() string {
	return map[FrameKind]string{Question: "question", Answer: "answer", Unserved: "unserved"}[k]
}

// Key stands for an incarnation. The zero Key stands for all members, or for none.
type Key [8]byte

// KeyOf returns the key of an incarnation.
func KeyOf(id sbr.ID) Key {
	sum := sha256.Sum256([]byte(id))
	return Key(sum[:8])
}

// ErrTopic is wrapped by the errors of CheckTopic.
var ErrTopic = errors.New("not a valid topic")

// CheckTopic returns an error that wraps ErrTopic unless a topic consists of 1 to maxTopic of the characters
// a-z, 0-9, '.', '_' and '-'.
func CheckTopic(topic string) error {
	if topic == "" || len(topic) > maxTopic {
		return fmt.Errorf("%w: %q has %d bytes, it must have 1 to %d", ErrTopic, topic, len(topic), maxTopic)
	}
	for i := range len(topic) {
		switch c := topic[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return fmt.Errorf("%w: %q: only a-z, 0-9, '.', '_' and '-' are allowed", ErrTopic, topic)
		}
	}
	return nil
}

// Frame is a question or an answer. To, Within and Topic belong to a Question alone; an Unserved has no
// Payload.
type Frame struct {
	Kind FrameKind
	From Key
	// To is the member that is asked; zero: all members.
	To Key
	// Within is for how long answers are taken, in whole milliseconds.
	Within  time.Duration
	Topic   string
	Payload []byte
}

// version is the first byte of each frame.
const version = 1

// Encode returns the frame as bytes. It returns an error that wraps ErrInvalid for what DecodeFrame would
// refuse.
func (f *Frame) Encode() ([]byte, error) {
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return codec.Append(make([]byte, 0, MaxMessage), f.code), nil
}

// DecodeFrame reads one frame. It returns an error that wraps ErrInvalid for anything Encode cannot have
// written. The frame shares nothing with data.
func DecodeFrame(data []byte) (Frame, error) {
	var f Frame
	err := codec.Read(data, f.code)
	if err == nil {
		err = f.validate()
	}
	if err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return f, nil
}

func (f *Frame) code(c *codec.Coder) {
	first := byte(version)
	codec.Small(c, &first, version, version)
	codec.Small(c, &f.Kind, Question, Unserved)
	c.Fixed(f.From[:])
	if f.Kind == Question {
		c.Fixed(f.To[:])
		var within [4]byte
		binary.BigEndian.PutUint32(within[:], uint32(f.Within/time.Millisecond))
		c.Fixed(within[:])
		if c.Reads() {
			f.Within = time.Duration(binary.BigEndian.Uint32(within[:])) * time.Millisecond
		}
		n := uint8(len(f.Topic))
		codec.Small(c, &n, 0, maxTopic)
		codec.Bytes(c, &f.Topic, int(n))
	}
	codec.Rest(c, &f.Payload, MaxPayload)
}

func (f *Frame) validate() error {
	switch {
	case f.From == Key{}:
		return errors.New("no sender")
	case len(f.Payload) > MaxPayload:
		return fmt.Errorf("a payload of %d bytes, the limit is %d", len(f.Payload), MaxPayload)
	}
	switch f.Kind {
	case Question:
		if f.Within < time.Millisecond || f.Within > MaxWithin || f.Within%time.Millisecond != 0 {
			return fmt.Errorf("open for %v: whole milliseconds from 1ms to %v", f.Within, MaxWithin)
		}
		return CheckTopic(f.Topic)
	case Answer, Unserved:
		if f.To != (Key{}) || f.Within != 0 || f.Topic != "" || f.Kind == Unserved && len(f.Payload) > 0 {
			return errors.New("more than an answer holds")
		}
		return nil
	default:
		return fmt.Errorf("unknown kind %d", f.Kind)
	}
}

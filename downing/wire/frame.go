package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

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
	// Question: From asks To, or everybody.
	Question FrameKind = iota + 1
	// Answer: From answers.
	Answer
	// Unserved: nobody in From's process answers questions of this topic.
	Unserved
)

// String returns the name that metrics use.
func (k FrameKind) String() string {
	return map[FrameKind]string{Question: "question", Answer: "answer", Unserved: "unserved"}[k]
}

// Key stands for an incarnation. The zero Key stands for everybody, or nobody.
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
	// To is who is asked; zero: everybody.
	To Key
	// Within is for how long answers are taken, in whole milliseconds.
	Within  time.Duration
	Topic   string
	Payload []byte
}

// version is the first byte of each frame.
const version = 1

// The lengths of what stands before topic and payload, and of the longest frame.
const (
	answerHead   = 2 + len(Key{})
	questionHead = answerHead + len(Key{}) + 4 + 1
	maxFrame     = questionHead + maxTopic + MaxPayload
)

// Encode returns the frame as bytes. It returns an error that wraps ErrInvalid for what DecodeFrame would
// refuse.
func (f *Frame) Encode() ([]byte, error) {
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	b := make([]byte, 0, maxFrame)
	b = append(b, version, byte(f.Kind))
	b = append(b, f.From[:]...)
	if f.Kind == Question {
		b = append(b, f.To[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(f.Within/time.Millisecond))
		b = append(b, byte(len(f.Topic)))
		b = append(b, f.Topic...)
	}
	return append(b, f.Payload...), nil
}

// DecodeFrame reads one frame. It returns an error that wraps ErrInvalid for anything Encode cannot have
// written. The frame shares nothing with data.
func DecodeFrame(data []byte) (Frame, error) {
	f, err := decodeFrame(data)
	if err == nil {
		err = f.validate()
	}
	if err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return f, nil
}

func decodeFrame(data []byte) (f Frame, err error) {
	switch {
	case len(data) > maxFrame:
		return f, fmt.Errorf("%d bytes, the limit is %d", len(data), maxFrame)
	case len(data) < answerHead:
		return f, fmt.Errorf("%d bytes are too few", len(data))
	case data[0] != version:
		return f, fmt.Errorf("version %d", data[0])
	}
	f.Kind, f.From = FrameKind(data[1]), Key(data[2:answerHead])
	rest := data[answerHead:]
	if f.Kind == Question {
		if len(data) < questionHead {
			return f, fmt.Errorf("%d bytes are too few for a question", len(data))
		}
		f.To = Key(rest)
		f.Within = time.Duration(binary.BigEndian.Uint32(rest[len(f.To):])) * time.Millisecond
		n := int(rest[len(f.To)+4])
		rest = data[questionHead:]
		if n > len(rest) {
			return f, fmt.Errorf("a topic of %d bytes in a message that has %d left", n, len(rest))
		}
		f.Topic, rest = string(rest[:n]), rest[n:]
	}
	f.Payload = append([]byte(nil), rest...)
	return f, nil
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

package talk

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// QueryName is the name of the Serf queries that carry questions.
const QueryName = "sbr-app"

// The limits of a message.
const (
	// MaxPayload is the largest payload in bytes.
	MaxPayload = 700
	// MaxTopic is the longest topic in bytes.
	MaxTopic = 63
	// MaxWithin is the longest time for which a question may stay open.
	MaxWithin = 10 * time.Minute
)

// Errors of this package.
var (
	// ErrInvalid is wrapped by the errors of Decode and Encode.
	ErrInvalid = errors.New("talk: not a valid message")
	// ErrTopic is wrapped by the errors of CheckTopic.
	ErrTopic = errors.New("not a valid topic")
)

// Kind says what a message is. The zero Kind is none.
type Kind uint8

// The kinds of message.
const (
	// Question: From asks To, or everybody.
	Question Kind = iota + 1
	// Answer: From answers.
	Answer
	// Unserved: nobody in From's process answers questions of this topic.
	Unserved
)

// String returns the name that metrics use.
func (k Kind) String() string {
	switch k {
	case Question:
		return "question"
	case Answer:
		return "answer"
	case Unserved:
		return "unserved"
	default:
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
}

// version is the first byte of each message.
const version = 1

// Key stands for an incarnation. The zero Key stands for everybody, or nobody.
type Key [8]byte

// KeyOf returns the key of an incarnation.
func KeyOf(id sbr.ID) Key {
	sum := sha256.Sum256([]byte(id))
	return Key(sum[:8])
}

// Message is one message. To, Within and Topic belong to a Question alone; an Unserved has no Payload.
type Message struct {
	Kind Kind
	From Key
	// To is who is asked; zero: everybody.
	To Key
	// Within is for how long answers are taken, in whole milliseconds.
	Within  time.Duration
	Topic   string
	Payload []byte
}

// The lengths of what stands before topic and payload.
const (
	answerHead   = 2 + len(Key{})
	questionHead = answerHead + len(Key{}) + 4 + 1
)

// Limit is the largest encoded message in bytes.
const Limit = questionHead + MaxTopic + MaxPayload

// CheckTopic returns an error that wraps ErrTopic unless a topic consists of 1 to MaxTopic of the characters a-z, 0-9, '.', '_' and '-'.
func CheckTopic(topic string) error {
	if topic == "" || len(topic) > MaxTopic {
		return fmt.Errorf("%w: %q has %d bytes, it must have 1 to %d", ErrTopic, topic, len(topic), MaxTopic)
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

// Encode returns the message as bytes. It returns an error that wraps ErrInvalid for what Decode would refuse.
func Encode(m Message) ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	b := make([]byte, 0, questionHead+len(m.Topic)+len(m.Payload))
	b = append(b, version, byte(m.Kind))
	b = append(b, m.From[:]...)
	if m.Kind == Question {
		b = append(b, m.To[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(m.Within/time.Millisecond))
		b = append(b, byte(len(m.Topic)))
		b = append(b, m.Topic...)
	}
	return append(b, m.Payload...), nil
}

// Decode reads one message. It returns an error that wraps ErrInvalid for anything Encode cannot have written. The message shares nothing with data.
func Decode(data []byte) (Message, error) {
	m, err := decode(data)
	if err == nil {
		err = m.validate()
	}
	if err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

func decode(data []byte) (m Message, err error) {
	switch {
	case len(data) > Limit:
		return m, fmt.Errorf("%d bytes, the limit is %d", len(data), Limit)
	case len(data) < answerHead:
		return m, fmt.Errorf("%d bytes are too few", len(data))
	case data[0] != version:
		return m, fmt.Errorf("version %d", data[0])
	}
	m.Kind, m.From = Kind(data[1]), Key(data[2:answerHead])
	rest := data[answerHead:]
	if m.Kind == Question {
		if len(data) < questionHead {
			return m, fmt.Errorf("%d bytes are too few for a question", len(data))
		}
		m.To = Key(rest)
		m.Within = time.Duration(binary.BigEndian.Uint32(rest[len(m.To):])) * time.Millisecond
		n := int(rest[len(m.To)+4])
		rest = data[questionHead:]
		if n > len(rest) {
			return m, fmt.Errorf("a topic of %d bytes in a message that has %d left", n, len(rest))
		}
		m.Topic, rest = string(rest[:n]), rest[n:]
	}
	m.Payload = append([]byte(nil), rest...)
	return m, nil
}

func (m *Message) validate() error {
	switch {
	case m.From == Key{}:
		return errors.New("no sender")
	case len(m.Payload) > MaxPayload:
		return fmt.Errorf("a payload of %d bytes, the limit is %d", len(m.Payload), MaxPayload)
	}
	switch m.Kind {
	case Question:
		if m.Within < time.Millisecond || m.Within > MaxWithin || m.Within%time.Millisecond != 0 {
			return fmt.Errorf("open for %v: whole milliseconds from 1ms to %v", m.Within, MaxWithin)
		}
		return CheckTopic(m.Topic)
	case Answer, Unserved:
		if m.To != (Key{}) || m.Within != 0 || m.Topic != "" || m.Kind == Unserved && len(m.Payload) > 0 {
			return errors.New("more than an answer holds")
		}
		return nil
	default:
		return fmt.Errorf("unknown kind %d", m.Kind)
	}
}

package gossip

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// QueryName is the name of the Serf queries that carry messages.
const QueryName = "sbr"

// Limit is the largest encoded message in bytes; Serf's default of 1024 for a query also holds its header.
const Limit = 800

// maxReason bounds the sentence that travels with a decision; the whole one stays in the lease.
const maxReason = 160

// ErrInvalid is wrapped by the errors of Decode.
var ErrInvalid = errors.New("gossip: not a valid message")

// Kind says what a message means.
type Kind string

// The kinds of message.
const (
	// KindReport: From cannot reach Down, and reaches Up again.
	KindReport Kind = "report"
	// KindVerdict: the verdict Token, of which Up survive and Down are out.
	KindVerdict Kind = "verdict"
	// KindOrder: a decision without a lease; Down go down or are kept out.
	KindOrder Kind = "order"
	// KindAsk: the members Up are asked to race for the lease in From's place, which cannot reach Down.
	KindAsk Kind = "ask"
	// KindStanding: From, which had read the token Seen, asks whether anything speaks against it.
	KindStanding Kind = "standing"
	// KindClear answers KindStanding: nothing up to the verdict Token does. The sender is unsure if it does not know its own fate. It
	// cannot reach Down, and nothing was decided about them.
	KindClear Kind = "clear"
	// KindDone answers a verdict or an order that named From: it was taken in.
	KindDone Kind = "done"
	// KindBye: From leaves of its own will, or because it was downed. It decides nothing any more. (Since version 2.)
	KindBye Kind = "bye"
)

// Message is one message. Which fields count depends on Kind.
type Message struct {
	Kind Kind   `json:"k"`
	From sbr.ID `json:"f"`

	Token   uint64   `json:"t,omitempty"`
	Seen    uint64   `json:"s,omitempty"`
	By      sbr.ID   `json:"b,omitempty"`
	Whole   bool     `json:"w,omitempty"` // Up and Down are the whole verdict
	Unsure  bool     `json:"n,omitempty"` // From stood still, and does not know its own fate
	Up      []sbr.ID `json:"u,omitempty"`
	Down    []sbr.ID `json:"d,omitempty"`
	Decided string   `json:"x,omitempty"` // the kind of an order
	// Suspects are the members that the sender of an order cannot reach. (Since version 2, which alone reads a message that has them.)
	Suspects []sbr.ID `json:"o,omitempty"`
	Reason   string   `json:"r,omitempty"`
}

// Verdict returns the verdict that a KindVerdict message carries.
func (m *Message) Verdict() sbr.Verdict {
	v := sbr.Verdict{Token: m.Token, Survivors: m.Up, Down: m.Down, DecidedBy: m.By, Reason: m.Reason, Partial: !m.Whole}
	v.Normalize()
	return v
}

// Order returns the order that a KindOrder message carries.
func (m *Message) Order() sbr.Order {
	k, _ := sbr.ParseKind(m.Decided)
	return sbr.Order{Kind: k, Down: m.Down, Reason: m.Reason, Suspects: m.Suspects}
}

// Names reports whether the message speaks of id.
func (m *Message) Names(id sbr.ID) bool {
	return slices.Contains(m.Up, id) || slices.Contains(m.Down, id)
}

// Decode reads one message. It returns an error that wraps ErrInvalid for anything Encode cannot have written.
func Decode(data []byte) (Message, error) {
	var m Message
	if len(data) > Limit {
		return m, fmt.Errorf("%w: %d bytes, the limit is %d", ErrInvalid, len(data), Limit)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Message{}, fmt.Errorf("%w: something follows the message", ErrInvalid)
	}
	if err := m.validate(); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

func (m *Message) validate() error {
	if m.From == "" {
		return errors.New("no sender")
	}
	if m.Names("") {
		return errors.New("an empty incarnation")
	}
	switch m.Kind {
	case KindReport, KindAsk, KindStanding, KindClear, KindDone, KindBye:
		return nil
	case KindVerdict:
		if m.Token == 0 {
			return errors.New("a verdict without a token")
		}
		return nil
	case KindOrder:
		if k, ok := sbr.ParseKind(m.Decided); !ok || k == sbr.None || k.NeedsLease() {
			return fmt.Errorf("an order of kind %q", m.Decided)
		}
		return nil
	default:
		return fmt.Errorf("unknown kind %q", m.Kind)
	}
}

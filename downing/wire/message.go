package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// MessageQuery is the name of the Serf queries that carry messages.
const MessageQuery = "sbr"

// MaxMessage is the largest encoded message in bytes; Serf's default of 1024 for a query also holds its
// header.
const MaxMessage = 800

// Times that a driver keeps, in production and in a simulation.
const (
	// QueryTime is how long answers to one message are awaited, and so the pause between two tellings.
	QueryTime = time.Second
	// TellFor is how long a message is repeated to a member that does not answer, by default.
	TellFor = 10 * time.Second
	// Grace is how long a downed member has for everything that it still does, by default. One part in
	// LastWords of it is for telling others.
	Grace     = 15 * time.Second
	LastWords = 3
	// RefuseFor is how long a downed incarnation is refused. An incarnation that still tries to rejoin then
	// does not know of the verdict: it noticed nothing, and does not watch the lease. It is let in, as a
	// downed member, because messages reach members only.
	RefuseFor = 15 * time.Second
	// ReconnectEvery bounds how often a member reconnects to others by itself.
	ReconnectEvery = 5 * time.Second
	// OfferSpread bounds how long a change of what a member offers takes to reach the others.
	OfferSpread = 5 * time.Second
)

// maxReason bounds the sentence that travels with a decision; the whole one stays in the lease.
const maxReason = 160

// ErrInvalid is wrapped by the errors of Decode, DecodeFrame and Frame.Encode.
var ErrInvalid = errors.New("wire: not a valid message")

// Kind says what a message means.
type Kind string

// The kinds of message.
const (
	// KindReport: From cannot reach Down, and reaches Up again. See Report.
	KindReport Kind = "report"
	// KindVerdict: the verdict Token, of which Up survive and Down are downed.
	KindVerdict Kind = "verdict"
	// KindOrder: a decision without a lease; Down go down or are kept out.
	KindOrder Kind = "order"
	// KindAsk: the members Up are asked to race for the lease in From's place, which cannot reach Down.
	KindAsk Kind = "ask"
	// KindStanding: From, which had read the token Seen, asks whether a verdict downs it.
	KindStanding Kind = "standing"
	// KindClear answers KindStanding: nothing up to the verdict Token does. The sender is unsure if it does
	// not know its own standing. It cannot reach Down, and nothing was decided about them.
	KindClear Kind = "clear"
	// KindDone answers a verdict or an order that named From: it was taken in.
	KindDone Kind = "done"
	// KindBye: From leaves of its own will, or because it was downed. It decides nothing any more. (Since
	// version 2.)
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
	Unsure  bool     `json:"n,omitempty"` // From was paused, and does not know its own standing
	Contact bool     `json:"c,omitempty"` // From was asked by Up to race, and has contact with the store
	Up      []sbr.ID `json:"u,omitempty"`
	Down    []sbr.ID `json:"d,omitempty"`
	Decided string   `json:"x,omitempty"` // the kind of an order
	// Suspects are the members that the sender of an order cannot reach. (Since version 2, which alone reads
	// a message that has them.)
	Suspects []sbr.ID `json:"o,omitempty"`
	Reason   string   `json:"r,omitempty"`
}

// Report returns what a member says of its links at an age, since it began. A cluster's gossip can deliver a report
// long after those that followed it: a member that stood still passes on what it had received before.
func Report(from sbr.ID, age time.Duration, bad, good []sbr.ID) Message {
	return Message{Kind: KindReport, From: from, Token: uint64(age/time.Millisecond) + 1, Down: bad, Up: good}
}

// Age is that of a report's sender when it sent it; zero if it does not say.
func (m *Message) Age() time.Duration { return time.Duration(min(m.Token, maxAge)) * time.Millisecond }

// maxAge, in milliseconds, is more than any process runs.
const maxAge = 1 << 40

// Names reports whether the message names id.
func (m *Message) Names(id sbr.ID) bool {
	return slices.Contains(m.Up, id) || slices.Contains(m.Down, id)
}

// Decode reads one message. It returns an error that wraps ErrInvalid for anything Encode cannot have
// written.
func Decode(data []byte) (Message, error) {
	var m Message
	if len(data) > MaxMessage {
		return m, fmt.Errorf("%w: %d bytes, the limit is %d", ErrInvalid, len(data), MaxMessage)
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

// Encode returns the message as one or more payloads of at most MaxMessage bytes each: long lists are
// spread over several. An id that fits into no message, with the sender's beside it, is left out, and there
// is no payload if not even the sender fits.
func Encode(m Message) (payloads [][]byte) {
	for _, p := range split(m) {
		payloads = append(payloads, p.payload)
	}
	return payloads
}

// Split returns what Decode makes of Encode's payloads, for a world without bytes. The messages share nothing
// with m.
func Split(m Message) (messages []Message) {
	for _, p := range split(m) {
		for _, ids := range []*[]sbr.ID{&p.Up, &p.Down, &p.Suspects} {
			*ids = append([]sbr.ID(nil), *ids...) // as there, an empty list is nil
		}
		messages = append(messages, p.Message)
	}
	return messages
}

// piece is a message that fits into a payload, and that payload.
type piece struct {
	Message
	payload []byte
}

func split(m Message) []piece {
	reason := m.Reason
	for limit := maxReason; ; limit /= 2 { // the reason is for people: it gives way before the message is cut
		m.Reason = shorten(reason, limit)
		if p, ok := fit(m); ok {
			return []piece{p}
		}
		if limit == 0 {
			break
		}
	}
	m.Whole = false
	head := m
	head.Up, head.Down, head.Reason = nil, nil, shorten(reason, maxReason)
	if p, ok := fit(head); !ok || len(p.payload) > MaxMessage/2 {
		head.Reason = ""
	}
	return append(
		chunks(head, m.Up, func(m *Message, ids []sbr.ID) { m.Up = ids }),
		chunks(head, m.Down, func(m *Message, ids []sbr.ID) { m.Down = ids })...)
}

// someBytes bounds what Some returns, so that the rest of a message has room.
const someBytes = 200

// Some returns the first of the suspects, as many as any message has room for: one is enough for its receiver
// to know that the cluster is not whole.
func Some(suspects []sbr.ID) []sbr.ID {
	n, size := 0, 0
	for n < len(suspects) && size+len(suspects[n]) <= someBytes {
		size += len(suspects[n])
		n++
	}
	return suspects[:n:n]
}

func fit(m Message) (piece, bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it would make six bytes of one
	err := e.Encode(m)
	return piece{m, bytes.TrimSuffix(b.Bytes(), []byte("\n"))}, err == nil && b.Len()-1 <= MaxMessage
}

func chunks(head Message, ids []sbr.ID, set func(*Message, []sbr.ID)) (out []piece) {
	for len(ids) > 0 {
		n := min(len(ids), 128) // more never fit
		for n > 0 {
			m := head
			set(&m, ids[:n])
			p, ok := fit(m)
			if !ok && n == 1 {
				m.Reason = ""
				p, ok = fit(m)
			}
			if ok {
				out = append(out, p)
				break
			}
			n /= 2
		}
		ids = ids[max(n, 1):]
	}
	return out
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	if limit == 0 {
		return ""
	}
	return strings.ToValidUTF8(s[:limit-1], "") + "."
}

// Telling is the message by which from sends a verdict: whole if it fits into one payload.
func Telling(from sbr.ID, v *sbr.Verdict) Message {
	return Message{
		Kind: KindVerdict, From: from, Token: v.Token, By: v.DecidedBy, Reason: v.Reason,
		Up: v.Survivors, Down: v.Down, Whole: !v.Partial,
	}
}

// Ordering is the message by which from gives an order to the targets. unlisted says whether from's own
// membership has forgotten a suspect: members of version 1 do not read an order with suspects, and need none
// unless they forgot them.
func Ordering(from sbr.ID, o *sbr.Order, targets []sbr.ID, unlisted func(sbr.ID) bool) Message {
	m := Message{Kind: KindOrder, From: from, Decided: o.Kind.String(), Reason: o.Reason, Down: o.Down}
	m.Up = slices.DeleteFunc(slices.Clone(targets), func(id sbr.ID) bool { return slices.Contains(o.Down, id) })
	if slices.ContainsFunc(o.Suspects, unlisted) {
		m.Suspects = Some(o.Suspects)
	}
	return m
}

// Asking is the message by which from asks the targets to race in its place.
func Asking(from sbr.ID, e *sbr.AskToRace) Message {
	return Message{Kind: KindAsk, From: from, Up: e.Targets, Down: Some(e.Suspects), Contact: e.Contact}
}

// Answering is the message with a resolver's answer to the question for a member's standing; nil: there is
// none yet.
func Answering(from sbr.ID, answer sbr.Event) *Message {
	switch a := answer.(type) {
	case sbr.Told:
		m := Telling(from, &a.Verdict)
		return &m
	case sbr.Ordered:
		m := Ordering(from, &a.Order, nil, func(sbr.ID) bool { return false })
		return &m
	case sbr.Cleared:
		return &Message{Kind: KindClear, From: from, Token: a.Token, Unsure: a.Unsure, Down: Some(a.Suspects)}
	default:
		return nil
	}
}

// Event is the resolver's event for the message; nil: none.
func (m *Message) Event() sbr.Event {
	switch m.Kind {
	case KindVerdict:
		v := sbr.Verdict{
			Token: m.Token, Survivors: m.Up, Down: m.Down, DecidedBy: m.By, Reason: m.Reason, Partial: !m.Whole,
		}
		v.Normalize()
		return sbr.Told{From: m.From, Verdict: v}
	case KindOrder:
		k, _ := sbr.ParseKind(m.Decided)
		o := sbr.Order{Kind: k, Down: m.Down, Reason: m.Reason, Suspects: m.Suspects}
		return sbr.Ordered{From: m.From, Order: o}
	case KindAsk:
		return sbr.Asked{From: m.From, Suspects: m.Down, Contact: m.Contact}
	case KindClear:
		return sbr.Cleared{From: m.From, Token: m.Token, Unsure: m.Unsure, Suspects: m.Down}
	default:
		return nil
	}
}

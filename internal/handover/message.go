package handover

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/codec"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// TopicYielded says that the slot belongs to another member after all.
const TopicYielded slot.Topic = "yielded"

// DefaultCounterBits are Config.CounterBits where that is zero.
const DefaultCounterBits = 40

// Kind says what a message means.
type Kind uint8

// The kinds. The zero Kind is none.
const (
	// Take asks for consent that the sender runs the slot.
	Take Kind = iota + 1
	// HandOver asks a member that runs the slot to stop, and to answer HandedOver once it has.
	HandOver
	// Resigned says that the sender runs nothing and will not: it leaves, or its manager was stopped.
	Resigned
	// Resigning asks the next candidate to take over: the sender runs the slot and is about to leave.
	Resigning
	// Clear answers Take: the sender runs nothing. Wait is how long the margins that it knows still last.
	Clear
	// Running answers Take: the sender runs the slot under Token and will hand over when asked to.
	Running
	// Refuse answers Take and HandOver: the slot belongs to the sender, which is older, or to an older member
	// that the sender knows.
	Refuse
	// HandedOver answers HandOver: the run under Token has ended and left State.
	HandedOver
	// Started sends all members the Token of a run without a lease, so that the next run has a larger one.
	Started
)

var kindNames = [...]string{Take: "take", HandOver: "hand-over", Resigned: "resigned", Resigning: "resigning",
	Clear: "clear", Running: "running", Refuse: "refuse",
	HandedOver: "handed-over", Started: "started"}

// String returns the kind in lower case.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return "none"
	}
	return kindNames[k]
}

// Message is what one member's machine says to another's. Which fields count depends on Kind.
type Message struct {
	Kind Kind
	// Born is the sender's birth (see Peer), of requests: the receiver may not know the sender yet.
	Born int64
	// Round numbers the sender's attempts; answers repeat it.
	Round uint64
	// Token is that of the run, of Running and HandedOver; otherwise the largest that the sender knows.
	Token uint64
	// Wait is how long the sender still waits for members that are gone, of Clear.
	Wait time.Duration
	// State is the state left by the sender's last run, of HandedOver and Clear; nil where a newer run is
	// known.
	State []byte
}

// older reports whether the first of two members is the older one.
func older(born int64, id sbr.ID, thanBorn int64, than sbr.ID) bool {
	if born == thanBorn {
		return id < than
	}
	return born != 0 && (thanBorn == 0 || born < thanBorn)
}

// ErrInvalid is wrapped by the errors of Decode.
var ErrInvalid = errors.New("handover: not a valid message")

// AppendMessage appends the encoding of a message, which is at most MaxState and 60 bytes long. State beyond
// MaxState is left out.
func AppendMessage(b []byte, m Message) []byte {
	m.Wait = max(m.Wait, 0)
	if len(m.State) > slot.MaxState {
		m.State = nil
	}
	return codec.Append(b, m.code)
}

// Decode reads what AppendMessage has written. It returns an error that wraps ErrInvalid for anything else,
// and never panics.
func Decode(b []byte) (m Message, err error) {
	if err := codec.Read(b, m.code); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

func (m *Message) code(c *codec.Coder) {
	codec.Small(c, &m.Kind, Take, Started)
	c.Signed(&m.Born)
	codec.Number(c, &m.Round, math.MaxUint64)
	codec.Number(c, &m.Token, math.MaxInt64)
	codec.Number(c, &m.Wait, math.MaxInt64)
	codec.Rest(c, &m.State, slot.MaxState)
}

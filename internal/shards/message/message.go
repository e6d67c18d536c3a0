package message

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The limits of what a message can say.
const (
	// MaxSize is how many bytes a message has at most: that of questions and answers between members.
	MaxSize = 700
	// MaxState is how many bytes of state a run may hand over.
	MaxState = slot.MaxState
	// MaxShards is how many shards a type has at most.
	MaxShards = 4096
	// CounterBits are those of a number that count under one term.
	CounterBits = 18
	// MaxCounter is the last number under a term.
	MaxCounter = 1<<CounterBits - 1
	// MaxTerm is the largest term: numbers stay below 2^63.
	MaxTerm = 1<<(63-CounterBits) - 1
)

// Number returns the n-th number under a term.
func Number(term, n uint64) uint64 { return term<<CounterBits | n }

// TermOf returns the term of a number.
func TermOf(number uint64) uint64 { return number >> CounterBits }

// Key is a member's incarnation in short.
type Key uint64

// Nobody is no member's key.
const Nobody Key = 0

// KeyOf returns the key of an incarnation; that of the empty one is Nobody.
func KeyOf(id sbr.ID) Key {
	if id == "" {
		return Nobody
	}
	return Key(max(xxhash.Sum64String(string(id)), 1))
}

// version is that of the wire format. It goes into the digest: members with different ones do not understand
// each other.
const version = 1

// Digest tells lists of shards apart: members work together only if the type, the sorted names, and whether
// they run under leases are the same.
func Digest(kind string, shards []string, useLease bool) uint64 {
	d := xxhash.New()
	lease := "-"
	if useLease {
		lease = "+"
	}
	for _, s := range append([]string{string(rune(version)), lease, kind}, shards...) {
		_, _ = d.WriteString(s) // never fails
		_, _ = d.Write([]byte{0})
	}
	return d.Sum64()
}

// Kind says what a message means.
type Kind uint8

// The kinds. The zero Kind is none.
const (
	// Report asks members what they run, from shard First on. It is answered with State.
	Report Kind = iota + 1
	// Orders tells everybody which shards go where. Members that are named answer with State.
	Orders
	_ // told everybody who owns what, in versions before
	// State says what a member runs. It answers Report and Orders; as a question it tells the coordinator
	// news, which answers Noted. One that leaves tells everybody.
	State
	// Noted answers State.
	Noted
	// HandOver asks a member to stop shards, and to answer HandedOver once it has.
	HandOver
	// HandedOver answers HandOver: the shards do not run there any more.
	HandedOver
	// Resigned tells everybody that the sender runs nothing and will not.
	Resigned
)

var kindNames = [...]string{"none", "report", "orders", "none", "state", "noted", "hand-over", "handed-over", "resigned"}

// String returns the kind in lower case.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[0]
	}
	return kindNames[k]
}

// Message is what one member says to another. Which fields count depends on Kind; the others are zero.
type Message struct {
	Kind Kind
	// Digest is the sender's list of shards, see Digest.
	Digest uint64
	// Term is the coordinator's, in its own messages; in those of hosts the largest that they know.
	Term uint64
	// Number is that of the coordinator's question; answers repeat it. Of State as a question it is 0.
	Number uint64
	// Seq grows with each State of a member, and with Resigned; Noted repeats it.
	Seq uint64
	// First and Next bound the shards that are meant, of Report (First) and State (both, with Full).
	First, Next int
	// Full says that State lists all shards from First up to, not including, Next that the member has to do
	// with. Otherwise it is about those listed only.
	Full bool
	// Leaving: the member is on its way out, of State.
	Leaving bool
	// Refused: the member follows another coordinator, of State.
	Refused bool
	// Busy: the member with another Digest still runs something, of State.
	Busy bool
	// Wait is how long the member still waits for members that are gone, of State. In milliseconds, rounded
	// up.
	Wait time.Duration

	Orders  []Order  // of Orders; by Shard
	Entries []Entry  // of State; by Shard
	Takes   []Take   // of HandOver; by Shard
	Handed  []Handed // of HandedOver; by Shard
}

// Order gives a shard to a member, or takes it away.
type Order struct {
	Shard int
	// From has to hand over first. Nobody: nothing runs.
	From Key
	// To is who shall run it. Nobody: From stops, and that is all.
	To Key
	// Number is the order's: N is counted under the message's Term.
	Number uint64
}

// Entry is what a member does with one shard.
type Entry struct {
	Shard int
	// Phase is one up to slot.Stopping: for others a run that rests is active, and a lease that is given back
	// is stopping.
	Phase slot.Phase
	// Number is the order by which it has the shard; 0 if Idle.
	Number uint64
	// Seen is the newest order on this shard that it knows, at least Number.
	Seen uint64
	// Token is the run's fencing token under a lease; 0 otherwise.
	Token uint64
}

// Take asks for one shard under an order.
type Take struct {
	Shard  int
	Number uint64
}

// Handed answers Take.
type Handed struct {
	Shard int
	// Number is that of the Take.
	Number uint64
	// Refused: the sender knows a newer order.
	Refused bool
	// Token is that of the last run, where shards have leases: a larger grant that does not follow on it says
	// that there was a run in between.
	Token uint64
	// State is what the last run has left, at most MaxState bytes.
	State []byte
}

// Writer is a slot.Writer of what machines of shards know. They only compare numbers, which grow for as long
// as a cluster lives: so only their order counts.
type Writer interface {
	slot.Writer
	// Order is the number of an order on a shard, Token a token of its lease.
	Order(shard int, n uint64)
	Token(shard int, n uint64)
	// Seq is the number of a State of a member, Question that of a question to it.
	Seq(of Key, n uint64)
	Question(to Key, n uint64)
}

package message

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The limits of what a message can say.
const (
	// MaxSize is how many bytes a message has at most: the limit of requests and answers between members.
	MaxSize = 700
	// MaxState is how many bytes of state a run may hand over.
	MaxState = slot.MaxState
	// MaxShards is how many shards a type has at most.
	MaxShards = 4096
	// CounterBits is how many bits of a number count under one term.
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

// Key is a short hash of a member's incarnation.
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

// version is the version of the wire format. It goes into the digest: members with different versions do not
// understand each other.
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
	// Report asks members what they run, from shard First on. They answer with State.
	Report Kind = iota + 1
	// Orders tells all members which shards go where. Members that an order names answer with State.
	Orders
	_ // the owners of all shards, in earlier versions
	// State says what a member runs. It answers Report and Orders; as a request it reports changes to the
	// coordinator, which answers Noted. A member that leaves sends it to all.
	State
	// Noted answers State.
	Noted
	// HandOver asks a member to stop shards, and to answer HandedOver once it has.
	HandOver
	// HandedOver answers HandOver: the shards do not run there any more.
	HandedOver
	// Resigned tells all members that the sender runs nothing and will not.
	Resigned
)

var kindNames = [...]string{"none", "report", "orders", "none", "state", "noted", "hand-over", "handed-over",
	"resigned"}

// String returns the kind in lower case.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[0]
	}
	return kindNames[k]
}

// Message is what one member sends to another. Which fields count depends on Kind; the others are zero.
type Message struct {
	Kind Kind
	// Digest is the sender's list of shards, see Digest.
	Digest uint64
	// Term is the coordinator's in its own messages; in messages of hosts it is the largest that they know.
	Term uint64
	// Number is the number of the coordinator's request; answers repeat it. In State as a request it is 0.
	Number uint64
	// Seq grows with each State of a member, and with Resigned; Noted repeats it.
	Seq uint64
	// First and Next bound the shards of Report (First) and State (both, with Full).
	First, Next int
	// Full says that State lists all shards from First up to, not including, Next that the member has to do
	// with. Otherwise it reports only the listed shards.
	Full bool
	// Leaving: the member leaves, of State.
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
	// To is the member that shall run the shard. Nobody: From only stops.
	To Key
	// Number is the number of the order, under the message's Term.
	Number uint64
}

// Entry is what a member does with one shard.
type Entry struct {
	Shard int
	// Phase is one up to slot.Stopping: others see a resting run as active, and a lease being released as
	// stopping.
	Phase slot.Phase
	// Number is the order by which it has the shard; 0 if Idle.
	Number uint64
	// Seen is the newest order on this shard that the member knows, at least Number.
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
	// Number is the number of the Take.
	Number uint64
	// Refused: the sender knows a newer order.
	Refused bool
	// Token is the token of the last run, where shards have leases: if the next grant is larger than Token+1
	// there may have been a run in between.
	Token uint64
	// State is the state that the last run has left, at most MaxState bytes.
	State []byte
}

// Writer is a slot.Writer for machines of shards. The machines only compare numbers, which grow for as long
// as a cluster lives: so only the order of numbers counts.
type Writer interface {
	slot.Writer
	// Order is the number of an order on a shard, Token a token of its lease.
	Order(shard int, n uint64)
	Token(shard int, n uint64)
	// Seq is the number of a member's State, Question the number of a request to the member.
	Seq(of Key, n uint64)
	Question(to Key, n uint64)
}

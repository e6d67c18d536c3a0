package explore

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// A walk keeps what members, messages and the store hold as small values that can be compared, and numbers
// those that are large. So a state is a few numbers, and whatever happened once in some state need not be
// worked out again in another.

// walkVerdict is a verdict, without its writer and reason: these decide nothing.
type walkVerdict struct {
	token           uint16 // zero: none
	partial         bool
	survivors, down uint8 // a bit for each member
}

func toWalkVerdict(v *sbr.Verdict) walkVerdict {
	if v == nil || v.Token == 0 && len(v.Survivors) == 0 && len(v.Down) == 0 {
		return walkVerdict{}
	}
	return walkVerdict{token: uint16(v.Token), partial: v.Partial, survivors: walkBits(v.Survivors),
		down: walkBits(v.Down)}
}

func (v walkVerdict) verdict() sbr.Verdict {
	return sbr.Verdict{Token: uint64(v.token), Partial: v.partial, Survivors: walkIDs(v.survivors),
		Down: walkIDs(v.down)}
}

// walkRecord is what the store holds.
type walkRecord struct {
	holder  int8 // its number plus one; zero: nobody
	token   uint16
	verdict walkVerdict
	left    uint8 // the members recorded to have left since
}

func (r walkRecord) record() sbr.Record {
	rec := sbr.Record{Token: uint64(r.token)}
	if r.holder > 0 {
		rec.Holder = walkID(int(r.holder) - 1)
	}
	if r.verdict.token > 0 {
		v := r.verdict.verdict()
		v.Left = walkIDs(r.left)
		rec.Verdict = &v
	}
	return rec
}

// walkWhat says what a walkEvent is.
type walkWhat uint8

const (
	walkTick walkWhat = iota
	walkResume
	walkSight   // who, flag: sightBack, sightGone or sightCut
	walkRead    // a request
	walkAcquire // a request: base, verdict, mask: whom it may replace
	walkRestore // a request: the verdict that the store may have lost
	walkRelease // a request
	walkRecords // a request: base, mask: who leaves
	walkReadAnswer
	walkAcquireAnswer // flag: the outcome
	walkReleaseAnswer
	walkObserved // what a watch reports
	walkTold     // who: the sender
	walkOrdered  // who: the sender, flag: the kind, mask: who goes down, suspects
	walkAsked    // who: the sender, flag: it has contact with the store, suspects
	walkMet      // who: a new life, base: the token it had read, mask: whose end it proves
	walkLeft     // who: has said goodbye
	walkUnlisted // who: was removed from the list
	walkCleared  // who: the sender, base: the token it knows, flag: unsure of its own fate
)

// What a member notices of another one.
const (
	sightBack uint8 = iota // it answers again
	sightGone              // a member of the same side does not answer any more
	sightCut               // it is on the other side of the cut
)

// walkEvent is something that happens to a resolver, or a request to the store. The number of the attempt is
// left out: it is kept relative to the member's newest one (walkPacket.age).
type walkEvent struct {
	what walkWhat
	who  int8
	flag uint8
	mask uint8
	// suspects are the members that the sender cannot reach.
	suspects uint8
	base     uint16
	record   walkRecord
}

func (e walkEvent) request() bool { return e.what >= walkRead && e.what <= walkRecords }

func (e walkEvent) numbered() bool { return e.what >= walkRead && e.what <= walkReleaseAnswer }

// event is what the resolver gets.
func (e walkEvent) event(attempt uint64) sbr.Event {
	switch e.what {
	case walkResume:
		return sbr.Resumed{Gap: walkPause}
	case walkSight:
		return sbr.Reachability{ID: walkID(int(e.who)), Unreachable: e.flag != sightBack}
	case walkReadAnswer:
		return sbr.LeaseRead{Attempt: attempt, Record: e.record.record()}
	case walkAcquireAnswer:
		return sbr.LeaseAnswer{Attempt: attempt, Outcome: sbr.Outcome(e.flag), Record: e.record.record()}
	case walkReleaseAnswer:
		return sbr.LeaseReleased{Attempt: attempt, Done: true}
	case walkObserved:
		return sbr.LeaseObserved{Record: e.record.record()}
	case walkTold:
		return sbr.Told{From: walkID(int(e.who)), Verdict: e.record.verdict.verdict()}
	case walkOrdered:
		return sbr.Ordered{From: walkID(int(e.who)), Order: sbr.Order{
			Kind: sbr.Kind(e.flag), Down: walkIDs(e.mask), Suspects: walkIDs(e.suspects),
		}}
	case walkAsked:
		return sbr.Asked{From: walkID(int(e.who)), Suspects: walkIDs(e.suspects), Contact: e.flag != 0}
	case walkLeft, walkUnlisted:
		return sbr.MemberGone{ID: walkID(int(e.who)), Ended: e.what == walkLeft}
	case walkCleared:
		return sbr.Cleared{From: walkID(int(e.who)), Token: uint64(e.base), Unsure: e.flag != 0}
	default:
		return nil
	}
}

// toWalkEvent is the opposite, for what a member answers when it is asked about another's standing.
func toWalkEvent(e sbr.Event) walkEvent {
	switch e := e.(type) {
	case sbr.Told:
		return walkEvent{what: walkTold, who: int8(walkIndex(e.From)),
			record: walkRecord{verdict: toWalkVerdict(&e.Verdict)}}
	case sbr.Ordered:
		return walkEvent{what: walkOrdered, who: int8(walkIndex(e.From)), flag: uint8(e.Order.Kind),
			mask: walkBits(e.Order.Down), suspects: walkBits(e.Order.Suspects)}
	case sbr.Cleared:
		w := walkEvent{what: walkCleared, who: int8(walkIndex(e.From)), base: uint16(e.Token)}
		if e.Unsure {
			w.flag = 1
		}
		return w
	default:
		panic("explore: an answer of an unknown kind")
	}
}

// walkEvents numbers events.
type walkEvents struct {
	all   []walkEvent
	index map[walkEvent]uint32
}

func (t *walkEvents) init() {
	t.index = make(map[walkEvent]uint32)
	t.intern(walkEvent{what: walkTick})
	t.intern(walkEvent{what: walkResume})
}

func (t *walkEvents) intern(e walkEvent) uint32 {
	n, ok := t.index[e]
	if !ok {
		n = uint32(len(t.all))
		t.all = append(t.all, e)
		t.index[e] = n
	}
	return n
}

func walkName(i int) string { return "n" + strconv.Itoa(i+1) }

func walkID(i int) sbr.ID { return sbr.ID(walkName(i)) }

func walkIndex(id sbr.ID) int { return int(id[1] - '1') }

// walkNode is member i: by address and by age in the order of the numbers.
func walkNode(i int) sbr.Member {
	return sbr.Member{ID: walkID(i), Name: walkName(i), Addr: "10.0.0." + strconv.Itoa(i+1) + ":7946",
		Born: int64(i + 1), Status: sbr.Up}
}

// walkLife is member i, which had read a token when it started.
func walkLife(i int, seen uint16) sbr.Member {
	m := walkNode(i)
	m.Seen = uint64(seen)
	return m
}

func walkBits(ids []sbr.ID) (mask uint8) {
	for _, id := range ids {
		mask |= 1 << walkIndex(id)
	}
	return mask
}

func walkIDs(mask uint8) []sbr.ID {
	ids := make([]sbr.ID, 0, bits.OnesCount8(mask))
	for m := mask; m != 0; m &= m - 1 {
		ids = append(ids, walkID(bits.TrailingZeros8(m)))
	}
	return slices.Clip(ids)
}

// Describe says what a move is, in a line.
func (w *walker) Describe(s *walkState, m walk.Move) string {
	who := walkName(int(m.At))
	switch m.Kind {
	case walkDue:
		return who + ": a deadline"
	case walkCrashes:
		return who + " CRASHES"
	case walkPauses:
		return who + " is PAUSED"
	case walkLeaves:
		return who + " LEAVES"
	case walkRemoves:
		i, j := ofPair(m.At)
		return walkName(i) + " is told to FORCE-LEAVE " + walkName(j)
	case walkRestarts:
		return who + " RESTARTS, and is " + walkName(w.first+int(m.At)) + " from now on"
	case walkForgets:
		if m.At == 0 {
			return "the record is DELETED"
		}
		return fmt.Sprintf("the record becomes verdict %d AGAIN", m.At)
	case walkLooksUp:
		return who + " reads the lease, as it does now and then"
	case walkContinues:
		return who + " goes on after its pause"
	}
	p := s.flying[m.At]
	e := &w.events.all[p.event()]
	who = walkName(p.member())
	text := who + " " + e.String()
	if e.request() {
		text = "the store gets from " + who + ": " + e.String()
	}
	switch m.Kind {
	case walkDelayed:
		return "LATE from now on: " + text
	case walkLostNow:
		return "LOST: " + text
	}
	if p.late() {
		text += " (late)"
	}
	return text
}

// String says what the event is, to be read after the name of the member.
func (e walkEvent) String() string {
	from := walkName(int(e.who))
	switch e.what {
	case walkSight:
		if e.flag == sightBack {
			return "reaches " + from + " again"
		}
		return "notices that " + from + " does not answer"
	case walkRead:
		return "read the lease"
	case walkRestore:
		return fmt.Sprintf("write %v back", e.record.verdict)
	case walkAcquire:
		text := fmt.Sprintf("acquire the lease over token %d, %v", e.base, e.record.verdict)
		if e.mask != 0 {
			text += ", in the place of " + names(e.mask)
		}
		return text
	case walkRelease:
		return "release the lease"
	case walkRecords:
		return fmt.Sprintf("record beside verdict %d that %s left", e.base, names(e.mask))
	case walkReadAnswer:
		return "has read: " + e.record.String()
	case walkAcquireAnswer:
		return "hears that its attempt is " + sbr.Outcome(e.flag).String() + ": " + e.record.String()
	case walkReleaseAnswer:
		return "hears that the lease is released"
	case walkObserved:
		return "sees by its watch: " + e.record.String()
	case walkTold:
		return fmt.Sprintf("is told by %s verdict %d, %v", from, e.record.verdict.token, e.record.verdict)
	case walkOrdered:
		return fmt.Sprintf("is ordered by %s: %v, down %s", from, sbr.Kind(e.flag), names(e.mask))
	case walkAsked:
		if e.flag != 0 {
			return "hears that " + from + " has contact with the store"
		}
		return "is asked by " + from + " to race in its place"
	case walkMet:
		return "meets " + from + ", which takes the place of " + names(e.mask)
	case walkLeft:
		return "hears that " + from + " has left"
	case walkUnlisted:
		return "hears that " + from + " was removed"
	case walkCleared:
		if e.flag != 0 {
			return "hears from " + from + ", which does not know its own fate, that nothing speaks against it"
		}
		return "hears from " + from + " that nothing speaks against it"
	default:
		return "goes on"
	}
}

// String says which members stay and which go.
func (v walkVerdict) String() string {
	text := "survivors " + names(v.survivors) + ", down " + names(v.down)
	if v.partial {
		text += " and perhaps others"
	}
	return text
}

// String says what the store holds.
func (r walkRecord) String() string {
	holder := "nobody"
	if r.holder > 0 {
		holder = walkName(int(r.holder) - 1)
	}
	if r.verdict.token == 0 {
		return "no verdict, held by " + holder
	}
	return fmt.Sprintf("verdict %d, %v, held by %s", r.verdict.token, r.verdict, holder)
}

func names(mask uint8) string {
	if mask == 0 {
		return "nobody"
	}
	var all []string
	for _, id := range walkIDs(mask) {
		all = append(all, string(id))
	}
	return strings.Join(all, " ")
}

package slots

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// set is a set of members, a bit each.
type set uint8

func (s set) has(i int) bool { return s>>i&1 != 0 }

func one(i int) set { return 1 << i }

// member is a machine and what is known around it. Machines and views are shared between states: who changes one, copies it first.
type member struct {
	m     *handover.Machine
	peers []handover.Peer // the view that was shown last; nil: it has to be made anew

	up, paused, joined, armed bool
	// closed: the manager is over, doubts: it was paused and does not know its fate yet, told: it has heard that it is down.
	closed, doubts, told bool
	left                 bool          // out of the cluster, in good order
	resigns              bool          // its manager was stopped, or it leaves
	sure, stood          time.Duration // when it was last sure, and was paused
	// Whom it knows, does not reach, sees as down, as removed.
	knows, unreachable, down, gone set
	verdict                        uint64

	run, token        uint64
	running, stopping bool
	attempt           uint64 // the newest
	granted           uint64 // its last token of the lease
	waits             bool   // for the lease
}

// state is everything.
type state struct {
	now     time.Duration
	members [MaxMembers]member
	letters []letter // never changed in place
	// holder is who has the lease, -1 for nobody; granted is the last token.
	holder  int8
	granted uint64

	// cut is one side of a cut, changed when whom one reaches has last changed. losers are out by the verdicts, the last of which came at decided.
	cut              set
	changed, decided time.Duration
	verdict          uint64
	losers           set
	leaving          set

	// What may still happen.
	cuts, crashes, pauses, resigns, leaves, ends, late, twice, removals, slow, losses, doubts int8

	// The largest token of a run so far, and the newest verdict that a starting member knew.
	token, tokenVerdict uint64
}

// letterKind says what a letter is.
type letterKind uint8

const (
	question letterKind = iota
	answer
	unserved
	// The others are a member's own.
	leaseAnswer
	leaseUnknown
	leaseLost
	leaseReleased
	runEnded
)

// letter is something that is under way to a member.
type letter struct {
	kind     letterKind
	from, to int8
	late     bool
	msg      handover.Message
	// number is the attempt or the run, token the lease's.
	number, token uint64
}

var ids = [MaxMembers]sbr.ID{"a", "b", "c", "d"}

func name(i int) sbr.ID { return ids[i] }

// machine returns the machine of a member, to be changed.
func (s *state) machine(i int) *handover.Machine {
	s.members[i].m = s.members[i].m.Clone()
	return s.members[i].m
}

// post adds a letter.
func (s *state) post(l letter) { s.letters = append(slices.Clip(s.letters), l) }

// without removes a letter.
func (s *state) without(k int) {
	s.letters = append(slices.Clone(s.letters[:k]), s.letters[k+1:]...)
}

// age is how long ago something was, cut at what matters.
func (s *state) age(t, most time.Duration) time.Duration { return min(s.now-t, most) }

// appendKey appends what distinguishes the state from others.
func (w *walker) appendKey(b []byte, s *state) []byte {
	for i := range w.Members {
		b = w.appendMember(b, s, i)
	}
	b = append(b, byte(s.holder), byte(s.cut), byte(s.losers), byte(s.leaving))
	b = binary.AppendUvarint(b, s.granted)
	b = binary.AppendUvarint(b, s.verdict)
	b = binary.AppendUvarint(b, s.token)
	b = binary.AppendUvarint(b, s.tokenVerdict)
	b = binary.AppendVarint(b, int64(s.age(s.changed, max(w.StableAfter, w.notice))))
	b = binary.AppendVarint(b, int64(s.age(s.decided, w.notice)))
	for _, n := range []int8{s.cuts, s.crashes, s.pauses, s.resigns, s.leaves, s.ends, s.late, s.twice, s.removals, s.slow, s.losses, s.doubts} {
		b = append(b, byte(n))
	}
	return w.appendLetters(b, s)
}

func (w *walker) appendMember(b []byte, s *state, i int) []byte {
	m := &s.members[i]
	var flags uint16
	for k, f := range [...]bool{m.up, m.paused, m.joined, m.armed, m.closed, m.doubts, m.told, m.left, m.running, m.stopping, m.waits, m.resigns} {
		if f {
			flags |= 1 << k
		}
	}
	b = append(b, byte(flags), byte(flags>>8))
	if !m.up {
		return b
	}
	b = append(b, byte(m.knows), byte(m.unreachable), byte(m.down), byte(m.gone), byte(m.verdict))
	b = binary.AppendUvarint(b, m.token)
	if !w.UseLease {
		b = binary.AppendVarint(b, int64(s.age(m.sure, w.Handover.Trust)))
	}
	if m.paused { // its machine counts from when it stood still
		h := &w.Handover
		b = binary.AppendVarint(b, int64(s.age(m.stood, max(h.Margin, h.Trust, h.LeaseRetryInterval, patience*h.HandOverRetryInterval))))
	}
	return m.m.AppendState(b)
}

// appendLetters appends the letters in an order of their own.
func (w *walker) appendLetters(b []byte, s *state) []byte {
	keys := make([][]byte, len(s.letters))
	for k := range s.letters {
		keys[k] = s.letterKey(&s.letters[k])
	}
	slices.SortFunc(keys, bytes.Compare)
	for _, k := range keys {
		b = append(append(b, byte(len(k))), k...)
	}
	return b
}

// letterKey tells letters apart. Of a round, attempt or run counts whether it is the newest.
func (s *state) letterKey(l *letter) []byte {
	b := make([]byte, 0, 24)
	b = append(b, byte(l.kind), byte(l.from), byte(l.to), 0)
	if l.late {
		b[3] = 1
	}
	stale := uint64(0)
	switch l.kind {
	case question:
		stale = s.members[l.from].m.Round() - l.msg.Round
	case answer, unserved:
		stale = s.members[l.to].m.Round() - l.msg.Round
	case runEnded:
		stale = s.members[l.to].run - l.number
	default:
		stale = s.members[l.to].attempt - l.number
	}
	b = append(b, byte(min(stale, 1)), byte(l.msg.Kind))
	b = binary.AppendUvarint(b, l.msg.Token)
	b = binary.AppendUvarint(b, uint64(l.msg.Wait))
	return binary.AppendUvarint(b, l.token)
}

// sorted returns the letters' numbers in their own order, equal ones once.
func (s *state) sorted() []int {
	keys := make([][]byte, len(s.letters))
	order := make([]int, len(s.letters))
	for k := range s.letters {
		keys[k], order[k] = s.letterKey(&s.letters[k]), k
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Or(bytes.Compare(keys[x], keys[y]), cmp.Compare(x, y)) })
	return slices.CompactFunc(order, func(x, y int) bool { return bytes.Equal(keys[x], keys[y]) })
}

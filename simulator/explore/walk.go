package explore

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// MaxMembers is how many members a walk may have.
const MaxMembers = 8

// Walk tries every interleaving of one clean partition of a small cluster: every order in which deadlines,
// messages, requests and answers come, with a number of faults at every possible moment. Time is virtual and
// moves only when nothing is under way, but for what is late. It finds what chance would not.
type Walk struct {
	// Sides are the members of each side, by index; together they are 0 to n-1, at most MaxMembers.
	Sides [][]int
	// Noticed is when each side notices the cut, all its members at once, counted from the first side that
	// does. Empty: all together.
	Noticed []time.Duration
	// NoStore are the members that never reach the lease store.
	NoStore []int
	// Watch tells every member that reaches the store of each change of the record.
	Watch bool
	// LateCut lets also what Lost counts happen to the news of the cut: a member notices one of the others
	// later than the rest. What it never notices is no state of rest.
	LateCut bool
	Faults
	// Resolver and Strategy are the rules.
	Resolver sbr.Config
	Strategy sbr.Strategy
	// Limit bounds the number of states. Zero: none.
	Limit int
}

// Faults are how often something may go wrong in a walk, or still may: to any member, at any moment.
type Faults struct {
	// Lost is how many requests, answers and messages may come late: at any later time, or never.
	Lost    int `json:"lost"`
	Crashes int `json:"crashes"`
	Pauses  int `json:"pauses"`
	// Leaves is how often a member says goodbye and ends, Removals how often a member is told to remove from
	// its list a member that it cannot reach, which spreads to the members that it reaches.
	Leaves   int `json:"leaves"`
	Removals int `json:"removals"`
	// Forgets is how often the store forgets: the record is deleted, or becomes an earlier one.
	Forgets int `json:"forgets"`
	// Restarts is how many members may crash and start anew at once, each of them once: the next life reads
	// the store, joins its side, knows whom the life before could not reach, and proves that that has ended.
	// It needs at most half of MaxMembers.
	Restarts int `json:"restarts"`
}

type (
	// WalkCounts are the sizes of what was searched.
	WalkCounts = walk.Counts
	// WalkResult is what a walk found.
	WalkResult = walk.Report
	// Violation is a broken promise and the way to it. The promises are S1, S2, S4, L1, L3 and F1, as in the
	// design; chain: the rules of verdicts; stable: no member decides before its view was stable.
	Violation = walk.Violation
)

// Run searches all states. It looks at ctx now and then, and returns what it has when that is cancelled.
func (o Walk) Run(ctx context.Context) WalkResult { return newWalker(o).search.Run(ctx) }

// walker is the model of a walk.
type walker struct {
	Walk
	n      int // members, and where they may restart, their next lives, which come after them
	first  int // members of the start
	side   [MaxMembers]int
	mates  [MaxMembers]uint8 // the other members of the same side, a bit each
	access uint8
	lease  bool // the strategy needs it

	events  walkEvents
	members [MaxMembers]walkMember

	looks  walkLooks
	search *walk.Search[walkState]

	// For tests: a search without reduction, and what is called in every state of rest, at each step of a
	// member, when time passes.
	plain   bool
	rested  func(*walkState)
	stepped func(i int, event uint32, age uint16, t *walkEffects)
	waited  func(by time.Duration)
}

func newWalker(o Walk) *walker {
	w := &walker{Walk: o, lease: sbr.NeedsLease(o.Strategy)}
	for g, s := range o.Sides {
		w.n += len(s)
		for _, i := range s {
			w.side[i] = g
		}
	}
	w.first = w.n
	if o.Restarts > 0 {
		w.n *= 2
		for i := range w.first {
			w.side[w.first+i] = w.side[i]
		}
	}
	for i := range w.n {
		w.access |= 1 << i
		for j := range w.n {
			if i != j && w.side[i] == w.side[j] {
				w.mates[i] |= 1 << j
			}
		}
	}
	for _, i := range o.NoStore {
		w.access &^= 1<<i | 1<<(w.first+i)
	}
	w.events.init()
	for i := range w.n {
		w.members[i].init(w, i)
	}
	w.search = walk.NewSearch(w, o.Limit)
	return w
}

// First makes s the state in which the cluster is whole and armed, and is cut at this moment.
func (w *walker) First(s *walkState) {
	*s = walkState{Faults: w.Faults}
	for i := range w.first {
		r, err := sbr.New(w.Resolver, w.Strategy, walkNode(i), 0)
		if err != nil {
			panic(err) // a mistake in the program
		}
		r.SkipAttempts(walkFirstAttempt)
		for j := range w.first {
			if i != j {
				r.Step(0, sbr.MemberSeen{Member: walkNode(j)})
			}
		}
		r.Tick(w.Resolver.SettleAfter)
		s.local[i] = w.members[i].intern(r, w.Resolver.SettleAfter, walkFirstAttempt, walkUnrest{})
	}
	w.notice(s)
}

// walkState is one state of a walk.
type walkState struct {
	local   [MaxMembers]uint32 // of each resolver (walkMember.locals); zero: it has ended
	record  walkRecord
	flying  []walkPacket  // sorted
	clock   time.Duration // since the cut, as long as some side has not noticed it
	crashed uint8
	paused  uint8

	Faults                    // how many more may happen
	seen   [MaxMembers]uint16 // the token that each had read when it started

	chain    [walkChain]walkVerdict // what was ever written, the oldest first, where the store may forget
	written  uint8                  // how many of them there are
	forgot   uint8                  // which of them the store has lost, counted from 1; zero: none
	excepted bool                   // S1 allows what follows: see walker.overwrites
}

// walkChain is more than the verdicts that one walk writes.
const walkChain = 8

// walkPacket is something under way: to a member, or from one to the store. From the top: the member, whether
// it is late, how many attempts its member has made since (for requests and answers), the event.
type walkPacket uint64

func newWalkPacket(member int, event uint32, age uint16) walkPacket {
	return walkPacket(member)<<56 | walkPacket(age)<<32 | walkPacket(event)
}

const walkLate walkPacket = 1 << 55

func (p walkPacket) member() int   { return int(p >> 56) }
func (p walkPacket) late() bool    { return p&walkLate != 0 }
func (p walkPacket) age() uint16   { return uint16(p >> 32) }
func (p walkPacket) event() uint32 { return uint32(p) }

// Copy makes to a copy of from.
func (w *walker) Copy(to, from *walkState) {
	flying := to.flying
	*to = *from
	to.flying = append(flying[:0], from.flying...)
}

func (s *walkState) up(i int) bool { return s.local[i] != 0 }

func (s *walkState) isPaused(i int) bool { return s.paused>>i&1 != 0 }

func (s *walkState) fly(p walkPacket) {
	k, _ := slices.BinarySearch(s.flying, p)
	s.flying = slices.Insert(s.flying, k, p)
}

// take removes the packet at k.
func (s *walkState) take(k int) walkPacket {
	p := s.flying[k]
	s.flying = slices.Delete(s.flying, k, k+1)
	return p
}

// AppendKey appends everything that decides what can follow.
func (w *walker) AppendKey(b []byte, s *walkState) []byte {
	for _, l := range s.local[:w.n] {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	r := &s.record
	b = append(b, byte(r.holder), byte(r.token), byte(r.token>>8), byte(r.verdict.token),
		byte(r.verdict.token>>8))
	b = append(b, r.verdict.survivors, r.verdict.down, r.left)
	b = append(b, s.crashed, s.paused)
	for _, n := range [...]int{s.Lost, s.Crashes, s.Pauses, s.Leaves, s.Removals, s.Forgets, s.Restarts} {
		b = append(b, byte(n))
	}
	if s.crashed != 0 {
		for _, t := range s.seen[:w.n] {
			b = append(b, byte(t))
		}
	}
	if s.written > 0 {
		b = append(b, s.written, s.forgot)
		b = appendBool(b, s.excepted)
		for _, v := range s.chain[:s.written] {
			b = append(b, byte(v.token), v.survivors, v.down)
		}
	}
	if s.clock != 0 {
		b = binary.LittleEndian.AppendUint64(b, uint64(s.clock))
	}
	b = append(b, byte(len(s.flying)))
	for _, p := range s.flying {
		b = binary.LittleEndian.AppendUint64(b, uint64(p))
	}
	return b
}

func appendBool(b []byte, x bool) []byte {
	if x {
		return append(b, 1)
	}
	return append(b, 0)
}

package explore

import (
	"encoding/binary"
	"slices"
	"time"
)

// walkState is one state of a walk.
type walkState struct {
	local   [MaxMembers]uint32 // of each resolver (walkMember.locals); zero: it has ended
	record  walkRecord
	flying  []walkPacket  // sorted
	clock   time.Duration // since the cut, as long as some side has not noticed it
	crashed uint8
	unrest  uint8 // who went down because some view kept changing
	paused  uint8

	lost, crashes, pauses     uint8 // how many more may happen
	leaves, removals, forgets uint8
	restarts                  uint8
	seen                      [MaxMembers]uint16 // the token that each had read when it started

	chain    [walkChain]walkVerdict // what was ever written, the oldest first, where the store may forget
	written  uint8                  // how many of them there are
	forgot   uint8                  // which of them the store has lost, counted from 1; zero: none
	excepted bool                   // S1 allows what follows: see walker.overwrites
}

// walkChain is more than the verdicts that one walk writes.
const walkChain = 8

// walkPacket is something under way: to a member, or from one to the store. From the top: the member, whether it is late, how many
// attempts its member has made since (for requests and answers), the event.
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
	b = append(b, byte(r.holder), byte(r.token), byte(r.token>>8), byte(r.verdict.token), byte(r.verdict.token>>8))
	b = append(b, r.verdict.survivors, r.verdict.down, r.left)
	b = append(b, s.crashed, s.unrest, s.paused, s.lost, s.crashes, s.pauses, s.leaves, s.removals, s.forgets)
	if b = append(b, s.restarts); s.crashed != 0 {
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

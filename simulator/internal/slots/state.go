package slots

import (
	"encoding/binary"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// slot is what runs on a member. Machines and views are shared between states: who changes one, copies it first.
type slot struct {
	m     *handover.Machine
	peers []core.Peer // the view that was shown last; nil: it has to be made anew

	run, token        uint64
	running, stopping bool
	attempt           uint64 // the newest
	granted           uint64 // its last token of the lease
	waits             bool   // for the lease
}

// state is everything.
type state struct {
	walk.World[body]
	slots [MaxMembers]slot
	// holder is who has the lease, -1 for nobody; granted is the last token.
	holder  int8
	granted uint64

	// The largest token of a run so far, and the newest verdict that a starting member knew.
	token, tokenVerdict uint64
}

// bodyKind says what a packet is.
type bodyKind uint8

const (
	question bodyKind = iota
	answer
	unserved
	// The others are a member's own.
	leaseAnswer
	leaseUnknown
	leaseLost
	leaseReleased
	runEnded
)

// body is what is in a packet.
type body struct {
	kind bodyKind
	msg  handover.Message
	// number is the attempt or the run, token the lease's.
	number, token uint64
}

type packet = walk.Packet[body]

// toSelf is a packet of a member to itself.
func toSelf(i int, way walk.Way, b body) packet {
	return packet{Way: way, From: int8(i), To: int8(i), Body: b}
}

func name(i int) sbr.ID { return walk.Name(i) }

// machine returns the machine of a member, to be changed.
func (s *state) machine(i int) *handover.Machine {
	s.slots[i].m = s.slots[i].m.Clone()
	return s.slots[i].m
}

// AppendKey appends what distinguishes the state from others.
func (w *walker) AppendKey(b []byte, s *state) []byte {
	h, trust := &w.Handover, time.Duration(0)
	if !w.UseLease {
		trust = h.Trust
	}
	b = s.Cluster.AppendKey(b, trust, max(h.Margin, h.Trust, h.LeaseRetryInterval, patience*h.HandOverRetryInterval))
	for i := range w.Members {
		if !s.Members[i].Up {
			continue
		}
		x := &s.slots[i]
		var flags byte
		for k, f := range [...]bool{x.running, x.stopping, x.waits} {
			if f {
				flags |= 1 << k
			}
		}
		b = binary.AppendUvarint(append(b, flags), x.token)
		w.canon.Reset()
		x.m.AppendState(&w.canon)
		b = w.canon.Append(b)
	}
	b = append(b, byte(s.holder))
	b = binary.AppendUvarint(b, s.granted)
	b = binary.AppendUvarint(b, s.token)
	b = binary.AppendUvarint(b, s.tokenVerdict)
	return s.Packets.AppendKey(b, s.packetKey)
}

// packetKey tells packets apart. Of a round, attempt or run counts whether it is the newest.
func (s *state) packetKey(b []byte, l *packet) []byte {
	x := &l.Body
	stale := uint64(0)
	switch x.kind {
	case question:
		stale = s.slots[l.From].m.Round() - x.msg.Round
	case answer, unserved:
		stale = s.slots[l.To].m.Round() - x.msg.Round
	case runEnded:
		stale = s.slots[l.To].run - x.number
	default:
		stale = s.slots[l.To].attempt - x.number
	}
	b = append(b, byte(x.kind), byte(min(stale, 1)), byte(x.msg.Kind))
	b = binary.AppendUvarint(b, x.msg.Token)
	b = binary.AppendUvarint(b, uint64(x.msg.Wait))
	return binary.AppendUvarint(b, x.token)
}

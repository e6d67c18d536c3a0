package shards

import (
	"encoding/binary"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

const (
	nobody   = -1
	stranger = walk.MaxMembers // somebody out of this cluster, who holds a lease
)

// run is what a member does with a shard.
type run struct {
	number, token     uint64
	running, stopping bool
	attempt           uint64 // to get the lease: the newest
	granted           uint64 // the last token of the lease
	waits             bool   // for the lease
}

// hosted is what runs on a member. Machines and views are shared between states: who changes one, copies it first.
type hosted struct {
	m     *host.Machine
	peers []slot.Peer // the view that was shown last; nil: it has to be made anew
	runs  [MaxShards]run
}

// coordination is a run of the coordinator.
type coordination struct {
	m    *coordinator.Machine // nil: none
	at   int8
	term uint64
}

// lease is that of one shard.
type lease struct {
	holder int8 // nobody, a member or the stranger
	token  uint64
}

// state is everything.
type state struct {
	walk.World[body]
	hosts [walk.MaxMembers]hosted
	// coordinators are the coordinator, and the one before that does not know of it yet.
	coordinators [2]coordination
	term         uint64 // the largest
	leases       [MaxShards]lease
	// tokens are the largest of the runs so far, owners whose.
	tokens    [MaxShards]uint64
	owners    [MaxShards]int8
	changes   int8
	strangers int8
	whims     int8
	// wishes are where the allocation wants shards; nobody: where it would have them by itself.
	wishes [MaxShards]int8
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
	// term is that of the coordinator that asks, or that is answered; 0: a host asks, or is answered.
	term uint64
	msg  *message.Message // never changed
	// number is the attempt or the run, token the lease's.
	shard         int8
	number, token uint64
	key           string // of all that
}

type packet = walk.Packet[body]

// said is the body of what members say to each other.
func said(kind bodyKind, term uint64, msg message.Message) body {
	b := body{kind: kind, term: term, msg: &msg}
	b.key = b.written()
	return b
}

// own is the body of what a member hears from itself.
func own(kind bodyKind, shard int, number, token uint64) body {
	b := body{kind: kind, shard: int8(shard), number: number, token: token}
	b.key = b.written()
	return b
}

// written writes a body so that larger numbers come later, whatever their distance.
func (b *body) written() string {
	k := []byte{byte(b.kind), byte(b.shard)}
	put := func(n ...uint64) {
		for _, n := range n {
			k = binary.BigEndian.AppendUint64(k, n)
		}
	}
	put(b.term, b.number, b.token)
	m := b.msg
	if m == nil {
		return string(k)
	}
	k = append(k, byte(m.Kind))
	put(uint64(len(m.Orders)), uint64(len(m.Entries)), uint64(len(m.Takes)), uint64(len(m.Handed)))
	for _, o := range m.Orders {
		put(uint64(o.Shard), uint64(o.From), uint64(o.To), o.Number)
	}
	for _, e := range m.Entries {
		put(uint64(e.Shard), uint64(e.Phase), e.Number, e.Seen)
	}
	for _, t := range m.Takes {
		put(uint64(t.Shard), t.Number)
	}
	for _, h := range m.Handed {
		refused := uint64(0)
		if h.Refused {
			refused = 1
		}
		put(uint64(h.Shard), h.Number, refused)
	}
	flags := uint64(0)
	for i, f := range [...]bool{m.Full, m.Leaving, m.Refused, m.Busy} {
		if f {
			flags |= 1 << i
		}
	}
	put(m.Term, flags, uint64(m.Wait), m.Number, m.Seq)
	return string(k)
}

func packetKey(b []byte, l *packet) []byte { return append(b, l.Body.key...) }

// toSelf is a packet of a member to itself.
func toSelf(i int, way walk.Way, b body) packet {
	return packet{Way: way, From: int8(i), To: int8(i), Body: b}
}

func name(i int) sbr.ID { return walk.Name(i) }

func key(i int) message.Key { return keys[i] }

var keys = [walk.MaxMembers]message.Key{message.KeyOf(walk.Name(0)), message.KeyOf(walk.Name(1)), message.KeyOf(walk.Name(2)), message.KeyOf(walk.Name(3))}

// host returns the machine of a member, to be changed.
func (s *state) host(i int) *host.Machine {
	s.hosts[i].m = s.hosts[i].m.Clone()
	return s.hosts[i].m
}

// coordinator returns the machine of a coordinator, to be changed.
func (w *walker) coordinator(s *state, k int) *coordinator.Machine {
	w.alloc.wishes = s.wishes
	s.coordinators[k].m = s.coordinators[k].m.Clone()
	return s.coordinators[k].m
}

// AppendKey appends what distinguishes the state from others.
func (w *walker) AppendKey(b []byte, s *state) []byte {
	h, trust := &w.Host, time.Duration(0)
	if !w.UseLease {
		trust = h.Trust
	}
	b = s.Cluster.AppendKey(b, trust, max(h.Margin, h.Trust, w.patience()))
	c := &w.canon
	c.Reset()
	for i := range w.Members {
		if s.Members[i].Up {
			s.hosts[i].m.AppendState(c)
			for n := range w.Shards {
				w.appendRun(s, &s.hosts[i].runs[n], n)
			}
		}
	}
	for k := range s.coordinators {
		x := &s.coordinators[k]
		c.Flags(x.m != nil)
		if x.m != nil {
			c.Uint(uint64(x.at))
			c.Uint(x.term)
			x.m.AppendState(c)
		}
	}
	for n := range w.Shards {
		c.Uint(uint64(s.leases[n].holder + 1))
		c.Uint(uint64(s.owners[n] + 1))
		c.Uint(uint64(s.wishes[n] + 1))
		w.appendToken(n, s.leases[n].token)
		w.appendToken(n, s.tokens[n])
	}
	for _, n := range []uint64{s.term, uint64(s.changes), uint64(s.strangers), uint64(s.whims)} {
		c.Uint(n)
	}
	for _, k := range s.Packets.Order(packetKey) {
		w.appendPacket(s, s.Packets.At(k))
	}
	return c.Append(b)
}

// appendToken appends a token of a shard: that of a lease or the number of an order.
func (w *walker) appendToken(shard int, n uint64) {
	if w.UseLease {
		w.canon.Token(shard, n)
	} else {
		w.canon.Order(shard, n)
	}
}

func (w *walker) appendRun(s *state, r *run, shard int) {
	w.canon.Flags(r.running, r.stopping, r.waits, r.granted == s.leases[shard].token)
	if r.running {
		w.appendToken(shard, r.token)
	}
}

func (w *walker) appendPacket(s *state, l *packet) {
	c, b := &w.canon, &l.Body
	c.Uint(uint64(l.From))
	c.Uint(uint64(l.To))
	c.Flags(l.Late)
	c.Uint(uint64(b.kind))
	c.Uint(b.term)
	if b.msg != nil {
		c.Message(b.msg, key(int(l.From)), key(int(l.To)))
		return
	}
	c.Uint(uint64(b.shard))
	newest := s.hosts[l.To].runs[b.shard].attempt
	if b.kind == runEnded {
		newest = s.hosts[l.To].runs[b.shard].number
	}
	c.Flags(newest > b.number)
	w.appendToken(int(b.shard), b.token)
}

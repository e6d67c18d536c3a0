package shards

import (
	"encoding/binary"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// nobody runs or coordinates anything.
const nobody = walktest.Nobody

// coordination is a run of the coordinator.
type coordination struct {
	m    *coordinator.Machine // nil: none
	at   int8
	term uint64
}

// state is everything.
type state struct {
	walktest.Runs[*message.Message] // the messages are never changed
	// hosts are shared between states: copy a host before a change.
	hosts [walktest.MaxMembers]*host.Machine
	// coordinators are the coordinator, and the previous one, which does not know of it yet.
	coordinators [2]coordination
	term         uint64 // the largest
	// tokens are the largest of the runs so far, owners whose.
	tokens [walktest.MaxShards]uint64
	owners [walktest.MaxShards]int8
	// wishes are where the allocation wants shards; nobody: where it would have them by itself.
	wishes [walktest.MaxShards]int8
}

type (
	body   = walktest.Body[*message.Message]
	packet = walktest.Packet[body]
)

// said is the body of what members say to each other.
func said(kind walktest.BodyKind, term uint64, msg message.Message) body {
	b := body{Kind: kind, Term: term, Msg: &msg}
	b.Key = string(written(&b))
	return b
}

// written writes a body so that larger numbers come later, whatever their distance.
func written(b *body) []byte {
	k := b.AppendNumbers(nil)
	put := func(n ...uint64) {
		for _, n := range n {
			k = binary.BigEndian.AppendUint64(k, n)
		}
	}
	m := b.Msg
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
	return k
}

func packetKey(b []byte, l *packet) []byte {
	if l.Body.Own() {
		return l.Body.AppendNumbers(b)
	}
	return append(b, l.Body.Key...)
}

// Key tells packets apart.
func (*walker) Key(*state) walktest.PacketKey[body] { return packetKey }

func name(i int) sbr.ID { return walktest.Name(i) }

func key(i int) message.Key { return keys[i] }

var keys = [walktest.MaxMembers]message.Key{message.KeyOf(walktest.Name(0)), message.KeyOf(walktest.Name(1)),
	message.KeyOf(walktest.Name(2)), message.KeyOf(walktest.Name(3))}

// host returns the machine of a member, to be changed.
func (s *state) host(i int) *host.Machine {
	s.hosts[i] = s.hosts[i].Clone()
	return s.hosts[i]
}

// coordinator returns the machine of a coordinator, to be changed.
func (w *walker) coordinator(s *state, k int) *coordinator.Machine {
	w.alloc.wishes = s.wishes
	s.coordinators[k].m = s.coordinators[k].m.Clone()
	return s.coordinators[k].m
}

// AppendKey appends what distinguishes the state from others.
func (w *walker) AppendKey(b []byte, s *state) []byte {
	trust := time.Duration(0)
	if !w.UseLease {
		trust = w.Trust
	}
	b = s.Cluster.AppendKey(b, trust, max(w.Margin, w.Trust, w.Patience))
	c := &w.Canon
	c.Reset()
	for i := range w.Members {
		if s.Members[i].Up {
			s.hosts[i].AppendState(c)
			for n := range w.Shards {
				w.appendRun(s, i, n)
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
		c.Uint(uint64(s.Leases[n].Holder + 1))
		c.Uint(uint64(s.owners[n] + 1))
		c.Uint(uint64(s.wishes[n] + 1))
		w.appendToken(n, s.Leases[n].Token)
		w.appendToken(n, s.tokens[n])
	}
	c.Uint(s.term)
	for _, k := range s.Packets.Order(packetKey) {
		w.appendPacket(s, s.Packets.At(k))
	}
	return c.Append(b)
}

// appendToken appends a token of a shard: that of a lease or the number of an order.
func (w *walker) appendToken(shard int, n uint64) {
	if w.UseLease {
		w.Canon.Token(shard, n)
	} else {
		w.Canon.Order(shard, n)
	}
}

func (w *walker) appendRun(s *state, i, shard int) {
	r := &s.Runs.Runs[i][shard]
	w.Canon.Flags(r.Running, r.Stopping, r.Waits, r.Granted == s.Leases[shard].Token)
	if r.Running {
		w.appendToken(shard, r.Token)
	}
}

func (w *walker) appendPacket(s *state, l *packet) {
	c, b := &w.Canon, &l.Body
	c.Uint(uint64(l.From))
	c.Uint(uint64(l.To))
	c.Flags(l.Late)
	c.Uint(uint64(b.Kind))
	c.Uint(b.Term)
	if b.Msg != nil {
		c.Message(b.Msg, key(int(l.From)), key(int(l.To)))
		return
	}
	c.Uint(uint64(b.Shard))
	c.Flags(s.Newest(l) > b.Number)
	w.appendToken(int(b.Shard), b.Token)
}

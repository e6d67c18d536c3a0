package walktest

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// Way is how a packet gets to a member.
type Way uint8

// The ways.
const (
	// Between: from member to member; it may come late, twice or never.
	Between Way = iota
	// Within: something that a member hears from itself.
	Within
	// Ending: the end of a run, which may take its time.
	Ending
)

// Packet is something that is under way to a member.
type Packet[B any] struct {
	Way      Way
	From, To int8
	Late     bool
	Body     B
}

// Packets are packets under way. It is a value: what it shares with copies is never changed in place.
type Packets[B any] struct{ packets []Packet[B] }

// PacketKey tells bodies of packets apart. See Packets.AppendKey.
type PacketKey[B any] func(b []byte, l *Packet[B]) []byte

// Send adds a packet. It panics at more than a Move can tell apart: what a model lets pile up has no end.
func (m *Packets[B]) Send(l Packet[B]) {
	if len(m.packets) > math.MaxUint8 {
		panic("walk: packets pile up")
	}
	m.packets = append(slices.Clip(m.packets), l)
}

// Len is how many packets there are; At returns one.
func (m *Packets[B]) Len() int { return len(m.packets) }

// At returns a packet.
func (m *Packets[B]) At(k int) *Packet[B] { return &m.packets[k] }

// Drop takes packets away.
func (m *Packets[B]) Drop(which func(l *Packet[B]) bool) {
	m.packets = slices.DeleteFunc(slices.Clone(m.packets), func(l Packet[B]) bool { return which(&l) })
}

// Split drops what was under way between the sides, but for what is late.
func (m *Packets[B]) Split(side Set) {
	m.Drop(func(l *Packet[B]) bool { return !l.Late && side.Has(int(l.From)) != side.Has(int(l.To)) })
}

// End drops what was under way to a member that is away.
func (m *Packets[B]) End(i int) { m.Drop(func(l *Packet[B]) bool { return int(l.To) == i }) }

// AppendKey appends the packets in an order of their own. key tells their bodies apart.
func (m *Packets[B]) AppendKey(b []byte, key PacketKey[B]) []byte {
	keys := m.keys(key)
	slices.SortFunc(keys, bytes.Compare)
	for _, k := range keys {
		b = append(append(b, byte(len(k))), k...)
	}
	return b
}

func (m *Packets[B]) keys(key PacketKey[B]) [][]byte {
	keys := make([][]byte, len(m.packets))
	for k := range m.packets {
		l := &m.packets[k]
		head := append(make([]byte, 0, 32), byte(l.Way), byte(l.From), byte(l.To), 0)
		if l.Late {
			head[3] = 1
		}
		keys[k] = key(head, l)
	}
	return keys
}

// Sorted returns the packets' numbers in an order of their own, equal ones once.
func (m *Packets[B]) Sorted(key PacketKey[B]) []int {
	keys := m.keys(key)
	return slices.CompactFunc(inOrder(keys), func(x, y int) bool { return bytes.Equal(keys[x], keys[y]) })
}

// Order returns the packets' numbers in an order of their own.
func (m *Packets[B]) Order(key PacketKey[B]) []int { return inOrder(m.keys(key)) }

func inOrder(keys [][]byte) []int {
	order := make([]int, len(keys))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(bytes.Compare(keys[x], keys[y]), cmp.Compare(x, y))
	})
	return order
}

// Moves are what can happen to the packets of that order. A packet is called late only when nothing else
// keeps the clock from moving: until then it may come at any moment anyhow. prompt is how many keep it from
// moving.
func (m *Packets[B]) Moves(to []Move, c *Cluster, order []int) (moves []Move, prompt int) {
	for k := range m.packets {
		if l := &m.packets[k]; !l.Late && c.Live(int(l.To)) {
			prompt++
		}
	}
	g := &c.Budget
	for _, k := range order {
		l, at := &m.packets[k], uint8(k)
		if !c.Live(int(l.To)) {
			continue
		}
		to = append(to, Move{Kind: Delivers, At: at})
		between := l.Way == Between && !l.Late
		if between && g.Twice > 0 {
			to = append(to, Move{Kind: Copies, At: at})
		}
		if between && g.Lost > 0 {
			to = append(to, Move{Kind: Drops, At: at})
		}
		if !l.Late && prompt <= int(g.Late+g.Slow) && (between && g.Late > 0 || l.Way == Ending && g.Slow > 0) {
			to = append(to, Move{Kind: Delays, At: at})
		}
	}
	return to, prompt
}

// Do lets a move of a packet happen, and returns the packet if it is delivered.
func (m *Packets[B]) Do(mv Move, c *Cluster) (l Packet[B], delivered bool) {
	k := int(mv.At)
	l = m.packets[k]
	m.packets = slices.Clone(m.packets)
	switch mv.Kind {
	case Copies:
		c.Budget.Twice--
		m.packets[k].Late = true
		return l, true
	case Delays:
		if l.Way == Ending {
			c.Budget.Slow--
		} else {
			c.Budget.Late--
		}
		m.packets[k].Late = true
		return l, false
	case Drops:
		c.Budget.Lost--
	}
	m.packets = slices.Delete(m.packets, k, k+1)
	return l, mv.Kind == Delivers
}

// Describe says what happens to a packet; text says what is in it.
func (l *Packet[B]) Describe(mv Move, text string) string {
	text = string(Name(int(l.To))) + ": " + text
	if l.Late {
		text += " (late)"
	}
	switch mv.Kind {
	case Copies:
		return "to " + text + "; it will come AGAIN"
	case Delays:
		return "LATE from now on: to " + text
	case Drops:
		return "LOST: to " + text
	default:
		return "to " + text
	}
}

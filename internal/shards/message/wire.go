package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// ErrInvalid is wrapped by the errors of Decode.
var ErrInvalid = errors.New("sharding: not a valid message")

// Append appends the encoding of a message. Lists have to be in order, and no longer than Fit says.
func Append(b []byte, m *Message) []byte {
	c := coder{b: b}
	c.message(m)
	return c.b
}

// Decode reads what Append has written. It returns an error that wraps ErrInvalid for anything else, and never panics.
func Decode(b []byte) (m Message, err error) {
	if len(b) > MaxSize {
		return Message{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrInvalid, len(b), MaxSize)
	}
	c := coder{b: b, reads: true}
	c.message(&m)
	switch {
	case c.bad == "" && len(c.b) > 0:
		c.bad = "too long"
	case c.bad == "" && !bytes.Equal(Append(make([]byte, 0, len(b)), &m), b):
		c.bad = "not as it would be written"
	}
	if c.bad != "" {
		return Message{}, fmt.Errorf("%w: %s", ErrInvalid, c.bad)
	}
	return m, nil
}

// Fit returns how many items of the message's list, from its beginning, one message can carry.
func Fit(m *Message) int {
	items := len(m.Orders) + len(m.Owners) + len(m.Entries) + len(m.Takes) + len(m.Handed)
	return sort.Search(min(items, MaxSize), func(n int) bool {
		part := *m
		part.Orders, part.Owners, part.Entries = begin(m.Orders, n+1), begin(m.Owners, n+1), begin(m.Entries, n+1)
		part.Takes, part.Handed = begin(m.Takes, n+1), begin(m.Handed, n+1)
		return len(Append(nil, &part)) > MaxSize
	})
}

func begin[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// coder writes a message, or reads one: what is on the wire is said once. It changes nothing of what it writes. bad is the first thing that was wrong with what it reads.
type coder struct {
	b     []byte
	reads bool
	bad   string
}

func (c *coder) fail(why string) {
	if c.bad == "" {
		c.bad = why
	}
	c.b = nil
}

// number codes a number; a larger one than limit is not read.
func number[T ~int | ~uint8 | ~uint64](c *coder, v *T, limit uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, uint64(*v))
		return
	}
	n, size := binary.Uvarint(c.b)
	switch {
	case size <= 0:
		c.fail("cut off")
	case n > limit:
		c.fail("a number is too large")
	default:
		c.b, *v = c.b[size:], T(n)
	}
}

// small codes a byte.
func small[T ~uint8](c *coder, v *T, limit T) {
	switch {
	case !c.reads:
		c.b = append(c.b, byte(*v))
	case len(c.b) == 0 || T(c.b[0]) > limit:
		c.fail("cut off, or an unknown value")
	default:
		*v, c.b = T(c.b[0]), c.b[1:]
	}
}

// flags codes flags in one byte, the first in its lowest bit.
func (c *coder) flags(all ...*bool) {
	var bits byte
	for i, f := range all {
		if *f {
			bits |= 1 << i
		}
	}
	small(c, &bits, 1<<len(all)-1)
	for i, f := range all {
		if c.reads {
			*f = bits&(1<<i) != 0
		}
	}
}

// fixed codes eight bytes.
func fixed[T ~uint64](c *coder, v *T) {
	switch {
	case !c.reads:
		c.b = binary.BigEndian.AppendUint64(c.b, uint64(*v))
	case len(c.b) < 8:
		c.fail("cut off")
	default:
		*v, c.b = T(binary.BigEndian.Uint64(c.b)), c.b[8:]
	}
}

// after codes a number by its distance from an earlier one.
func (c *coder) after(prev uint64, v *uint64) {
	if !c.reads {
		c.b = binary.AppendVarint(c.b, int64(*v-prev))
		return
	}
	d, size := binary.Varint(c.b)
	switch n := prev + uint64(d); {
	case size <= 0:
		c.fail("cut off")
	case n > math.MaxInt64:
		c.fail("a number is too large")
	default:
		c.b, *v = c.b[size:], n
	}
}

// shard codes a shard that follows prev.
func (c *coder) shard(prev int, s *int) {
	d := *s - prev - 1
	number(c, &d, MaxShards)
	if !c.reads {
		return
	}
	if *s = prev + 1 + d; *s >= MaxShards {
		c.fail("a shard is out of range")
	}
}

// list codes the length of a list and each of its items, which is given the one before. Every item has one byte at least.
func list[T any](c *coder, l *[]T, before T, item func(prev T, x *T)) {
	n := len(*l)
	number(c, &n, uint64(len(c.b)))
	if c.reads && n > 0 && c.bad == "" {
		*l = make([]T, n)
	}
	for i := range *l {
		item(before, &(*l)[i])
		before = (*l)[i]
	}
}

// table codes the members that a list names, sorted.
func (c *coder) table(named []Key) []Key {
	slices.Sort(named)
	named = slices.DeleteFunc(slices.Compact(named), func(k Key) bool { return k == Nobody })
	n := len(named)
	number(c, &n, MaxSize/8)
	if c.reads {
		named = make([]Key, n)
	}
	for i := range named {
		fixed(c, &named[i])
	}
	return named
}

// key codes a member by its place in the table, from 1; 0 is nobody's.
func (c *coder) key(table []Key, k *Key) {
	at := 0
	if i, ok := slices.BinarySearch(table, *k); ok && !c.reads {
		at = i + 1
	}
	number(c, &at, uint64(len(table)))
	if c.reads && at > 0 {
		*k = table[at-1]
	}
}

func (c *coder) message(m *Message) {
	small(c, &m.Kind, Resigned)
	fixed(c, &m.Digest)
	number(c, &m.Term, MaxTerm)
	number(c, &m.Number, math.MaxInt64)
	switch m.Kind {
	case Report:
		c.ofTerm(m)
		number(c, &m.First, MaxShards)
	case Orders:
		c.ofTerm(m)
		c.orders(m)
	case Places:
		c.ofTerm(m)
		c.places(m)
	case State:
		c.state(m)
	case Noted, Resigned:
		number(c, &m.Seq, math.MaxInt64)
	case HandOver:
		list(c, &m.Takes, Take{Shard: -1}, c.take)
	case HandedOver:
		list(c, &m.Handed, Handed{Shard: -1}, c.handed)
	default:
		if c.reads {
			c.fail("unknown kind")
		}
	}
}

func (c *coder) ofTerm(m *Message) {
	if c.reads && TermOf(m.Number) != m.Term {
		c.fail("the number is not of the term")
	}
}

func (c *coder) orders(m *Message) {
	var named []Key
	for _, o := range m.Orders {
		named = append(named, o.From, o.To)
	}
	table := c.table(named)
	list(c, &m.Orders, Order{Shard: -1}, func(prev Order, o *Order) {
		c.shard(prev.Shard, &o.Shard)
		c.key(table, &o.From)
		c.key(table, &o.To)
		n := o.Number & MaxCounter
		number(c, &n, MaxCounter)
		if c.reads {
			o.Number = Number(m.Term, n)
		}
	})
}

func (c *coder) places(m *Message) {
	number(c, &m.First, MaxShards)
	table := c.table(slices.Clone(m.Owners))
	list(c, &m.Owners, Nobody, func(_ Key, k *Key) { c.key(table, k) })
	if c.reads && m.First+len(m.Owners) > MaxShards {
		c.fail("a shard is out of range")
	}
}

func (c *coder) state(m *Message) {
	c.flags(&m.Full, &m.Leaving, &m.Busy, &m.Refused)
	number(c, &m.Seq, math.MaxInt64)
	number(c, &m.First, MaxShards)
	number(c, &m.Next, MaxShards)
	millis := uint64((max(m.Wait, 0) + time.Millisecond - 1) / time.Millisecond)
	number(c, &millis, math.MaxInt64/uint64(time.Millisecond))
	if c.reads {
		m.Wait = time.Duration(millis) * time.Millisecond
	}
	if c.reads && m.First > m.Next {
		c.fail("a range that ends before it begins")
	}
	list(c, &m.Entries, Entry{Shard: -1}, func(prev Entry, e *Entry) {
		c.shard(prev.Shard, &e.Shard)
		small(c, &e.Phase, slot.Stopping)
		c.after(prev.Number, &e.Number)
		later := e.Seen - e.Number
		number(c, &later, math.MaxInt64-e.Number)
		number(c, &e.Token, math.MaxInt64)
		if !c.reads {
			return
		}
		e.Seen = e.Number + later
		if (e.Phase == slot.Idle) != (e.Number == 0) || m.Full && (e.Shard < m.First || e.Shard >= m.Next) {
			c.fail("an entry makes no sense")
		}
	})
}

func (c *coder) take(prev Take, t *Take) {
	c.shard(prev.Shard, &t.Shard)
	c.after(prev.Number, &t.Number)
}

func (c *coder) handed(prev Handed, h *Handed) {
	c.shard(prev.Shard, &h.Shard)
	c.after(prev.Number, &h.Number)
	c.flags(&h.Refused)
	number(c, &h.Token, math.MaxInt64)
	n := len(h.State)
	number(c, &n, MaxState)
	switch {
	case !c.reads:
		c.b = append(c.b, h.State...)
	case n > len(c.b):
		c.fail("cut off")
	case n > 0:
		h.State, c.b = bytes.Clone(c.b[:n]), c.b[n:]
	}
}

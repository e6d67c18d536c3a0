package message

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/codec"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// ErrInvalid is wrapped by the errors of Decode.
var ErrInvalid = errors.New("sharding: not a valid message")

// Append appends the encoding of a message. Lists have to be in order, and no longer than Fit says.
func Append(b []byte, m *Message) []byte { return codec.Append(b, m.code) }

// Decode reads what Append has written. It returns an error that wraps ErrInvalid for anything else, and
// never panics.
func Decode(b []byte) (m Message, err error) {
	if len(b) > MaxSize {
		return Message{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrInvalid, len(b), MaxSize)
	}
	if err := codec.Read(b, m.code); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return m, nil
}

// Fit returns how many items of the message's list, from its beginning, one message can carry.
func Fit(m *Message) int {
	items := len(m.Orders) + len(m.Entries) + len(m.Takes) + len(m.Handed)
	return sort.Search(min(items, MaxSize), func(n int) bool {
		part := *m
		part.Orders, part.Entries = begin(m.Orders, n+1), begin(m.Entries, n+1)
		part.Takes, part.Handed = begin(m.Takes, n+1), begin(m.Handed, n+1)
		return len(Append(nil, &part)) > MaxSize
	})
}

func begin[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// table codes the members that a list names, sorted.
func table(c *codec.Coder, named []Key) []Key {
	slices.Sort(named)
	named = slices.DeleteFunc(slices.Compact(named), func(k Key) bool { return k == Nobody })
	n := len(named)
	codec.Number(c, &n, MaxSize/8)
	if c.Reads() {
		named = make([]Key, n)
	}
	for i := range named {
		codec.Uint64(c, &named[i])
	}
	return named
}

// key codes a member by its place in the table, from 1; 0 is nobody's.
func key(c *codec.Coder, table []Key, k *Key) {
	at := 0
	if i, ok := slices.BinarySearch(table, *k); ok && !c.Reads() {
		at = i + 1
	}
	codec.Number(c, &at, uint64(len(table)))
	if c.Reads() && at > 0 {
		*k = table[at-1]
	}
}

func (m *Message) code(c *codec.Coder) {
	codec.Small(c, &m.Kind, Report, Resigned)
	codec.Uint64(c, &m.Digest)
	codec.Number(c, &m.Term, MaxTerm)
	codec.Number(c, &m.Number, math.MaxInt64)
	if m.Kind <= Orders {
		c.Check(TermOf(m.Number) == m.Term, "the number is not of the term")
	}
	switch m.Kind {
	case Report:
		codec.Number(c, &m.First, MaxShards)
	case Orders:
		m.orders(c)
	case State:
		m.state(c)
	case Noted, Resigned:
		codec.Number(c, &m.Seq, math.MaxInt64)
	case HandOver:
		codec.List(c, &m.Takes, Take{Shard: -1}, func(prev Take, t *Take) {
			c.Index(prev.Shard, &t.Shard, MaxShards)
			c.After(prev.Number, &t.Number)
		})
	case HandedOver:
		codec.List(c, &m.Handed, Handed{Shard: -1}, func(prev Handed, h *Handed) {
			c.Index(prev.Shard, &h.Shard, MaxShards)
			c.After(prev.Number, &h.Number)
			c.Flags(&h.Refused)
			codec.Number(c, &h.Token, math.MaxInt64)
			n := len(h.State)
			codec.Number(c, &n, MaxState)
			codec.Bytes(c, &h.State, n)
		})
	}
}

func (m *Message) orders(c *codec.Coder) {
	var named []Key
	for _, o := range m.Orders {
		named = append(named, o.From, o.To)
	}
	table := table(c, named)
	codec.List(c, &m.Orders, Order{Shard: -1}, func(prev Order, o *Order) {
		c.Index(prev.Shard, &o.Shard, MaxShards)
		key(c, table, &o.From)
		key(c, table, &o.To)
		n := o.Number & MaxCounter
		codec.Number(c, &n, MaxCounter)
		if c.Reads() {
			o.Number = Number(m.Term, n)
		}
	})
}

func (m *Message) state(c *codec.Coder) {
	c.Flags(&m.Full, &m.Leaving, &m.Busy, &m.Refused)
	codec.Number(c, &m.Seq, math.MaxInt64)
	codec.Number(c, &m.First, MaxShards)
	codec.Number(c, &m.Next, MaxShards)
	millis := uint64((max(m.Wait, 0) + time.Millisecond - 1) / time.Millisecond)
	codec.Number(c, &millis, math.MaxInt64/uint64(time.Millisecond))
	if c.Reads() {
		m.Wait = time.Duration(millis) * time.Millisecond
	}
	c.Check(m.First <= m.Next, "a range that ends before it begins")
	codec.List(c, &m.Entries, Entry{Shard: -1}, func(prev Entry, e *Entry) {
		c.Index(prev.Shard, &e.Shard, MaxShards)
		codec.Small(c, &e.Phase, slot.Idle, slot.Stopping)
		c.After(prev.Number, &e.Number)
		later := e.Seen - e.Number
		codec.Number(c, &later, math.MaxInt64-e.Number)
		codec.Number(c, &e.Token, math.MaxInt64)
		if c.Reads() {
			e.Seen = e.Number + later
		}
		c.Check((e.Phase == slot.Idle) == (e.Number == 0), "an entry makes no sense")
		c.Check(!m.Full || e.Shard >= m.First && e.Shard < m.Next, "an entry makes no sense")
	})
}

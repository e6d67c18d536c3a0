package message

import (
	"bytes"
	"math"
	"time"
)

func (r *reader) message() (m Message) {
	m.Kind = Kind(r.byte(byte(Resigned)))
	if m.Kind == 0 {
		r.fail("unknown kind")
	}
	m.Digest = r.fixed()
	m.Term = r.uint(MaxTerm)
	m.Number = r.uint(math.MaxInt64)
	switch m.Kind {
	case Report, Orders, Places:
		if TermOf(m.Number) != m.Term {
			r.fail("the number is not of the term")
		}
	}
	r.body(&m)
	if len(r.b) > 0 {
		r.fail("too long")
	}
	return m
}

func (r *reader) body(m *Message) {
	switch m.Kind {
	case Report:
		m.First = int(r.uint(MaxShards))
	case Orders:
		r.orders(m)
	case Places:
		r.places(m)
	case State:
		r.state(m)
	case Noted, Resigned:
		m.Seq = r.uint(math.MaxInt64)
	case HandOver:
		r.takes(m)
	case HandedOver:
		r.handed(m)
	}
}

func (r *reader) table() []Key {
	n := int(r.uint(MaxSize / 8))
	table := make([]Key, 0, n)
	for range n {
		table = append(table, Key(r.fixed()))
	}
	return table
}

func (r *reader) key(table []Key) Key {
	if i := r.uint(uint64(len(table))); i > 0 {
		return table[i-1]
	}
	return Nobody
}

func (r *reader) orders(m *Message) {
	table := r.table()
	prev := -1
	for range r.list() {
		o := Order{Shard: r.shard(prev), From: r.key(table), To: r.key(table)}
		o.Number = Number(m.Term, r.uint(MaxCounter))
		m.Orders = append(m.Orders, o)
		prev = o.Shard
	}
}

func (r *reader) places(m *Message) {
	m.First = int(r.uint(MaxShards))
	table := r.table()
	n := r.list()
	if m.First+n > MaxShards {
		r.fail("a shard is out of range")
		return
	}
	for range n {
		m.Owners = append(m.Owners, r.key(table))
	}
}

func (r *reader) state(m *Message) {
	f := r.byte(flagFull | flagLeaving | flagBusy | flagRefused)
	m.Full, m.Leaving, m.Busy, m.Refused = f&flagFull != 0, f&flagLeaving != 0, f&flagBusy != 0, f&flagRefused != 0
	m.Seq = r.uint(math.MaxInt64)
	m.First, m.Next = int(r.uint(MaxShards)), int(r.uint(MaxShards))
	m.Wait = time.Duration(r.uint(math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
	if m.First > m.Next {
		r.fail("a range that ends before it begins")
	}
	prev := Entry{Shard: -1}
	for range r.list() {
		e := Entry{Shard: r.shard(prev.Shard), Phase: Phase(r.byte(byte(Stopping))), Number: r.after(prev.Number)}
		e.Seen = e.Number + r.uint(math.MaxInt64-e.Number)
		e.Token = r.uint(math.MaxInt64)
		if (e.Phase == Idle) != (e.Number == 0) || m.Full && (e.Shard < m.First || e.Shard >= m.Next) {
			r.fail("an entry makes no sense")
		}
		m.Entries = append(m.Entries, e)
		prev = e
	}
}

func (r *reader) takes(m *Message) {
	prev := Take{Shard: -1}
	for range r.list() {
		t := Take{Shard: r.shard(prev.Shard), Number: r.after(prev.Number)}
		m.Takes = append(m.Takes, t)
		prev = t
	}
}

func (r *reader) handed(m *Message) {
	prev := Take{Shard: -1}
	for range r.list() {
		h := Handed{Shard: r.shard(prev.Shard), Number: r.after(prev.Number), Refused: r.byte(1) == 1, Token: r.uint(math.MaxInt64)}
		if n := int(r.uint(MaxState)); n > len(r.b) {
			r.fail("cut off")
		} else if n > 0 {
			h.State, r.b = bytes.Clone(r.b[:n]), r.b[n:]
		}
		m.Handed = append(m.Handed, h)
		prev = Take{h.Shard, h.Number}
	}
}

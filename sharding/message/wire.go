package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// ErrInvalid is wrapped by the errors of Decode.
var ErrInvalid = errors.New("sharding: not a valid message")

const (
	flagFull = 1 << iota
	flagLeaving
	flagBusy
	flagRefused
)

// Append appends the encoding of a message. Lists have to be in order, and no longer than Fit says.
func Append(b []byte, m *Message) []byte {
	b = appendHead(b, m)
	switch m.Kind {
	case Orders:
		table := ordered(m.Orders)
		b = appendTable(b, table)
		b = binary.AppendUvarint(b, uint64(len(m.Orders)))
		prev := -1
		for _, o := range m.Orders {
			b = appendOrder(b, prev, o, table)
			prev = o.Shard
		}
	case Places:
		table := keys(m.Owners)
		b = appendTable(b, table)
		b = binary.AppendUvarint(b, uint64(len(m.Owners)))
		for _, k := range m.Owners {
			b = binary.AppendUvarint(b, place(table, k))
		}
	case State:
		b = binary.AppendUvarint(b, uint64(len(m.Entries)))
		prev := Entry{Shard: -1}
		for _, e := range m.Entries {
			b = appendEntry(b, prev, e)
			prev = e
		}
	case HandOver:
		b = binary.AppendUvarint(b, uint64(len(m.Takes)))
		prev := Take{Shard: -1}
		for _, t := range m.Takes {
			b = appendTake(b, prev, t)
			prev = t
		}
	case HandedOver:
		b = binary.AppendUvarint(b, uint64(len(m.Handed)))
		prev := Take{Shard: -1}
		for _, h := range m.Handed {
			b = appendHanded(b, prev, h)
			prev = Take{h.Shard, h.Number}
		}
	}
	return b
}

func appendHead(b []byte, m *Message) []byte {
	b = append(b, byte(m.Kind))
	b = binary.BigEndian.AppendUint64(b, m.Digest)
	b = binary.AppendUvarint(b, m.Term)
	b = binary.AppendUvarint(b, m.Number)
	switch m.Kind {
	case Report, Places:
		b = binary.AppendUvarint(b, uint64(m.First))
	case State:
		b = append(b, flags(m))
		b = binary.AppendUvarint(b, m.Seq)
		b = binary.AppendUvarint(b, uint64(m.First))
		b = binary.AppendUvarint(b, uint64(m.Next))
		b = binary.AppendUvarint(b, millis(m.Wait))
	case Noted, Resigned:
		b = binary.AppendUvarint(b, m.Seq)
	}
	return b
}

func flags(m *Message) (f byte) {
	for _, x := range []struct {
		set bool
		bit byte
	}{{m.Full, flagFull}, {m.Leaving, flagLeaving}, {m.Busy, flagBusy}, {m.Refused, flagRefused}} {
		if x.set {
			f |= x.bit
		}
	}
	return f
}

func millis(d time.Duration) uint64 {
	return uint64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

func appendOrder(b []byte, prev int, o Order, table []Key) []byte {
	b = binary.AppendUvarint(b, uint64(o.Shard-prev-1))
	b = binary.AppendUvarint(b, place(table, o.From))
	b = binary.AppendUvarint(b, place(table, o.To))
	return binary.AppendUvarint(b, o.Number&MaxCounter)
}

func appendEntry(b []byte, prev, e Entry) []byte {
	b = binary.AppendUvarint(b, uint64(e.Shard-prev.Shard-1))
	b = append(b, byte(e.Phase))
	b = binary.AppendVarint(b, int64(e.Number-prev.Number))
	b = binary.AppendUvarint(b, e.Seen-e.Number)
	return binary.AppendUvarint(b, e.Token)
}

func appendTake(b []byte, prev, t Take) []byte {
	b = binary.AppendUvarint(b, uint64(t.Shard-prev.Shard-1))
	return binary.AppendVarint(b, int64(t.Number-prev.Number))
}

func appendHanded(b []byte, prev Take, h Handed) []byte {
	b = appendTake(b, prev, Take{h.Shard, h.Number})
	if h.Refused {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, h.Token)
	b = binary.AppendUvarint(b, uint64(len(h.State)))
	return append(b, h.State...)
}

func appendTable(b []byte, table []Key) []byte {
	b = binary.AppendUvarint(b, uint64(len(table)))
	for _, k := range table {
		b = binary.BigEndian.AppendUint64(b, uint64(k))
	}
	return b
}

// place is a key's place in the table, from 1; 0 is nobody's.
func place(table []Key, k Key) uint64 {
	if i, ok := slices.BinarySearch(table, k); ok {
		return uint64(i) + 1
	}
	return 0
}

func ordered(orders []Order) []Key {
	list := make([]Key, 0, 2*len(orders))
	for _, o := range orders {
		list = append(list, o.From, o.To)
	}
	return keys(list)
}

// keys returns the members among the keys, sorted.
func keys(list []Key) []Key {
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(k Key) bool { return k == Nobody })
}

// Fit returns how many items of the message's list, from its beginning, one message can carry.
func Fit(m *Message) int {
	room := MaxSize - len(appendHead(nil, m)) - 4 // the list's and the table's length
	known := make(map[Key]bool)
	var scratch [64 + MaxState]byte
	b := scratch[:0]
	key := func(list ...Key) (size int) {
		for _, k := range list {
			if k != Nobody && !known[k] {
				known[k] = true
				size += 8
			}
		}
		return size
	}
	size := func(i int) int {
		switch m.Kind {
		case Orders:
			o, prev := m.Orders[i], -1
			if i > 0 {
				prev = m.Orders[i-1].Shard
			}
			return key(o.From, o.To) + len(appendOrder(b, prev, o, nil))
		case Places:
			return key(m.Owners[i]) + 1
		case State:
			prev := Entry{Shard: -1}
			if i > 0 {
				prev = m.Entries[i-1]
			}
			return len(appendEntry(b, prev, m.Entries[i]))
		case HandOver:
			prev := Take{Shard: -1}
			if i > 0 {
				prev = m.Takes[i-1]
			}
			return len(appendTake(b, prev, m.Takes[i]))
		default:
			prev := Take{Shard: -1}
			if i > 0 {
				prev = Take{m.Handed[i-1].Shard, m.Handed[i-1].Number}
			}
			return len(appendHanded(b, prev, m.Handed[i]))
		}
	}
	for i := range m.items() {
		if room -= size(i); room < 0 {
			return i
		}
	}
	return m.items()
}

func (m *Message) items() int {
	return len(m.Orders) + len(m.Owners) + len(m.Entries) + len(m.Takes) + len(m.Handed)
}

// Decode reads what Append has written. It returns an error that wraps ErrInvalid for anything else, and never panics.
func Decode(b []byte) (Message, error) {
	if len(b) > MaxSize {
		return Message{}, fmt.Errorf("%w: %d bytes, the limit is %d", ErrInvalid, len(b), MaxSize)
	}
	r := reader{b: b}
	m := r.message()
	switch {
	case r.bad != "":
		return Message{}, fmt.Errorf("%w: %s", ErrInvalid, r.bad)
	case !bytes.Equal(Append(make([]byte, 0, len(b)), &m), b):
		return Message{}, fmt.Errorf("%w: not as it would be written", ErrInvalid)
	}
	return m, nil
}

// reader reads fields; bad is the first thing that was wrong.
type reader struct {
	b   []byte
	bad string
}

func (r *reader) fail(why string) {
	if r.bad == "" {
		r.bad = why
	}
	r.b = nil
}

func (r *reader) uint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("cut off")
		return 0
	}
	if v > limit {
		r.fail("a number is too large")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// after reads the distance from an earlier number.
func (r *reader) after(prev uint64) uint64 {
	d, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("cut off")
		return 0
	}
	r.b = r.b[n:]
	v := prev + uint64(d)
	if v > math.MaxInt64 {
		r.fail("a number is too large")
		return 0
	}
	return v
}

func (r *reader) byte(limit byte) byte {
	if len(r.b) == 0 || r.b[0] > limit {
		r.fail("cut off, or an unknown value")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) fixed() uint64 {
	if len(r.b) < 8 {
		r.fail("cut off")
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// shard reads the shard that follows prev.
func (r *reader) shard(prev int) int {
	s := prev + 1 + int(r.uint(MaxShards))
	if s >= MaxShards {
		r.fail("a shard is out of range")
		return 0
	}
	return s
}

// list reads a list's length. Every item has one byte at least.
func (r *reader) list() int { return int(r.uint(uint64(len(r.b)))) }

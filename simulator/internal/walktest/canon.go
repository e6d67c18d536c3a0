package walktest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// Canon is what a machine writes its state to, for model checkers: states that go on alike are written alike.
// Numbers grow for as long as a cluster lives, and machines only compare them; so only their order is
// written. Times are written as distances. The zero value is ready for use.
type Canon struct {
	// Horizon cuts off what comes later than that: it is all the same. Zero: nothing is cut off.
	Horizon time.Duration
	// Unserved says that managers may be closed: numbers of questions count.
	Unserved bool

	b     []byte
	marks []canonMark
	ranks []canonRank
}

type canonKind uint8

const (
	canonOrder canonKind = iota
	canonToken
	canonSeq
	canonQuestion
)

// canonRank is a number that is compared with those of the same kind and key.
type canonRank struct {
	kind   canonKind
	key    uint64
	number uint64
}

func (r canonRank) compare(o canonRank) int {
	return cmp.Or(cmp.Compare(r.kind, o.kind), cmp.Compare(r.key, o.key), cmp.Compare(r.number, o.number))
}

// canonMark is where a rank has to be written.
type canonMark struct {
	at int
	canonRank
}

// Reset begins anew.
func (c *Canon) Reset() { c.b, c.marks, c.ranks = c.b[:0], c.marks[:0], c.ranks[:0] }

// Flags writes up to eight flags.
func (c *Canon) Flags(all ...bool) {
	var b byte
	for i, set := range all {
		if set {
			b |= 1 << i
		}
	}
	c.b = append(c.b, b)
}

// Uint writes a number as it is.
func (c *Canon) Uint(n uint64) { c.b = binary.AppendUvarint(c.b, n) }

// Text writes a text.
func (c *Canon) Text(s string) { c.b = append(binary.AppendUvarint(c.b, uint64(len(s))), s...) }

// Due writes how long something is ahead. All that is past is the same.
func (c *Canon) Due(at, now time.Duration) {
	d := max(at-now, -1)
	if c.Horizon > 0 {
		d = min(d, c.Horizon)
	}
	c.b = binary.AppendVarint(c.b, int64(d))
}

// Order writes the number of an order on a shard, or of what is compared with these.
func (c *Canon) Order(shard int, n uint64) { c.mark(canonOrder, uint64(shard), n) }

// Token writes a token of a shard's lease.
func (c *Canon) Token(shard int, n uint64) { c.mark(canonToken, uint64(shard), n) }

// Seq writes the number of a State of a member.
func (c *Canon) Seq(of message.Key, n uint64) { c.mark(canonSeq, uint64(of), n) }

// Question writes the number of a question to a member.
func (c *Canon) Question(to message.Key, n uint64) {
	if c.Unserved {
		c.mark(canonQuestion, uint64(to), n)
	}
}

func (c *Canon) mark(kind canonKind, key, n uint64) {
	r := canonRank{kind, key, n}
	c.marks = append(c.marks, canonMark{len(c.b), r})
	c.b = append(c.b, 0, 0, 0, 0, 0, 0, 0, 0)
	if n > 0 {
		c.ranks = append(c.ranks, r)
	}
}

// View writes what a machine knows of its cluster, apart from when it was sure of that.
func (c *Canon) View(v *slot.View) {
	c.Flags(v.Armed)
	c.Uint(v.Verdict)
	for i := range v.Peers {
		p := &v.Peers[i]
		c.Text(string(p.ID))
		c.Flags(p.Candidate, p.Leaving, p.Down, p.Unreachable)
		c.Uint(uint64(p.Born))
	}
}

// Append appends what was written. Of each number it has the term and how many are smaller.
func (c *Canon) Append(b []byte) []byte {
	slices.SortFunc(c.ranks, canonRank.compare)
	c.ranks = slices.Compact(c.ranks)
	for _, m := range c.marks {
		if m.number == 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(c.ranks, m.canonRank, canonRank.compare)
		first, _ := slices.BinarySearchFunc(c.ranks, canonRank{m.kind, m.key, 0}, canonRank.compare)
		rank := uint64(i - first + 1)
		if m.kind == canonOrder || m.kind == canonQuestion {
			rank |= message.TermOf(m.number) << message.CounterBits
		}
		binary.BigEndian.PutUint64(c.b[m.at:], rank)
	}
	return append(b, c.b...)
}

// Message writes a message of one member to another.
func (c *Canon) Message(m *message.Message, from, to message.Key) {
	c.Uint(uint64(m.Kind))
	c.Uint(m.Term)
	c.Flags(m.Full, m.Leaving, m.Refused, m.Busy)
	asked := to
	if m.Kind == message.State {
		asked = from
	}
	c.Question(asked, m.Number)
	switch m.Kind {
	case message.State, message.Resigned:
		c.Seq(from, m.Seq)
	case message.Noted:
		c.Seq(to, m.Seq)
	}
	c.Uint(uint64(m.First))
	c.Uint(uint64(m.Next))
	c.Uint(uint64(m.Wait))
	for _, o := range m.Orders {
		c.Uint(uint64(o.Shard))
		c.Uint(uint64(o.From))
		c.Uint(uint64(o.To))
		c.Order(o.Shard, o.Number)
	}
	for _, e := range m.Entries {
		c.Uint(uint64(e.Shard))
		c.Uint(uint64(e.Phase))
		c.Order(e.Shard, e.Number)
		c.Order(e.Shard, e.Seen)
	}
	for _, t := range m.Takes {
		c.Uint(uint64(t.Shard))
		c.Order(t.Shard, t.Number)
	}
	for _, h := range m.Handed {
		c.Uint(uint64(h.Shard))
		c.Order(h.Shard, h.Number)
		c.Flags(h.Refused)
		c.Token(h.Shard, h.Token)
		c.Text(string(h.State))
	}
}

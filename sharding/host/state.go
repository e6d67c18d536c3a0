package host

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sharding/message"
)

// Clone returns an independent copy, for model checkers that try several continuations of one state.
func (m *Machine) Clone() *Machine {
	c := *m
	c.slots = slices.Clone(m.slots)
	c.held = slices.Clone(m.held)
	c.asks = slices.Clone(m.asks)
	c.duties = slices.Clone(m.duties)
	c.begs = slices.Clone(m.begs)
	c.news = slices.Clone(m.news)
	c.gone = slices.Clone(m.gone)
	c.quit = slices.Clone(m.quit)
	c.out = nil
	return &c
}

// AppendState appends a canonical encoding of everything that decides how the machine will behave, and returns the extended slice. Times are relative to
// the last call. The numbers of runs, attempts, reports and questions are left out; those of orders are not.
func (m *Machine) AppendState(b []byte) []byte {
	due := func(t time.Duration) { b = binary.AppendVarint(b, int64(max(t-m.now, -1))) }
	b = append(b, bits(m.down, m.leaving, m.resigned, m.foreign))
	b = binary.AppendUvarint(b, m.known.Term)
	b = appendText(b, m.known.Coordinator)
	b = binary.AppendUvarint(b, m.floor)
	due(m.patience)
	for s := range m.slots {
		sl := &m.slots[s]
		b = append(b, byte(sl.phase), bits(sl.again, sl.inFlight, sl.leased, sl.toldIn > 0))
		for _, n := range []uint64{sl.seen, sl.number, uint64(sl.from), sl.token, sl.next, uint64(sl.nextFrom)} {
			b = binary.AppendUvarint(b, n)
		}
		b = appendText(b, string(sl.handed))
		b = appendText(b, sl.handedBy)
		b = appendText(b, string(sl.left))
		due(sl.leaseAt)
		due(sl.restAt)
	}
	for _, a := range m.asks {
		b = binary.AppendUvarint(b, uint64(a.of))
		due(a.at)
	}
	b = append(b, '|')
	for _, d := range m.duties {
		for _, o := range d.orders {
			b = binary.AppendUvarint(b, o.Number)
		}
		b = append(b, ';')
	}
	b = append(b, '|')
	for _, g := range m.begs {
		b = appendText(b, g.from)
		for _, t := range g.takes {
			b = binary.AppendUvarint(b, t.Number)
		}
		due(g.at)
	}
	b = append(b, '|')
	for _, s := range m.news {
		b = binary.AppendUvarint(b, uint64(s))
	}
	due(m.newsAt)
	for _, g := range m.gone {
		b = appendText(b, g.id)
		due(g.until)
	}
	b = append(b, '|')
	for _, id := range m.quit {
		b = appendText(b, id)
	}
	return m.view.AppendState(b, m.now)
}

func bits(all ...bool) (b byte) {
	for i, set := range all {
		if set {
			b |= 1 << i
		}
	}
	return b
}

func appendText[T ~string](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ShardStatus is what a member does with one shard, for people.
type ShardStatus struct {
	Shard int
	Phase Phase
	// Number is the order by which it is held, Token the run's; zero while nothing runs.
	Number, Token uint64
	// From is the member that is asked to hand over; Nobody: none.
	From message.Key
	// Since is when the phase began, on the driver's clock.
	Since time.Duration
}

// Status returns the shards that the member has to do with, in order. It shares nothing with the machine.
func (m *Machine) Status() []ShardStatus {
	list := make([]ShardStatus, 0, len(m.held))
	for _, s := range m.held {
		sl := &m.slots[s]
		x := ShardStatus{Shard: s, Phase: sl.phase, Number: sl.number, From: sl.from, Since: sl.since}
		if sl.phase == Active || sl.phase == Stopping {
			x.Token = sl.token
		}
		list = append(list, x)
	}
	return list
}

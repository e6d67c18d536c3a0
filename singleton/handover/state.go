package handover

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Clone returns an independent copy, for model checkers that try several continuations of one state.
func (m *Machine) Clone() *Machine {
	c := *m
	c.answers = slices.Clone(m.answers)
	c.gone = slices.Clone(m.gone)
	c.quitters = slices.Clone(m.quitters)
	c.askers = slices.Clone(m.askers)
	c.waiting = slices.Clone(m.waiting)
	c.kept = slices.Clone(m.kept)
	c.out = nil
	return &c
}

// AppendState appends a canonical encoding of everything that decides how the machine will behave, and returns the extended slice.
// Times are relative to the last call. The numbers of rounds, attempts and questions are left out, and how often a member was asked where that only says when
// something is explained; tokens are not.
func (m *Machine) AppendState(b []byte) []byte {
	b = append(b, byte(m.phase), bits(m.resigned, m.down, m.inFlight, m.held, m.lost, m.bound))
	for _, t := range []time.Duration{m.patience, m.askAt, m.notBefore, m.waitUntil, m.restAt, m.leaseAt} {
		b = binary.AppendVarint(b, int64(max(t-m.now, -1)))
	}
	for _, a := range m.answers {
		b = append(appendText(b, a.id), byte(a.what))
		b = binary.AppendVarint(b, int64(min(a.tries, m.cfg.NumberOfRetries+1)))
	}
	b = append(b, '|')
	for _, g := range m.gone {
		b = binary.AppendVarint(appendText(b, g.id), int64(g.until-m.now))
	}
	b = append(b, '|')
	for _, q := range m.quitters {
		b = append(appendText(b, q.id), bits(q.done))
		if q.late > m.now {
			b = binary.AppendVarint(binary.AppendUvarint(b, m.since(q.id, q.round)), int64(q.late-m.now))
		}
	}
	b = append(b, '|')
	for _, a := range m.askers {
		b = appendText(b, a.id)
	}
	b = append(b, '|')
	for _, w := range m.waiting {
		b = binary.AppendUvarint(appendText(b, w.from), m.since(w.from, w.round))
	}
	b = append(b, '|')
	for _, q := range m.kept {
		if m.now <= q.until {
			b = binary.AppendUvarint(appendText(b, q.From), m.since(q.From, q.Message.Round))
			b = binary.AppendVarint(b, int64(q.until-m.now))
		}
	}
	b = append(b, '|')
	if m.notBefore > m.now {
		b = appendText(b, m.gaveWay)
	}
	b = append(b, '|')
	b = binary.AppendUvarint(b, m.token)
	b = binary.AppendUvarint(b, m.maxToken)
	b = binary.AppendUvarint(b, m.estate.token)
	b = appendText(b, string(m.estate.state))
	b = appendText(b, m.estate.from)
	b = appendText(b, m.lent)
	if !m.cfg.UseLease {
		b = binary.AppendVarint(b, int64(max(m.view.Sure-m.now, -m.cfg.Trust))) // never, or too long ago, is the same
	}
	return m.view.appendState(b)
}

// since returns how many rounds older a question of a member is than its newest one.
func (m *Machine) since(from sbr.ID, round uint64) uint64 {
	for _, a := range m.askers {
		if a.id == from {
			return a.round - round
		}
	}
	return 0
}

func (v *View) appendState(b []byte) []byte {
	b = append(b, bits(v.Armed))
	b = binary.AppendUvarint(b, v.Verdict)
	for i := range v.Peers {
		p := &v.Peers[i]
		b = binary.AppendVarint(append(appendText(b, p.ID), bits(p.Candidate, p.Leaving, p.Down, p.Unreachable)), p.Born)
	}
	return b
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

// Status is what a machine does and waits for, for people.
type Status struct {
	Phase Phase
	// Token is the present run's; zero while nothing runs.
	Token uint64
	// Asked are the members whose consent is missing, in order.
	Asked []sbr.ID
	// Until is when the last margin that is known of is over, on the driver's clock; zero: none is waited for.
	Until time.Duration
	// Resigned: the slot is never run here again.
	Resigned bool
}

// Status returns what the machine does. It shares nothing with the machine.
func (m *Machine) Status() Status {
	s := Status{Phase: m.phase, Token: m.Token(), Resigned: m.over()}
	if m.phase != Taking {
		return s
	}
	for _, a := range m.answers {
		if a.what != Clear {
			s.Asked = append(s.Asked, a.id)
		}
	}
	if d := m.margins(); d > 0 {
		s.Until = m.now + d
	}
	return s
}

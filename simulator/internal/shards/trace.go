package shards

import (
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// tell says what a host wants, while the way to a violation is told.
func (w *walker) tell(i int, e slot.Effect) {
	switch e := e.(type) {
	case slot.Ask[message.Message]:
		w.search.Tell("%s asks %s: %s", name(i), orAll(e.To), describe(&e.Message))
	case slot.Answer[message.Message]:
		w.search.Tell("%s answers %s: %s", name(i), name(int(e.Ref&0xff)), describe(&e.Message))
	case slot.Start:
		w.search.Tell("%s STARTS shard %d, run %d, token %s", name(i), e.Shard, e.Run, number(e.Token))
	case slot.Stop:
		w.search.Tell("%s stops shard %d: %s", name(i), e.Shard, e.Why)
	case slot.AcquireLease:
		w.search.Tell("%s asks for the lease of shard %d", name(i), e.Shard)
	case slot.ReleaseLease:
		w.search.Tell("%s gives the lease of shard %d back", name(i), e.Shard)
	case slot.Explain:
		if e.Topic == host.TopicGivenUp || e.Topic == slot.TopicLease {
			w.search.Tell("%s: %s", name(i), e.Text)
		}
	}
}

// tellCoordinator says what a coordinator wants.
func (w *walker) tellCoordinator(i int, e slot.Effect) {
	switch e := e.(type) {
	case slot.Ask[message.Message]:
		if e.Message.Kind != message.Places {
			w.search.Tell("the coordinator on %s asks %s: %s", name(i), orAll(e.To), describe(&e.Message))
		}
	case slot.GiveUp:
		w.search.Tell("the coordinator on %s resigns: %s", name(i), e.Why)
	case slot.Explain:
		w.search.Tell("the coordinator on %s: shard %d: %s", name(i), e.Shard, e.Text)
	}
}

func orAll(id sbr.ID) sbr.ID {
	if id == "" {
		return "all"
	}
	return id
}

// number writes an order's number, which is also a token where there are no leases.
func number(n uint64) string {
	if t := message.TermOf(n); t > 0 {
		return fmt.Sprintf("%d.%d", t, n&message.MaxCounter)
	}
	return fmt.Sprint(n)
}

// describe writes a message for people.
func describe(m *message.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v under term %d", m.Kind, m.Term)
	if m.Number > 0 {
		fmt.Fprintf(&b, ", number %s", number(m.Number))
	}
	if m.Refused {
		b.WriteString(", refused")
	}
	for _, o := range m.Orders {
		fmt.Fprintf(&b, ", shard %d from %s to %s by %s", o.Shard, nameOf(o.From), nameOf(o.To), number(o.Number))
	}
	for _, e := range m.Entries {
		fmt.Fprintf(&b, ", shard %d %v by %s, seen %s", e.Shard, e.Phase, number(e.Number), number(e.Seen))
	}
	for _, t := range m.Takes {
		fmt.Fprintf(&b, ", shard %d by %s", t.Shard, number(t.Number))
	}
	for _, h := range m.Handed {
		fmt.Fprintf(&b, ", shard %d by %s", h.Shard, number(h.Number))
		if h.Refused {
			b.WriteString(" refused")
		}
	}
	return b.String()
}

func nameOf(k message.Key) string {
	for i := range walk.MaxMembers {
		if key(i) == k {
			return string(name(i))
		}
	}
	return "nobody"
}

// Describe says what a move is, in a line.
func (w *walker) Describe(s *state, mv walk.Move) string {
	i, n := member(mv)
	switch mv.Kind {
	case walk.Delivers, walk.Copies, walk.Delays, walk.Drops:
		l := s.Packets.At(int(mv.At))
		return l.Describe(mv, textOf(l))
	case ends:
		return fmt.Sprintf("the run of shard %d on %s ends by itself", n, name(i))
	case grants:
		return fmt.Sprintf("%s is GRANTED the lease of shard %d", name(i), n)
	case expires:
		return fmt.Sprintf("the lease of shard %d RUNS OUT, which %s holds", n, name(int(s.leases[n].holder)))
	case loses:
		return fmt.Sprintf("the lease of shard %d is LOST, which %s holds", n, name(int(s.leases[n].holder)))
	case doubts:
		return fmt.Sprintf("the store of shard %d gives %s no answer", n, name(i))
	case strangerTakes:
		return fmt.Sprintf("a STRANGER takes the lease of shard %d", n)
	case strangerReleases:
		return fmt.Sprintf("the stranger gives the lease of shard %d back", n)
	case appoints:
		return fmt.Sprintf("%s COORDINATES", name(i))
	case changes:
		return fmt.Sprintf("%s COORDINATES instead of %s, which does not know", name(i), name(int(s.coordinators[0].at)))
	case wants:
		return fmt.Sprintf("shard %d belongs on %s NOW", n, name(i))
	case retires:
		return fmt.Sprintf("%s does not coordinate any more", name(int(s.coordinators[1].at)))
	default:
		return s.Cluster.Describe(mv)
	}
}

// textOf says what is in a packet.
func textOf(l *packet) string {
	b := &l.Body
	switch b.kind {
	case unserved:
		return fmt.Sprintf("%s has no manager: %s", name(int(l.From)), describe(b.msg))
	case leaseAnswer:
		return fmt.Sprintf("the lease of shard %d is granted, token %d", b.shard, b.token)
	case leaseUnknown:
		return fmt.Sprintf("nobody knows about the lease of shard %d", b.shard)
	case leaseLost:
		return fmt.Sprintf("the lease of shard %d is lost", b.shard)
	case leaseReleased:
		return fmt.Sprintf("the lease of shard %d is given back", b.shard)
	case runEnded:
		return fmt.Sprintf("run %d of shard %d has ended", b.number, b.shard)
	default:
		return fmt.Sprintf("%s of %s", describe(b.msg), name(int(l.From)))
	}
}

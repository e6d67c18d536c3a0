package shards

import (
	"fmt"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// Say tells what a host asks, answers and explains.
func (w *walker) Say(i int, e slot.Effect) {
	switch e := e.(type) {
	case slot.Ask[message.Message]:
		w.Search.Tell("%s asks %s: %s", name(i), orAll(e.To), describe(&e.Message))
	case slot.Answer[message.Message]:
		w.Search.Tell("%s answers %s: %s", name(i), name(int(e.Ref&0xff)), describe(&e.Message))
	case slot.Explain:
		if e.Topic == host.TopicGivenUp || e.Topic == slot.TopicLease {
			w.Search.Tell("%s: %s", name(i), e.Text)
		}
	}
}

// tellCoordinator says what a coordinator wants.
func (w *walker) tellCoordinator(i int, e slot.Effect) {
	switch e := e.(type) {
	case slot.Ask[message.Message]:
		w.Search.Tell("the coordinator on %s asks %s: %s", name(i), orAll(e.To), describe(&e.Message))
	case slot.GiveUp:
		w.Search.Tell("the coordinator on %s resigns: %s", name(i), e.Why)
	case slot.Explain:
		w.Search.Tell("the coordinator on %s: shard %d: %s", name(i), e.Shard, e.Text)
	}
}

func orAll(id sbr.ID) sbr.ID {
	if id == "" {
		return "all"
	}
	return id
}

// describe writes a message for people.
func describe(m *message.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v under term %d", m.Kind, m.Term)
	if m.Number > 0 {
		fmt.Fprintf(&b, ", number %s", walktest.Number(m.Number))
	}
	if m.Refused {
		b.WriteString(", refused")
	}
	for _, o := range m.Orders {
		by := walktest.Number(o.Number)
		fmt.Fprintf(&b, ", shard %d from %s to %s by %s", o.Shard, nameOf(o.From), nameOf(o.To), by)
	}
	for _, e := range m.Entries {
		by, seen := walktest.Number(e.Number), walktest.Number(e.Seen)
		fmt.Fprintf(&b, ", shard %d %v by %s, seen %s", e.Shard, e.Phase, by, seen)
	}
	for _, t := range m.Takes {
		fmt.Fprintf(&b, ", shard %d by %s", t.Shard, walktest.Number(t.Number))
	}
	for _, h := range m.Handed {
		fmt.Fprintf(&b, ", shard %d by %s", h.Shard, walktest.Number(h.Number))
		if h.Refused {
			b.WriteString(" refused")
		}
	}
	return b.String()
}

func nameOf(k message.Key) string {
	for i := range walktest.MaxMembers {
		if key(i) == k {
			return string(name(i))
		}
	}
	return "nobody"
}

// DescribeMore says what a move of a coordinator is.
func (w *walker) DescribeMore(s *state, mv walktest.Move) string {
	i, n := walktest.Of(mv)
	switch mv.Kind {
	case appoints:
		return fmt.Sprintf("%s COORDINATES", name(i))
	case changes:
		return fmt.Sprintf("%s COORDINATES instead of %s, which does not know", name(i),
			name(int(s.coordinators[0].at)))
	case wants:
		return fmt.Sprintf("shard %d belongs on %s NOW", n, name(i))
	default:
		return fmt.Sprintf("%s does not coordinate any more", name(int(s.coordinators[1].at)))
	}
}

// Text says what a question or an answer is.
func (*walker) Text(l *packet) string {
	text, from := describe(l.Body.Msg), name(int(l.From))
	if l.Body.Kind == walktest.Unserved {
		return fmt.Sprintf("%s has no manager: %s", from, text)
	}
	return fmt.Sprintf("%s of %s", text, from)
}

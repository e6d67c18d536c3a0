package coordinator_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// send takes a message to a member, unless the network loses it.
func (w *world) send(from, to sbr.ID, m *message.Message, deliver func(*node, message.Message)) {
	a, b := w.node(from), w.node(to)
	wire := message.Append(nil, m)
	require.LessOrEqual(w.t, len(wire), message.MaxSize, "%v", m.Kind)
	w.sent[m.Kind]++
	if a != b && (a.cut || b.cut || w.rng.Float64() < w.loss) || w.filter != nil && w.filter(from, to, m) {
		return
	}
	times := 1
	if a != b && w.rng.Float64() < w.dup {
		times = 2
	}
	for range times {
		d := w.delay
		if a == b {
			d = 0
		} else if w.jitter > 0 {
			d += time.Duration(w.rng.Int64N(int64(w.jitter)))
			if w.rng.IntN(50) == 0 {
				d += time.Duration(w.rng.Int64N(int64(3 * time.Second))) // a straggler
			}
		}
		w.after(d, func() {
			if b.crashed || b.gone || b.cut && a != b {
				return
			}
			got, err := message.Decode(wire)
			require.NoError(w.t, err)
			if b.paused {
				b.backlog = append(b.backlog, func() { deliver(b, got) })
				return
			}
			deliver(b, got)
		})
	}
}

// ask sends a question of one half of a member to the other halves.
func (n *node) ask(to sbr.ID, m *message.Message, chief bool) {
	w := n.w
	w.asked++
	ref := w.asked
	w.questions[ref] = question{from: n.id, chief: chief, message: *m}
	targets := []sbr.ID{to}
	if to == "" {
		targets = nil
		for _, o := range w.nodes {
			targets = append(targets, o.id)
		}
	}
	for _, id := range targets {
		if w.node(id) != nil {
			w.send(n.id, id, m, func(o *node, got message.Message) { o.question(ref, n.id, got) })
		}
	}
}

func (n *node) question(ref uint64, from sbr.ID, m message.Message) {
	if m.Kind == message.State || m.Kind == message.Resigned {
		n.toCoordinator(slot.Asked[message.Message]{Ref: ref, From: from, Message: m})
	}
	if m.Kind == message.State {
		return
	}
	if n.closed {
		if m.Kind != message.Resigned {
			n.answer(ref, &message.Message{Kind: message.Noted}, true)
		}
		return
	}
	n.toHost(slot.Asked[message.Message]{Ref: ref, From: from, Message: m})
}

func (n *node) answer(ref uint64, m *message.Message, unserved bool) {
	q := n.w.questions[ref]
	n.w.send(n.id, q.from, m, func(o *node, got message.Message) {
		if unserved {
			got = q.message
		}
		if q.chief {
			o.toCoordinator(slot.Answered[message.Message]{From: n.id, Message: got, Unserved: unserved})
		} else {
			o.toHost(slot.Answered[message.Message]{From: n.id, Message: got, Unserved: unserved})
		}
	})
}

func (n *node) coordEffects(effects []slot.Effect) {
	for _, e := range effects {
		switch e := e.(type) {
		case slot.Ask[message.Message]:
			n.w.trace("%s asks %s: %s", n.name, cmp.Or(e.To, "all"), describe(n.w, &e.Message))
			n.ask(e.To, &e.Message, true)
		case slot.Answer[message.Message]:
			n.answer(e.Ref, &e.Message, false)
		case slot.GiveUp:
			n.w.trace("%s resigns: %s", n.name, e.Why)
			n.coord = nil
			n.w.term = max(n.w.term, e.Term)
			return
		case slot.Explain:
			n.w.trace("%s (%s) %s%s", n.name, e.Topic, shardName(e.Shard), e.Text)
		}
	}
	n.alarm()
}

func shardName(s int) string {
	if s < 0 {
		return ""
	}
	return "shard " + strconv.Itoa(s) + ": "
}

func (n *node) hostEffects(effects []slot.Effect) {
	w := n.w
	for _, e := range effects {
		switch e := e.(type) {
		case slot.Ask[message.Message]:
			w.trace("%s asks %s: %s", n.name, cmp.Or(e.To, "all"), describe(w, &e.Message))
			n.ask(e.To, &e.Message, false)
		case slot.Answer[message.Message]:
			w.trace("%s answers: %s", n.name, describe(w, &e.Message))
			n.answer(e.Ref, &e.Message, false)
		case slot.AcquireLease:
			w.after(w.delay, func() { n.acquire(e) })
		case slot.ReleaseLease:
			w.after(w.delay, func() { n.release(e) })
		case slot.Start:
			n.start(e)
		case slot.Stop:
			n.stop(e)
		case slot.Explain:
			if e.Topic != slot.TopicStarted && e.Topic != slot.TopicStopping && e.Topic != slot.TopicEnded {
				w.trace("%s (%s) %s%s", n.name, e.Topic, shardName(e.Shard), e.Text)
			}
		}
	}
	n.alarm()
}

// describe writes a message for people.
func describe(w *world, m *message.Message) string {
	key := func(k message.Key) string {
		for _, n := range w.nodes {
			if message.KeyOf(n.id) == k {
				return n.name
			}
		}
		return "-"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s", m.Kind)
	if m.Number > 0 {
		fmt.Fprintf(&b, " %s", number(m.Number))
	}
	if m.Refused {
		b.WriteString(" refused")
	}
	for _, o := range m.Orders {
		fmt.Fprintf(&b, " [%d %s>%s %s]", o.Shard, key(o.From), key(o.To), number(o.Number))
	}
	for _, e := range m.Entries {
		fmt.Fprintf(&b, " [%d %s %s]", e.Shard, e.Phase, number(e.Number))
	}
	for _, t := range m.Takes {
		fmt.Fprintf(&b, " [%d %s]", t.Shard, number(t.Number))
	}
	for _, h := range m.Handed {
		if h.Refused {
			fmt.Fprintf(&b, " [%d refused]", h.Shard)
		} else {
			fmt.Fprintf(&b, " [%d %q]", h.Shard, h.State)
		}
	}
	for _, k := range m.Owners {
		fmt.Fprintf(&b, " %s", key(k))
	}
	return b.String()
}

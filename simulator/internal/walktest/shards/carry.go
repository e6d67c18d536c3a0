package shards

import (
	"fmt"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// Part is what the state has in common with others.
func (*walker) Part(s *state) *walktest.Runs[*message.Message] { return &s.Runs }

// Machine is that of a member's host.
func (*walker) Machine(s *state, i int) walktest.Machine { return s.hosts[i] }

// Changed is a copy of it.
func (*walker) Changed(s *state, i int) walktest.Machine { return s.host(i) }

// Look shows a member's machines its view.
func (w *walker) Look(s *state, i int) {
	s.Look(i)
	w.Step(s, i, slot.Viewed{View: w.view(s, i)})
	for k := range s.coordinators {
		switch c := &s.coordinators[k]; {
		case c.m == nil || int(c.at) != i || !s.Live(i):
		case w.unsure(s, i):
			w.dismiss(s, i, false)
		default:
			w.lookCoordinator(s, k)
		}
	}
}

func (w *walker) view(s *state, i int) slot.View {
	m := &s.Members[i]
	v := slot.View{Armed: m.Armed, Sure: s.Now - s.Age(m.Sure, w.Trust), Peers: s.Peers(i)}
	if w.UseLease || !m.Armed {
		v.Sure = s.Now
	}
	return v
}

// CarryOut sends a question or an answer.
func (w *walker) CarryOut(s *state, i int, e slot.Effect) {
	switch e := e.(type) {
	case slot.Ask[message.Message]:
		w.ask(s, i, 0, e.To, e.Message)
	case slot.Answer[message.Message]:
		w.send(s, i, int(e.Ref&0xff), said(walktest.Answer, e.Ref>>8, e.Message))
	}
}

// Starts is promise B. A lease that was lost before its grant was heard of does not count: the run's own
// check says no from the beginning.
func (w *walker) Starts(s *state, i int, e slot.Start) {
	n := e.Shard
	again := int(s.owners[n]) == i && e.Token == s.tokens[n]
	counts := !w.UseLease || int(s.Leases[n].Holder) == i
	if e.Token <= s.tokens[n] && counts && !again {
		w.Search.Broken(s, "B", fmt.Sprintf("%s starts shard %d with token %d after a run with token %d",
			name(i), n, e.Token, s.tokens[n]))
	}
	if e.Token > s.tokens[n] {
		s.tokens[n], s.owners[n] = e.Token, int8(i)
	}
}

// ask sends a question to the member that is named, or to all. term is that of the coordinator that asks; 0:
// the host asks.
func (w *walker) ask(s *state, i int, term uint64, to sbr.ID, msg message.Message) {
	b := said(walktest.Question, term, msg)
	for j := range w.Members {
		if to == "" || to == name(j) {
			w.send(s, i, j, b)
		}
	}
}

// send sends a packet, if there is a way. What a member says to itself comes at once.
func (w *walker) send(s *state, from, to int, b body) {
	l := packet{From: int8(from), To: int8(to), Body: b}
	g := &s.Budget
	switch {
	case !s.Talk(from, to):
	case from == to,
		b.Msg.Kind == message.Noted && b.Kind == walktest.Answer && g.Late+g.Twice+g.Lost == 0 &&
			!s.Members[to].Paused:
		w.AtOnce(l)
	default:
		if b.Kind == walktest.Question && s.Members[to].Paused { // a paused member needs only the newest
			s.Packets.Drop(func(o *packet) bool {
				same := o.From == l.From && o.To == l.To && o.Body.Kind == walktest.Question
				return same && o.Body.Term == b.Term && o.Body.Msg.Kind == b.Msg.Kind
			})
		}
		s.Packets.Send(l)
	}
}

// Deliver hands a question or an answer over.
func (w *walker) Deliver(s *state, l packet) {
	i, from, b := int(l.To), name(int(l.From)), &l.Body
	if b.Kind == walktest.Question {
		w.deliverQuestion(s, l)
		return
	}
	e := slot.Answered[message.Message]{From: from, Message: *b.Msg, Unserved: b.Kind == walktest.Unserved}
	if b.Term == 0 {
		w.Step(s, i, e)
		return
	}
	for k := range s.coordinators {
		if c := &s.coordinators[k]; c.m != nil && c.term == b.Term && int(c.at) == i {
			w.stepCoordinator(s, k, e)
		}
	}
}

// Lost tells a host that a lease is lost, after it was told that it was granted.
func (w *walker) Lost(s *state, i int, b *body) {
	w.GrantFirst(s, i, b)
	w.Step(s, i, slot.LeaseLost{Shard: int(b.Shard), Attempt: b.Number})
}

// Resumes tells a member first which leases have run out meanwhile: its own clock says so.
func (w *walker) Resumes(s *state, i int) {
	lost := s.LossesOf(i)
	for k := range lost {
		w.Lost(s, i, &lost[k])
	}
}

// Reopen gives a member a machine that remembers what its last machine knew.
func (w *walker) Reopen(s *state, i int) {
	m := s.hosts[i]
	cfg := w.hostConfig(i)
	cfg.Known, cfg.Gone = m.Known(), m.Departed
	s.hosts[i] = host.New(cfg, s.Now)
}

// deliverQuestion hands a question to the machines that it is for.
func (w *walker) deliverQuestion(s *state, l packet) {
	i, from, b := int(l.To), int(l.From), &l.Body
	if b.Msg.Kind == message.State || b.Msg.Kind == message.Resigned {
		for k := range s.coordinators {
			if c := &s.coordinators[k]; c.m != nil && int(c.at) == i {
				w.stepCoordinator(s, k, slot.Asked[message.Message]{Ref: uint64(from), From: name(from), Message: *b.Msg})
			}
		}
	}
	switch {
	case b.Msg.Kind == message.State && !b.Msg.Leaving, b.Msg.Kind == message.Resigned && from == i:
	case !s.Members[i].Closed:
		w.askHost(s, i, from, b)
	case b.Msg.Kind != message.State && b.Msg.Kind != message.Resigned:
		w.send(s, i, from, said(walktest.Unserved, b.Term, *b.Msg))
	}
}

// askHost asks a host. A coordinator with an older term must change nothing.
func (w *walker) askHost(s *state, i, from int, b *body) {
	old := b.Term > 0 && b.Term < s.hosts[i].Known().Term
	var before string
	if old {
		before = hostState(s.hosts[i])
	}
	has := s.hosts[i] // host copies it
	m := s.host(i)
	asked := slot.Asked[message.Message]{Ref: uint64(from) | b.Term<<8, From: name(from), Message: *b.Msg}
	effects := m.Step(s.Now, asked)
	if old && before != hostState(m) {
		w.Search.Broken(s, "E", fmt.Sprintf("%s follows the coordinator on %s, whose term %d is over",
			name(i), name(from), b.Term))
	}
	for _, t := range b.Msg.Takes {
		phase, number := has.Shard(t.Shard)
		if after, by := m.Shard(t.Shard); t.Number < number && (after != phase || by != number) {
			w.Search.Broken(s, "F",
				fmt.Sprintf("%s, which has shard %d by the order %s, lets %s have it by an older one",
					name(i), t.Shard, walktest.Number(number), name(from)))
		}
	}
	w.Carry(s, i, effects)
}

func hostState(m *host.Machine) string {
	var c walktest.Canon
	m.AppendState(&c)
	return string(c.Append(nil))
}

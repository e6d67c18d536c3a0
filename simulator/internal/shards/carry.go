package shards

import (
	"fmt"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// step lets an event happen to a member's host and carries out what it wants.
func (w *walker) step(s *state, i int, e slot.Event) { w.carry(s, i, s.host(i).Step(s.Now, e)) }

// look shows a member's machines its view.
func (w *walker) look(s *state, i int) {
	s.Look(i)
	w.step(s, i, slot.Viewed{View: w.view(s, i)})
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
	m, h := &s.Members[i], &s.hosts[i]
	if h.peers == nil {
		for _, p := range s.View(i) {
			h.peers = append(h.peers, slot.Peer{ID: p.ID, Name: string(p.ID), Candidate: p.Candidate, Leaving: p.Leaving, Down: p.Down, Unreachable: p.Unreachable})
		}
	}
	v := slot.View{Armed: m.Armed, Sure: s.Now - s.Age(m.Sure, w.Host.Trust), Peers: h.peers}
	if w.UseLease || !m.Armed {
		v.Sure = s.Now
	}
	return v
}

// carry carries out what a host wants.
func (w *walker) carry(s *state, i int, effects []slot.Effect) {
	for _, e := range append([]slot.Effect(nil), effects...) {
		if w.search.Telling() {
			w.tell(i, e)
		}
		switch e := e.(type) {
		case slot.Ask[message.Message]:
			w.ask(s, i, 0, e.To, e.Message)
		case slot.Answer[message.Message]:
			w.send(s, i, int(e.Ref&0xff), said(answer, e.Ref>>8, e.Message))
		case slot.AcquireLease:
			r := &s.hosts[i].runs[e.Shard]
			r.attempt, r.waits = e.Attempt, true
		case slot.ReleaseLease:
			s.hosts[i].runs[e.Shard].waits = false
			if l := &s.leases[e.Shard]; int(l.holder) == i {
				l.holder = nobody
			}
			s.Packets.Send(toSelf(i, walk.Within, own(leaseReleased, e.Shard, e.Attempt, 0)))
		case slot.Start:
			w.start(s, i, e)
		case slot.Stop:
			s.hosts[i].runs[e.Shard].stopping = true
			s.Packets.Send(toSelf(i, walk.Ending, own(runEnded, e.Shard, e.Run, 0)))
		}
	}
	if m := &s.Members[i]; m.Told && m.Up && s.hosts[i].m.Finished() {
		s.End(i, application{w, s}) // it is down, and nothing of it runs
	}
	w.flush(s)
}

func (w *walker) start(s *state, i int, e slot.Start) {
	r, n := &s.hosts[i].runs[e.Shard], e.Shard
	broken := func(promise, format string, args ...any) {
		w.search.Broken(s, promise, fmt.Sprintf("%s starts shard %d ", name(i), n)+fmt.Sprintf(format, args...))
	}
	w.search.Started()
	if r.running {
		broken("A", "while its run %d has not ended", r.number)
	}
	if s.Members[i].Told {
		broken("A", "although it knows that it is down")
	}
	if w.UseLease && e.Token != r.granted {
		broken("A", "without the lease")
	}
	for j := range w.Members {
		o := &s.hosts[j].runs[n]
		if j != i && o.running && (e.From == name(j) && o.token < e.Token || !w.UseLease && !s.Losers.Has(j)) {
			broken("A", "before run %d of %s has ended", o.number, name(j))
		}
	}
	again := int(s.owners[n]) == i && e.Token == s.tokens[n]
	counts := !w.UseLease || int(s.leases[n].holder) == i // a lease that was lost before its grant was heard of: the run's own check says no from the beginning
	if e.Token <= s.tokens[n] && counts && !again {
		broken("B", "with token %d after a run with token %d", e.Token, s.tokens[n])
	}
	r.number, r.token, r.running, r.stopping = e.Run, e.Token, true, false
	if e.Token > s.tokens[n] {
		s.tokens[n], s.owners[n] = e.Token, int8(i)
	}
}

// ask sends a question to whoever the cluster has. term is that of the coordinator that asks; 0: the host does.
func (w *walker) ask(s *state, i int, term uint64, to sbr.ID, msg message.Message) {
	if msg.Kind == message.Places {
		return // it is for callers
	}
	b := said(question, term, msg)
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
	case from == to, b.msg.Kind == message.Noted && b.kind == answer && g.Late+g.Twice+g.Lost == 0 && !s.Members[to].Paused:
		w.inside = append(w.inside, l)
	default:
		if b.kind == question && s.Members[to].Paused { // the newest is enough for one that stands still
			s.Packets.Drop(func(o *packet) bool {
				return o.From == l.From && o.To == l.To && o.Body.kind == question && o.Body.term == b.term && o.Body.msg.Kind == b.msg.Kind
			})
		}
		s.Packets.Send(l)
	}
}

// flush delivers what comes at once.
func (w *walker) flush(s *state) {
	if w.flushing {
		return
	}
	w.flushing = true
	for len(w.inside) > 0 {
		l := w.inside[0]
		w.inside = w.inside[1:]
		if s.Live(int(l.To)) {
			w.deliver(s, l)
		}
	}
	w.flushing = false
}

// deliver hands a packet over.
func (w *walker) deliver(s *state, l packet) {
	i, from, b := int(l.To), name(int(l.From)), &l.Body
	switch b.kind {
	case question:
		w.deliverQuestion(s, l)
	case answer, unserved:
		if b.term == 0 {
			w.step(s, i, slot.Answered[message.Message]{From: from, Message: *b.msg, Unserved: b.kind == unserved})
			return
		}
		for k := range s.coordinators {
			if c := &s.coordinators[k]; c.m != nil && c.term == b.term && int(c.at) == i {
				w.stepCoordinator(s, k, slot.Answered[message.Message]{From: from, Message: *b.msg, Unserved: b.kind == unserved})
			}
		}
	case leaseAnswer:
		w.step(s, i, slot.LeaseAnswer{Shard: int(b.shard), Attempt: b.number, Outcome: sbr.Granted, Token: b.token})
	case leaseUnknown:
		w.step(s, i, slot.LeaseAnswer{Shard: int(b.shard), Attempt: b.number, Why: "the store does not answer"})
	case leaseLost:
		w.lose(s, i, b)
	case leaseReleased:
		w.step(s, i, slot.LeaseReleased{Shard: int(b.shard), Attempt: b.number})
	case runEnded:
		r := &s.hosts[i].runs[b.shard]
		r.running, r.stopping = false, false
		w.step(s, i, slot.RunEnded{Shard: int(b.shard), Run: b.number})
	}
}

// lose tells a host that a lease is lost, after it was told that it was granted.
func (w *walker) lose(s *state, i int, lost *body) {
	s.Packets.Drop(func(l *packet) bool {
		b := &l.Body
		granted := int(l.To) == i && b.kind == leaseAnswer && b.shard == lost.shard && b.number == lost.number
		if granted {
			w.inside = append(w.inside, *l)
		}
		return granted
	})
	w.flush(s)
	w.step(s, i, slot.LeaseLost{Shard: int(lost.shard), Attempt: lost.number})
}

// deliverQuestion hands a question to the machines that it is for.
func (w *walker) deliverQuestion(s *state, l packet) {
	i, from, b := int(l.To), int(l.From), &l.Body
	if b.msg.Kind == message.State || b.msg.Kind == message.Resigned {
		for k := range s.coordinators {
			if c := &s.coordinators[k]; c.m != nil && int(c.at) == i {
				w.stepCoordinator(s, k, slot.Asked[message.Message]{Ref: uint64(from), From: name(from), Message: *b.msg})
			}
		}
	}
	switch {
	case b.msg.Kind == message.State, b.msg.Kind == message.Resigned && from == i:
	case !s.Members[i].Closed:
		w.askHost(s, i, from, b)
	case b.msg.Kind != message.Resigned:
		w.send(s, i, from, said(unserved, b.term, *b.msg))
	}
}

// askHost asks a host. A coordinator with an older term must change nothing.
func (w *walker) askHost(s *state, i, from int, b *body) {
	old := b.term > 0 && b.term < s.hosts[i].m.Known().Term
	var before string
	if old {
		before = hostState(s.hosts[i].m)
	}
	newer := newerThan(s.hosts[i].m.Status(), b.msg.Takes)
	m := s.host(i)
	effects := m.Step(s.Now, slot.Asked[message.Message]{Ref: uint64(from) | b.term<<8, From: name(from), Message: *b.msg})
	if old && before != hostState(m) {
		w.search.Broken(s, "E", fmt.Sprintf("%s follows the coordinator on %s, whose term %d is over", name(i), name(from), b.term))
	}
	after := m.Status()
	for _, x := range newer {
		if !slices.ContainsFunc(after, func(y host.ShardStatus) bool { return y.Shard == x.Shard && y.Phase == x.Phase && y.Number == x.Number }) {
			w.search.Broken(s, "F", fmt.Sprintf("%s, which has shard %d by the order %s, lets %s have it by an older one", name(i), x.Shard, number(x.Number), name(from)))
		}
	}
	w.carry(s, i, effects)
}

// newerThan are the shards of those asked for that a member has by a newer order than that under which they are asked for.
func newerThan(has []host.ShardStatus, asked []message.Take) []host.ShardStatus {
	return slices.DeleteFunc(has, func(x host.ShardStatus) bool {
		return !slices.ContainsFunc(asked, func(t message.Take) bool { return t.Shard == x.Shard && t.Number < x.Number })
	})
}

func hostState(m *host.Machine) string {
	var c walk.Canon
	m.AppendState(&c)
	return string(c.Append(nil))
}

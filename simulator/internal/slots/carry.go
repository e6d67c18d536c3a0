package slots

import (
	"fmt"
	"slices"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// step lets an event happen to a member's machine and carries out what it wants.
func (w *walker) step(s *state, i int, e core.Event) {
	w.carry(s, i, s.machine(i).Step(s.Now, e))
}

// look shows a member its view.
func (w *walker) look(s *state, i int) {
	s.Look(i)
	m, x := &s.Members[i], &s.slots[i]
	if x.peers == nil {
		for _, p := range s.View(i) {
			x.peers = append(x.peers, core.Peer{ID: p.ID, Born: p.Born, Candidate: p.Candidate, Leaving: p.Leaving, Down: p.Down, Unreachable: p.Unreachable})
		}
	}
	v := core.View{Armed: m.Armed, Verdict: m.Verdict, Sure: m.Sure, Peers: x.peers}
	if !m.Armed {
		v.Sure = -1
	}
	w.step(s, i, core.Viewed{View: v})
}

// carry carries out effects.
func (w *walker) carry(s *state, i int, effects []core.Effect) {
	x := &s.slots[i]
	for _, e := range slices.Clone(effects) {
		if w.search.Telling() {
			w.tell(i, e)
		}
		switch e := e.(type) {
		case core.Ask[handover.Message]:
			w.ask(s, i, e)
		case core.Answer[handover.Message]:
			w.send(s, i, int(e.Ref), body{kind: answer, msg: e.Message})
		case core.AcquireLease:
			x.attempt, x.waits = e.Attempt, true
		case core.ReleaseLease:
			x.waits = false
			if int(s.holder) == i {
				s.holder = -1
			}
			s.Packets.Send(toSelf(i, walk.Within, body{kind: leaseReleased, number: e.Attempt}))
		case core.Start:
			w.start(s, i, e)
		case core.Stop:
			x.stopping = true
			s.Packets.Send(toSelf(i, walk.Ending, body{kind: runEnded, number: e.Run}))
		}
	}
	w.settleDown(s, i)
}

// settleDown lets a member that is down go once nothing of it runs.
func (w *walker) settleDown(s *state, i int) {
	if m := &s.Members[i]; m.Told && m.Up && s.slots[i].m.Finished() {
		s.End(i, application{w, s})
	}
}

func (w *walker) start(s *state, i int, e core.Start) {
	m, x := &s.Members[i], &s.slots[i]
	w.search.Started()
	if x.running {
		w.search.Broken(s, "A", fmt.Sprintf("%s starts run %d while its run %d has not ended", name(i), e.Run, x.run))
	}
	if s.Losers.Has(i) && m.Told {
		w.search.Broken(s, "A", fmt.Sprintf("%s starts although it is down", name(i)))
	}
	if w.UseLease && e.Token != x.granted {
		w.search.Broken(s, "A", fmt.Sprintf("%s starts without the lease", name(i)))
	}
	for j := range w.Members {
		o := &s.slots[j]
		if j != i && o.running && (e.From == name(j) && o.token < e.Token || !w.UseLease && !s.Losers.Has(j)) {
			w.search.Broken(s, "A", fmt.Sprintf("%s starts before run %d of %s has ended", name(i), o.run, name(j)))
		}
	}
	again := w.UseLease && e.Token == x.token && e.Token == s.token
	after := w.UseLease && int(s.holder) == i || !w.UseLease && (e.From != "" || m.Verdict > s.tokenVerdict)
	if e.Token <= s.token && after && !again { // a lease that was lost before its grant was heard of: the run's own check says no from the beginning
		w.search.Broken(s, "B", fmt.Sprintf("%s starts with token %d after a run with token %d", name(i), e.Token, s.token))
	}
	x.run, x.token, x.running, x.stopping = e.Run, e.Token, true, false
	s.token, s.tokenVerdict = max(s.token, e.Token), max(s.tokenVerdict, m.Verdict)
}

// ask sends a question to whoever the cluster has.
func (w *walker) ask(s *state, i int, e core.Ask[handover.Message]) {
	for j := range w.Members {
		if j != i && (e.To == "" || e.To == name(j)) {
			w.send(s, i, j, body{kind: question, msg: e.Message})
		}
	}
}

// send sends a packet, if there is a way.
func (w *walker) send(s *state, from, to int, b body) {
	if !s.Talk(from, to) {
		return
	}
	l := packet{From: int8(from), To: int8(to), Body: b}
	if b.kind == question && b.msg.Kind == handover.Started && s.Budget.Late+s.Budget.Twice == 0 && !s.Members[to].Paused {
		w.deliver(s, l)
		return
	}
	if b.kind == question && s.Members[to].Paused { // the newest is enough for one that stands still
		s.Packets.Drop(func(o *packet) bool {
			return o.From == l.From && o.To == l.To && o.Body.kind == question && o.Body.msg.Kind == b.msg.Kind
		})
	}
	s.Packets.Send(l)
}

// deliver hands a packet over.
func (w *walker) deliver(s *state, l packet) {
	i, from, x := int(l.To), name(int(l.From)), &l.Body
	switch x.kind {
	case question:
		if s.Members[i].Closed {
			if x.msg.Kind == handover.Take || x.msg.Kind == handover.HandOver {
				w.send(s, i, int(l.From), body{kind: unserved, msg: handover.Message{Round: x.msg.Round}})
			}
			return
		}
		w.step(s, i, core.Asked[handover.Message]{Ref: uint64(l.From), From: from, Message: x.msg})
	case answer:
		w.step(s, i, core.Answered[handover.Message]{From: from, Message: x.msg})
	case unserved:
		w.step(s, i, core.Answered[handover.Message]{From: from, Message: x.msg, Unserved: true})
	case leaseAnswer:
		w.step(s, i, core.LeaseAnswer{Attempt: x.number, Outcome: sbr.Granted, Token: x.token})
	case leaseUnknown:
		w.step(s, i, core.LeaseAnswer{Attempt: x.number, Why: "the store does not answer"})
	case leaseLost:
		w.step(s, i, core.LeaseLost{Attempt: x.number})
	case leaseReleased:
		w.step(s, i, core.LeaseReleased{Attempt: x.number})
	case runEnded:
		s.slots[i].running, s.slots[i].stopping = false, false
		w.step(s, i, core.RunEnded{Run: x.number})
	}
}

package slots

import (
	"fmt"
	"slices"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// step lets an event happen to a member's machine and carries out what it wants.
func (w *walker) step(s *state, i int, e handover.Event) {
	w.carry(s, i, s.machine(i).Step(s.now, e))
}

// look shows a member its view.
func (w *walker) look(s *state, i int) {
	m := &s.members[i]
	if m.armed && m.unreachable == 0 && !m.doubts {
		m.sure = s.now
	}
	if m.peers == nil {
		for j := range w.Members {
			if !m.knows.has(j) || m.gone.has(j) {
				continue
			}
			o := &s.members[j]
			m.peers = append(m.peers, handover.Peer{ID: name(j), Born: w.born(j), Candidate: !o.closed, Leaving: s.leaving.has(j), Down: m.down.has(j),
				Unreachable: m.unreachable.has(j) && !m.down.has(j)})
		}
	}
	v := handover.View{Armed: m.armed, Verdict: m.verdict, Sure: m.sure, Peers: m.peers}
	if !m.armed {
		v.Sure = -1
	}
	w.step(s, i, handover.Viewed{View: v})
}

// carry carries out effects.
func (w *walker) carry(s *state, i int, effects []handover.Effect) {
	m := &s.members[i]
	for _, e := range slices.Clone(effects) {
		if w.tell != nil {
			w.tell(i, e)
		}
		switch e := e.(type) {
		case handover.Ask:
			w.ask(s, i, e)
		case handover.Answer:
			w.send(s, letter{kind: answer, from: int8(i), to: int8(e.Ref), msg: e.Message})
		case handover.AcquireLease:
			m.attempt, m.waits = e.Attempt, true
		case handover.ReleaseLease:
			m.waits = false
			if int(s.holder) == i {
				s.holder = -1
			}
			s.post(letter{kind: leaseReleased, from: int8(i), to: int8(i), number: e.Attempt})
		case handover.Start:
			w.start(s, i, e)
		case handover.Stop:
			m.stopping = true
			s.post(letter{kind: runEnded, from: int8(i), to: int8(i), number: e.Run})
		}
	}
	w.settleDown(s, i)
}

// settleDown lets a member that is down go once nothing of it runs.
func (w *walker) settleDown(s *state, i int) {
	if m := &s.members[i]; m.told && m.up && m.m.Finished() {
		w.end(s, i)
	}
}

func (w *walker) start(s *state, i int, e handover.Start) {
	m := &s.members[i]
	if w.settling == 0 {
		w.starts++
	}
	if m.running {
		w.broken(s, "A", fmt.Sprintf("%s starts run %d while its run %d has not ended", name(i), e.Run, m.run))
	}
	if s.losers.has(i) && m.told {
		w.broken(s, "A", fmt.Sprintf("%s starts although it is down", name(i)))
	}
	if w.UseLease && e.Token != m.granted {
		w.broken(s, "A", fmt.Sprintf("%s starts without the lease", name(i)))
	}
	for j := range w.Members {
		o := &s.members[j]
		if j != i && o.running && (e.From == name(j) || !w.UseLease && !s.losers.has(j)) {
			w.broken(s, "A", fmt.Sprintf("%s starts before run %d of %s has ended", name(i), o.run, name(j)))
		}
	}
	again := w.UseLease && e.Token == m.token && e.Token == s.token
	after := w.UseLease && int(s.holder) == i || !w.UseLease && (e.From != "" || m.verdict > s.tokenVerdict)
	if e.Token <= s.token && after && !again { // a lease that was lost before its grant was heard of: the run's own check says no from the beginning
		w.broken(s, "B", fmt.Sprintf("%s starts with token %d after a run with token %d", name(i), e.Token, s.token))
	}
	m.run, m.token, m.running, m.stopping = e.Run, e.Token, true, false
	s.token, s.tokenVerdict = max(s.token, e.Token), max(s.tokenVerdict, m.verdict)
}

// ask sends a question to whoever the cluster has.
func (w *walker) ask(s *state, i int, e handover.Ask) {
	for j := range w.Members {
		if j != i && (e.To == "" || e.To == name(j)) {
			w.send(s, letter{kind: question, from: int8(i), to: int8(j), msg: e.Message})
		}
	}
}

// send sends a letter, if there is a way.
func (w *walker) send(s *state, l letter) {
	from, to := &s.members[l.from], &s.members[l.to]
	if from.up && to.up && from.joined && to.joined && !to.left && s.cut.has(int(l.from)) == s.cut.has(int(l.to)) {
		if l.kind == question && l.msg.Kind == handover.Started && s.late+s.twice == 0 && !to.paused {
			w.deliver(s, l)
			return
		}
		s.post(l)
	}
}

// deliver hands a letter over.
func (w *walker) deliver(s *state, l letter) {
	i := int(l.to)
	m := &s.members[i]
	switch l.kind {
	case question:
		if m.closed {
			if l.msg.Kind == handover.Take || l.msg.Kind == handover.HandOver {
				w.send(s, letter{kind: unserved, from: l.to, to: l.from, msg: handover.Message{Round: l.msg.Round}})
			}
			return
		}
		w.step(s, i, handover.Asked{Ref: uint64(l.from), From: name(int(l.from)), Message: l.msg})
	case answer:
		w.step(s, i, handover.Answered{From: name(int(l.from)), Message: l.msg})
	case unserved:
		w.step(s, i, handover.Answered{From: name(int(l.from)), Message: l.msg, Unserved: true})
	case leaseAnswer:
		w.step(s, i, handover.LeaseAnswer{Attempt: l.number, Outcome: sbr.Granted, Token: l.token})
	case leaseUnknown:
		w.step(s, i, handover.LeaseAnswer{Attempt: l.number, Why: "the store does not answer"})
	case leaseLost:
		w.step(s, i, handover.LeaseLost{Attempt: l.number})
	case leaseReleased:
		w.step(s, i, handover.LeaseReleased{Attempt: l.number})
	case runEnded:
		m.running, m.stopping = false, false
		w.step(s, i, handover.RunEnded{Run: l.number})
	}
}

// end takes a member away: it crashed, or is down and done.
func (w *walker) end(s *state, i int) {
	m := &s.members[i]
	m.up, m.paused, m.running, m.stopping, m.waits = false, false, false, false, false
	s.letters = slices.DeleteFunc(slices.Clone(s.letters), func(l letter) bool { return int(l.to) == i })
}

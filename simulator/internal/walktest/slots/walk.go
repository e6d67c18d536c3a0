package slots

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// Normal are the walks of every day: each fault alone, and the pairs that meet in practice, with and without
// a lease, on four members. They take about a minute on one core.
func Normal() []walktest.Options {
	both := []string{
		"forming", "forming, a newcomer", "forming, an old newcomer", "forming, a crash", "a cut", "a crash, a removal",
		"three, a pause, a slow end", "a leave, a slow end", "a crash, a late message", "an old newcomer, a crash",
		"an old newcomer, a message twice", "an end, a late message", "three, a resignation, a late message, a slow end",
		"three, a resignation, a message twice", "three, a resignation, a crash", "three, a leave, a late message",
		"three, a resignation, a return",
	}
	leases := []string{
		"a lost lease, a slow end", "a lost lease, a silent store", "a lost lease, a late message", "a lost lease, a crash",
		"three, a cut, a lost lease",
	}
	return append(walktest.Plan(false, both...), walktest.Plan(true, append(both, leases...)...)...)
}

// Thorough are the walks of some minutes: two and three faults at once, on four members where that has an
// end, on three where it has none, and on two where three have more than six million states: an old newcomer
// and a pause, with a lease.
func Thorough() []walktest.Options {
	both := []string{
		"a pause, a slow end", "a leave, a late message", "a cut, a late message", "a leave, a crash, a slow end",
		"a crash, a crash", "a cut, a removal, a removal", "a crash, a late message, a message twice",
		"forming, a late message", "three, an old newcomer, a cut", "two, an old newcomer, a pause", "three, a cut, a crash",
		"three, a cut, a pause", "three, a pause, a crash", "three, a pause, a late message", "three, a cut, a leave",
		"three, forming, a resignation", "three, forming, a cut", "three, forming, a pause", "three, a leave, a lost message",
		"three, a crash, a lost message", "three, a resignation, a return, a message twice",
		"three, a resignation, a return, a lost message",
	}
	leases := []string{
		"a cut, a crash", "a resignation, a crash", "forming, a cut", "a lost lease, a cut",
		"a lost lease, a lost lease, a slow end", "a silent store, a crash, a late message", "three, a lost lease, a pause",
	}
	return append(walktest.Plan(false, append(both, "three, an old newcomer, a pause")...),
		walktest.Plan(true, append(both, leases...)...)...)
}

// state is everything.
type state struct {
	walktest.Runs[handover.Message]
	machines [walktest.MaxMembers]*handover.Machine // shared between states: copy one before a change

	// The largest token of a run so far, and the newest verdict that a starting member knew.
	token, tokenVerdict uint64
}

type (
	body   = walktest.Body[handover.Message]
	packet = walktest.Packet[body]
)

// AppendKey appends what distinguishes the state from others.
func (w *walker) AppendKey(b []byte, s *state) []byte {
	trust := time.Duration(0)
	if !w.UseLease {
		trust = w.Trust
	}
	b = s.Cluster.AppendKey(b, trust, max(w.Margin, w.Trust, w.LeaseRetryInterval, w.Patience))
	for i := range w.Members {
		if !s.Members[i].Up {
			continue
		}
		w.Canon.Reset()
		r := &s.Runs.Runs[i][0]
		w.Canon.Flags(r.Running, r.Stopping, r.Waits)
		w.Canon.Uint(r.Token)
		s.machines[i].AppendState(&w.Canon)
		b = w.Canon.Append(b)
	}
	l := &s.Leases[0]
	b = append(b, byte(l.Holder))
	for _, n := range [...]uint64{l.Token, s.token, s.tokenVerdict} {
		b = binary.AppendUvarint(b, n)
	}
	return s.Packets.AppendKey(b, s.packetKey)
}

// Key tells packets apart.
func (*walker) Key(s *state) walktest.PacketKey[body] { return s.packetKey }

// packetKey tells packets apart. Of a round, attempt or run counts whether it is the newest.
func (s *state) packetKey(b []byte, l *packet) []byte {
	x := &l.Body
	stale := uint64(0)
	switch {
	case x.Kind == walktest.Question:
		stale = s.machines[l.From].Round() - x.Msg.Round
	case !x.Own():
		stale = s.machines[l.To].Round() - x.Msg.Round
	default:
		stale = s.Newest(l) - x.Number
	}
	b = append(b, byte(x.Kind), byte(min(stale, 1)), byte(x.Msg.Kind))
	b = binary.AppendUvarint(b, x.Msg.Token)
	b = binary.AppendUvarint(b, uint64(x.Msg.Wait))
	return binary.AppendUvarint(b, x.Token)
}

// walker is the model that is walked.
type walker struct {
	walktest.Walker[handover.Message, state]
}

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled.
func Walk(ctx context.Context, o walktest.Options) walktest.Report {
	w := new(walker)
	w.Options, w.LossAtOnce, w.MayEnd = o, true, true
	const patience = 2 // in retry intervals
	w.Patience = patience * o.HandOverRetryInterval
	w.Init(w)
	return w.Search.Run(ctx)
}

// First is the state in which the members that are there from the beginning know each other: not armed yet
// or, where they are formed, with a member that runs the slot.
func (w *walker) First(s *state) {
	*s = state{}
	for i := range w.Members {
		s.machines[i] = handover.New(w.config(i), 0)
	}
	w.Begin(s)
	for w.Formed {
		mv, more := w.Fair(s)
		if !more {
			break
		}
		w.Do(s, mv)
	}
	s.Endanger()
}

func (w *walker) config(i int) handover.Config {
	return handover.Config{Rules: w.Own(i), Born: w.Born(i), CounterBits: counterBits}
}

// Part is what the state has in common with others.
func (*walker) Part(s *state) *walktest.Runs[handover.Message] { return &s.Runs }

// Machine is that of a member.
func (*walker) Machine(s *state, i int) walktest.Machine { return s.machines[i] }

// Changed is a copy of it.
func (*walker) Changed(s *state, i int) walktest.Machine {
	s.machines[i] = s.machines[i].Clone()
	return s.machines[i]
}

// Look shows a member its view.
func (w *walker) Look(s *state, i int) {
	s.Look(i)
	m := &s.Members[i]
	v := core.View{Armed: m.Armed, Verdict: m.Verdict, Sure: m.Sure, Peers: s.Peers(i)}
	if !m.Armed {
		v.Sure = -1
	}
	w.Step(s, i, core.Viewed{View: v})
}

// CarryOut sends a question to the member that is named, or to all others, or sends an answer.
func (w *walker) CarryOut(s *state, i int, e core.Effect) {
	switch e := e.(type) {
	case core.Ask[handover.Message]:
		for j := range w.Members {
			if j != i && (e.To == "" || e.To == walktest.Name(j)) {
				w.send(s, i, j, body{Kind: walktest.Question, Msg: e.Message})
			}
		}
	case core.Answer[handover.Message]:
		w.send(s, i, int(e.Ref), body{Kind: walktest.Answer, Msg: e.Message})
	}
}

// send sends a packet, if there is a way.
func (w *walker) send(s *state, from, to int, b body) {
	if !s.Talk(from, to) {
		return
	}
	l := packet{From: int8(from), To: int8(to), Body: b}
	stands := s.Members[to].Paused
	started := b.Kind == walktest.Question && b.Msg.Kind == handover.Started
	if started && s.Budget.Late+s.Budget.Twice == 0 && !stands {
		w.AtOnce(l)
		return
	}
	if b.Kind == walktest.Question && stands { // a paused member needs only the newest
		s.Packets.Drop(func(o *packet) bool {
			return o.From == l.From && o.To == l.To && o.Body.Kind == walktest.Question &&
				o.Body.Msg.Kind == b.Msg.Kind
		})
	}
	s.Packets.Send(l)
}

// Deliver hands a question or an answer over.
func (w *walker) Deliver(s *state, l packet) {
	i, from, x := int(l.To), walktest.Name(int(l.From)), &l.Body
	switch {
	case x.Kind != walktest.Question:
		w.Step(s, i, core.Answered[handover.Message]{From: from, Message: x.Msg,
			Unserved: x.Kind == walktest.Unserved})
	case !s.Members[i].Closed:
		w.Step(s, i, core.Asked[handover.Message]{Ref: uint64(l.From), From: from, Message: x.Msg})
	case x.Msg.Kind == handover.Take || x.Msg.Kind == handover.HandOver:
		w.send(s, i, int(l.From), body{Kind: walktest.Unserved, Msg: handover.Message{Round: x.Msg.Round}})
	}
}

// Lost tells a member that its lease is lost.
func (w *walker) Lost(s *state, i int, b *body) { w.Step(s, i, core.LeaseLost{Attempt: b.Number}) }

// counterBits are few enough for the clock's upper bits to stand still during a walk.
const counterBits = 20

// Reopen gives a member a machine whose rounds, and whose tokens without a lease, are beyond all before, as
// the wall clock has it.
func (w *walker) Reopen(s *state, i int) {
	m := s.machines[i]
	cfg := w.config(i)
	cfg.FirstRound, cfg.Gone = m.Round()+1, m.Departed
	if !w.UseLease {
		cfg.Floor = s.token & (1<<counterBits - 1) << (31 - counterBits)
	}
	s.machines[i] = handover.New(cfg, s.Now)
}

// Starts is promise B. A lease that was lost before its grant was heard of does not count: the run's own
// check says no from the beginning.
func (w *walker) Starts(s *state, i int, e core.Start) {
	verdict := s.Members[i].Verdict
	again := w.UseLease && e.Token == s.Runs.Runs[i][0].Token && e.Token == s.token
	after := int(s.Leases[0].Holder) == i
	if !w.UseLease {
		after = e.From != "" || verdict > s.tokenVerdict
	}
	if e.Token <= s.token && after && !again {
		w.Search.Broken(s, "B", fmt.Sprintf("%s starts with token %d after a run with token %d",
			walktest.Name(i), e.Token, s.token))
	}
	s.token, s.tokenVerdict = max(s.token, e.Token), max(s.tokenVerdict, verdict)
}

// Well reports whether exactly one run is active, or none where nobody may run.
func (w *walker) Well(s *state) bool {
	runs, may := 0, 0
	for i := range w.Members {
		if w.Active(s, i, 0) {
			runs++
		}
		here := s.Live(i) && s.Members[i].Armed && !s.Losers.Has(i) && !s.Leaving.Has(i)
		if here && !s.machines[i].Status().Resigned {
			may++
		}
	}
	return runs == min(may, 1)
}

// Standing says what the members do.
func (w *walker) Standing(s *state) (text string) {
	for i := range w.Members {
		if s.Live(i) {
			text += fmt.Sprintf("%s is %v, ", walktest.Name(i), s.machines[i].Phase())
		}
	}
	return text + fmt.Sprintf("%d packets are under way", s.Packets.Len())
}

// Say tells what an effect is.
func (w *walker) Say(i int, e core.Effect) {
	switch e := e.(type) {
	case core.Ask[handover.Message]:
		w.Search.Tell("%s asks %s: %v", walktest.Name(i), e.To, e.Message.Kind)
	case core.Answer[handover.Message]:
		w.Search.Tell("%s answers %s: %v", walktest.Name(i), walktest.Name(int(e.Ref)), e.Message.Kind)
	case core.Explain:
		if e.Topic == handover.TopicYielded || e.Topic == core.TopicTaking {
			w.Search.Tell("%s: %s", walktest.Name(i), e.Text)
		}
	}
}

// Text says what a question or an answer is.
func (*walker) Text(l *packet) string {
	x, from := &l.Body, walktest.Name(int(l.From))
	if x.Kind == walktest.Unserved {
		return fmt.Sprintf("%s has no manager, round %d", from, x.Msg.Round)
	}
	return fmt.Sprintf("%v of %s, round %d", x.Msg.Kind, from, x.Msg.Round)
}

package handover_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

var update = flag.Bool("update", false, "write the traces of the scenarios anew")

// config is what the members of a test have in common: DefaultConfig with short names for its times. Nothing starts for 20 s after a member is gone, and a run
// without a lease goes on for 26.25 s after its member was last sure.
func config(id sbr.ID, born int64) handover.Config {
	cfg := handover.DefaultConfig()
	cfg.Self, cfg.Born, cfg.NumberOfRetries = id, born, 3
	return cfg
}

// written is what decides how a machine will behave.
func written(m *handover.Machine) []byte {
	var w writer
	m.AppendState(&w)
	return w.Bytes()
}

// writer writes a state so that different ones differ.
type writer struct{ bytes.Buffer }

func (w *writer) Flags(all ...bool) { fmt.Fprintln(w, all) }
func (w *writer) Uint(n uint64)     { fmt.Fprintln(w, n) }
func (w *writer) Text(s string)     { fmt.Fprintf(w, "%q\n", s) }

func (w *writer) Due(at, now time.Duration) { fmt.Fprintln(w, max(at-now, -1)) }
func (w *writer) View(v *slot.View)         { fmt.Fprintf(w, "%v %d %+v\n", v.Armed, v.Verdict, v.Peers) }

// world is a handful of members whose messages and views are in the hands of the test. It writes down what they do.
type world struct {
	t       *testing.T
	now     time.Duration
	trace   strings.Builder
	members []*member
	mail    []letter
	verdict uint64
	lease   struct {
		holder *member
		token  uint64
		queue  []*member
	}
}

type member struct {
	id  sbr.ID
	cfg handover.Config
	m   *handover.Machine // nil: no manager
	// What this member sees, and whether it is sure of its place.
	peers []slot.Peer
	sure  bool
	view  slot.View

	gone     bool // crashed
	mute     bool // hears and says nothing
	slow     bool // its runs end when the test says so
	run      uint64
	token    uint64
	left     string
	attempt  uint64
	unknown  bool // its lease store does not answer
	cutFrom  []sbr.ID
	messages int
}

type letter struct {
	from, to *member
	msg      handover.Message
	ref      uint64 // of an answer: zero; of a question: what to answer
	unserved bool
}

// newWorld has the members a, b, c …, each a second younger than the one before, which know and reach each other.
func newWorld(t *testing.T, n int, change func(*handover.Config)) *world {
	w := &world{t: t}
	for i := range n {
		w.join(sbr.ID(rune('a'+i)), int64(i+1)*int64(time.Second), change)
	}
	for _, m := range w.members {
		m.peers = w.everybody()
	}
	return w
}

func (w *world) join(id sbr.ID, born int64, change func(*handover.Config)) *member {
	cfg := config(id, born)
	if change != nil {
		change(&cfg)
	}
	machine, err := handover.New(cfg, w.now)
	require.NoError(w.t, err)
	m := &member{id: id, cfg: cfg, m: machine, sure: true, left: "state of " + string(id)}
	m.view.Sure = -1
	w.members = append(w.members, m)
	return m
}

// everybody is the view of a whole cluster.
func (w *world) everybody() (peers []slot.Peer) {
	for _, m := range w.members {
		peers = append(peers, slot.Peer{ID: m.id, Born: m.cfg.Born, Candidate: m.m != nil})
	}
	return peers
}

func (w *world) member(id sbr.ID) *member {
	i := slices.IndexFunc(w.members, func(m *member) bool { return m.id == id })
	require.GreaterOrEqual(w.t, i, 0, id)
	return w.members[i]
}

// say writes a line of the trace.
func (w *world) say(format string, args ...any) {
	at := fmt.Sprintf("%.2fs", w.now.Seconds())
	fmt.Fprintf(&w.trace, "%8s  %s\n", at, fmt.Sprintf(format, args...))
}

// look shows a member its view.
func (w *world) look(m *member) {
	if m.m == nil || m.gone {
		return
	}
	if m.sure {
		m.view.Sure = w.now
	}
	m.view.Armed, m.view.Verdict, m.view.Peers = len(m.peers) > 0, w.verdict, slices.Clone(m.peers)
	w.carry(m, m.m.Step(w.now, slot.Viewed{View: m.view}))
}

// see changes how some members see another one, and shows it to them. A nil change removes it.
func (w *world) see(id sbr.ID, change func(*slot.Peer), by ...sbr.ID) {
	for _, m := range w.members {
		if m.gone || len(by) > 0 && !slices.Contains(by, m.id) {
			continue
		}
		m.peers = slices.Clone(m.peers)
		for i := range m.peers {
			if m.peers[i].ID != id {
				continue
			}
			if change == nil {
				m.peers = slices.Delete(m.peers, i, i+1)
			} else {
				change(&m.peers[i])
			}
			break
		}
		w.look(m)
	}
	w.deliver()
}

func down(p *slot.Peer)        { p.Down = true }
func leaving(p *slot.Peer)     { p.Leaving = true }
func unreachable(p *slot.Peer) { p.Unreachable = true }
func reachable(p *slot.Peer)   { p.Unreachable = false }

// step lets an event happen to a member, and everything that follows at once.
func (w *world) step(id sbr.ID, e slot.Event) {
	m := w.member(id)
	w.carry(m, m.m.Step(w.now, e))
	w.deliver()
}

// pass lets time pass: each deadline comes at its time.
func (w *world) pass(d time.Duration) {
	end := w.now + d
	w.begin()
	for steps := 0; ; steps++ {
		require.Less(w.t, steps, 10000, "deadlines stand still")
		at, who := end, (*member)(nil)
		for _, m := range w.members {
			if m.m == nil || m.gone {
				continue
			}
			if due, ok := m.m.NextDeadline(); ok && due < at {
				at, who = max(due, w.now), m
			}
		}
		w.now = at
		for _, m := range w.members {
			w.look(m)
		}
		if who == nil {
			w.deliver()
			return
		}
		w.carry(who, who.m.Tick(w.now))
		w.deliver()
	}
}

// begin shows everybody what there is.
func (w *world) begin() {
	for _, m := range w.members {
		w.look(m)
	}
	w.deliver()
}

// carry carries out what a machine wants, and writes it down.
func (w *world) carry(m *member, effects []slot.Effect) {
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case slot.Ask[handover.Message]:
			w.ask(m, e)
		case slot.Answer[handover.Message]:
			w.answer(m, e)
		case slot.AcquireLease:
			w.say("%s asks for the lease", m.id)
			m.attempt = e.Attempt
			w.lease.queue = append(w.lease.queue, m)
		case slot.ReleaseLease:
			w.release(m, e)
		case slot.Start:
			w.start(m, e)
		case slot.Stop:
			w.say("%s STOP run %d (%v): %s", m.id, e.Run, e.Cause, e.Why)
			if !m.slow {
				w.ended(m, slot.RunEnded{Run: e.Run, State: []byte(m.left)})
			}
		case slot.Explain:
			if e.Topic != slot.TopicStarted && e.Topic != slot.TopicStopping && e.Topic != slot.TopicEnded {
				w.say("%s: %s", m.id, e.Text)
			}
		}
	}
}

func (w *world) start(m *member, e slot.Start) {
	text := fmt.Sprintf("%s START run %d, token %d", m.id, e.Run, e.Token)
	if e.From != "" {
		text += ", handed over by " + string(e.From)
	}
	if e.State != nil {
		text += fmt.Sprintf(", with %q", e.State)
	}
	w.say("%s", text)
	m.run, m.token = e.Run, e.Token
}

// ended says that a run has ended.
func (w *world) ended(m *member, e slot.RunEnded) {
	w.say("%s ENDED run %d", m.id, e.Run)
	m.run = 0
	w.carry(m, m.m.Step(w.now, e))
}

// end ends the present run of a member.
func (w *world) end(id sbr.ID, e slot.RunEnded) {
	m := w.member(id)
	require.NotZero(w.t, m.run, "nothing runs")
	e.Run = m.run
	w.ended(m, e)
	w.deliver()
}

func (w *world) crash(id sbr.ID) {
	m := w.member(id)
	m.gone, m.run = true, 0
	w.say("%s CRASHES", id)
}

// ask sends a question to whoever there is.
func (w *world) ask(m *member, e slot.Ask[handover.Message]) {
	to := string(e.To)
	if to == "" {
		to = "all"
	}
	w.say("%s -> %s: %v", m.id, to, e.Message.Kind)
	for _, o := range w.members {
		if o != m && (e.To == "" || e.To == o.id) {
			w.mail = append(w.mail, letter{from: m, to: o, msg: e.Message, ref: 1})
		}
	}
}

// answers of the machines refer to the letter by number.
func (w *world) answer(m *member, e slot.Answer[handover.Message]) {
	to := w.members[e.Ref%100]
	text := e.Message.Kind.String()
	if e.Message.Wait > 0 {
		text += fmt.Sprintf(" in %v", e.Message.Wait)
	}
	if e.Message.State != nil {
		text += fmt.Sprintf(" %q", e.Message.State)
	}
	w.say("%s -> %s: %s", m.id, to.id, text)
	w.mail = append(w.mail, letter{from: m, to: to, msg: e.Message})
}

// deliver delivers everything that is under way, in order, and grants the lease where it is free.
func (w *world) deliver() {
	for len(w.mail) > 0 || w.grant() {
		if len(w.mail) == 0 {
			continue
		}
		l := w.mail[0]
		w.mail = w.mail[1:]
		if l.to.gone || l.from.gone || l.to.mute || l.from.mute || slices.Contains(l.to.cutFrom, l.from.id) || slices.Contains(l.from.cutFrom, l.to.id) {
			continue
		}
		w.hand(l)
	}
}

func (w *world) hand(l letter) {
	raw := handover.AppendMessage(nil, l.msg)
	msg, err := handover.Decode(raw)
	require.NoError(w.t, err)
	switch {
	case l.to.m == nil && l.ref != 0:
		w.say("%s -> %s: unserved", l.to.id, l.from.id)
		w.mail = append(w.mail, letter{from: l.to, to: l.from, msg: handover.Message{Kind: handover.Clear, Round: msg.Round}, unserved: true})
	case l.to.m == nil:
	case l.unserved:
		w.carry(l.to, l.to.m.Step(w.now, slot.Answered[handover.Message]{From: l.from.id, Unserved: true, Message: handover.Message{Round: msg.Round}}))
	case l.ref != 0:
		l.to.messages++
		ref := uint64(l.to.messages*100 + slices.Index(w.members, l.from))
		w.carry(l.to, l.to.m.Step(w.now, slot.Asked[handover.Message]{Ref: ref, From: l.from.id, Message: msg}))
	default:
		w.carry(l.to, l.to.m.Step(w.now, slot.Answered[handover.Message]{From: l.from.id, Message: msg}))
	}
}

// grant gives the lease to whoever is next.
func (w *world) grant() bool {
	for i, m := range w.lease.queue {
		if m.gone || w.lease.holder != nil && !m.unknown {
			continue
		}
		w.lease.queue = slices.Delete(w.lease.queue, i, i+1)
		if m.unknown {
			w.carry(m, m.m.Step(w.now, slot.LeaseAnswer{Attempt: m.attempt, Why: "the store does not answer"}))
			return true
		}
		w.lease.holder = m
		w.lease.token++
		w.say("%s is granted the lease, token %d", m.id, w.lease.token)
		w.carry(m, m.m.Step(w.now, slot.LeaseAnswer{Attempt: m.attempt, Outcome: sbr.Granted, Token: w.lease.token}))
		return true
	}
	return false
}

func (w *world) release(m *member, e slot.ReleaseLease) {
	w.say("%s releases the lease", m.id)
	w.lease.queue = slices.DeleteFunc(w.lease.queue, func(q *member) bool { return q == m })
	if w.lease.holder == m {
		w.lease.holder = nil
	}
	w.carry(m, m.m.Step(w.now, slot.LeaseReleased(e)))
}

// expire takes the lease away from its holder.
func (w *world) expire(why string) {
	m := w.lease.holder
	w.lease.holder = nil
	if m.gone {
		w.say("the lease of %s runs out", m.id)
		w.deliver()
		return
	}
	w.say("%s loses the lease", m.id)
	w.step(m.id, slot.LeaseLost{Attempt: m.attempt, Why: why})
}

// running are the members that run the slot.
func (w *world) running() (ids []sbr.ID) {
	for _, m := range w.members {
		if m.run != 0 {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// golden compares the trace with the one that is kept.
func (w *world) golden(sentence string) {
	w.t.Helper()
	name := filepath.Join("testdata", strings.ReplaceAll(strings.TrimPrefix(w.t.Name(), "Test"), "/", "_")+".txt")
	text := sentence + "\n\n" + w.trace.String()
	if *update {
		require.NoError(w.t, os.WriteFile(name, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(name)
	require.NoError(w.t, err, "run the test with -update")
	require.Equal(w.t, string(want), text)
}

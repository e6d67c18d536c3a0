package world

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// question is one, to one member or to all that the asker knows. It is open for as long as answers count.
type question struct {
	by    *driver
	of    machine
	until time.Duration // by the asker's clock
	wire  []byte
	given map[*process]bool
}

// openFor is how long answers to a question count, in pauses between two tries.
const openFor = 3

// ask sends a question of a machine to another member, or to all that are known. What is asked of the members
// that run shards is asked of this one, too.
func (t *driver) ask(m machine, to sbr.ID, kind fmt.Stringer, number uint64, wire []byte) {
	p := t.p
	p.w.note(p, "asks", "%s: %s of %s, number %d", t.of.name(), kind.String(), whom(to), number)
	until := p.clock() + openFor*t.rules.HandOverRetryInterval
	q := &question{by: t, of: m, until: until, wire: wire, given: make(map[*process]bool)}
	if _, shards := t.of.(*shardHost); shards && (to == "" || to == p.id) {
		p.w.after(0, p, func() {
			if t.of.works() {
				t.hear(q)
			}
		})
	}
	for other := range p.others() {
		if to == "" || other.id == to {
			p.w.post(p, other, &requestInFlight{q: q, to: other})
		}
	}
}

func whom(to sbr.ID) sbr.ID {
	if to == "" {
		return "everybody"
	}
	return to
}

// requestInFlight is a question on its way to a member.
type requestInFlight struct {
	q  *question
	to *process
}

// act is the arrival. Questions of non-members, and of downed members, are not heard.
func (a *requestInFlight) act() {
	q, w := a.q, a.to.w
	if !w.carries(q.by.p, a.to) || a.to.stage != stageRunning && a.to.stage != stageLeaving {
		return
	}
	if m, ok := a.to.r.Member(q.by.p.id); !ok || m.Status == sbr.Down {
		return
	}
	t := a.to.driver(q.by.topic)
	if t == nil {
		w.post(a.to, q.by.p, &responseInFlight{q: q, from: a.to})
		return
	}
	t.hear(q)
}

// hear takes a question in.
func (t *driver) hear(q *question) {
	t.refs++
	t.questions[t.refs] = q
	t.of.asked(t.refs, q)
}

// answer answers a question, once.
func (t *driver) answer(ref uint64, kind fmt.Stringer, number uint64, wire []byte) {
	q, p := t.questions[ref], t.p
	if q == nil {
		t.executors[0].slot.broken(6, "%s answers a question about %s that nobody has asked, or twice", p.id, t)
		return
	}
	delete(t.questions, ref)
	p.w.note(p, "answers", "%s: %s to %s, number %d", t.of.name(), kind.String(), q.by.p.id, number)
	if q.by.p == p {
		p.w.after(0, p, func() { q.answered(p.id, wire) })
		return
	}
	p.w.post(p, q.by.p, &responseInFlight{q: q, from: p, wire: wire})
}

// responseInFlight is an answer on its way.
type responseInFlight struct {
	q    *question
	from *process
	wire []byte // nil: nothing listens there
}

// act is the arrival. Answers of downed members do not count. A process that has just woken up finds both the
// answer and the end of its time, and takes what comes first.
func (a *responseInFlight) act() {
	q, p := a.q, a.q.by.p
	late := p.clock() >= q.until
	if !p.w.carries(a.from, p) || q.given[a.from] || late && (p.wokeAt != p.w.now || p.w.chance(0.5)) {
		return
	}
	if m, _ := p.r.Member(a.from.id); m.Status == sbr.Down || p.r.KeptOut(a.from.id, a.from.self.Seen) {
		return
	}
	q.given[a.from] = true
	q.answered(a.from.id, a.wire)
}

// answered hands an answer to the machine that has asked.
func (q *question) answered(from sbr.ID, wire []byte) {
	if _, shards := q.by.of.(*shardHost); shards {
		q.by.step(q.of, answerOf(q, from, wire, message.Decode))
	} else {
		q.by.step(q.of, answerOf(q, from, wire, handover.Decode))
	}
}

func answerOf[M any](q *question, from sbr.ID, wire []byte, decode func([]byte) (M, error)) core.Event {
	unserved := wire == nil
	if unserved {
		wire = q.wire
	}
	return core.Answered[M]{From: from, Message: said(wire, decode), Unserved: unserved}
}

// said is a message that was sent.
func said[M any](wire []byte, decode func([]byte) (M, error)) M {
	m, err := decode(wire)
	if err != nil {
		panic(err) // it was encoded by the same package
	}
	return m
}

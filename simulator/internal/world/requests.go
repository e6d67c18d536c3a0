package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// requester asks and answers for what runs on a process: about one slot, or about the shards of a type.
type requester struct {
	p     *process
	topic int
	every time.Duration // the pause between two tries
	hears listener
	// questions are the unanswered ones, by reference.
	questions map[uint64]*question
	refs      uint64
}

// listener is what questions and answers are for.
type listener interface {
	asked(ref uint64, q *question)
	// answered comes with nil where the member does not listen.
	answered(q *question, from sbr.ID, wire []byte)
}

func newRequester(p *process, topic int, every time.Duration, l listener) requester {
	return requester{p: p, topic: topic, every: every, hears: l, questions: make(map[uint64]*question)}
}

// requester returns what listens to a topic on the process; nil: nothing does. The topics are those of the
// slots, and then those of the shards.
func (p *process) requester(topic int) *requester {
	if n := len(p.w.slots); topic >= n {
		if t := p.shardHosts[topic-n]; t != nil && t.stage != hostClosed {
			return &t.requests
		}
		return nil
	}
	if t := p.slotMembers[topic]; t != nil {
		return &t.requests
	}
	return nil
}

// question is one, to one member or to all that the asker knows. It is open for as long as answers count.
type question struct {
	by    *requester
	until time.Duration // by the asker's clock
	wire  []byte
	given map[*process]bool
	// byCoordinator: a coordinator of shards asks, or asked.
	byCoordinator bool
}

// openFor is how long answers to a question count, in pauses between two tries.
const openFor = 3

// ask sends a question to one member, or to all that are known.
func (t *requester) ask(to sbr.ID, wire []byte, byCoordinator bool) {
	p := t.p
	q := &question{by: t, until: p.clock() + openFor*t.every, wire: wire, given: make(map[*process]bool), byCoordinator: byCoordinator}
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
	t := a.to.requester(q.by.topic)
	if t == nil {
		w.post(a.to, q.by.p, &responseInFlight{q: q, from: a.to})
		return
	}
	t.hear(q)
}

// hear takes a question in.
func (t *requester) hear(q *question) {
	t.refs++
	t.questions[t.refs] = q
	t.hears.asked(t.refs, q)
}

// open returns the question of that reference, which is about to be answered; nil: it was not asked, or was
// answered before.
func (t *requester) open(ref uint64) *question {
	q := t.questions[ref]
	delete(t.questions, ref)
	return q
}

// answer sends an answer.
func (t *requester) answer(q *question, wire []byte) {
	if q.by.p == t.p {
		t.p.w.after(0, t.p, func() { q.by.hears.answered(q, t.p.id, wire) })
		return
	}
	t.p.w.post(t.p, q.by.p, &responseInFlight{q: q, from: t.p, wire: wire})
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
	q.by.hears.answered(q, a.from.id, a.wire)
}

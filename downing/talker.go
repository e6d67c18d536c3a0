package downing

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"
	"golang.org/x/time/rate"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What runs on top talks past the resolver: on goroutines of its own, in bounded numbers, and never on its
// loop.
const (
	// maxAsking is how many questions of this member may be open at the same time.
	maxAsking = 256
	// askRate and askBurst bound how many questions this member asks in each second.
	askRate, askBurst = 50, 200
	// maxWaiting is how many questions may wait for one handler. Those beyond it are dropped.
	maxWaiting = 256
)

// talker asks and answers for what runs on top of an engine. It is safe for concurrent use.
type talker struct {
	e        *engine
	complain *complaints
	limit    *rate.Limiter
	ctx      context.Context // ends with the talking
	cancel   context.CancelFunc
	work     sync.WaitGroup // questions of this member
	unserved service

	mu       sync.Mutex
	self     wire.Key // set by start
	started  bool
	asking   int
	services map[string]*service
}

func newTalker(e *engine) *talker {
	t := &talker{
		e: e, complain: newComplaints(e.log), limit: rate.NewLimiter(askRate, askBurst),
		services: make(map[string]*service),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.unserved.handle = func(q *pendingQuestion) {
		if err := t.respond(q, wire.Frame{Kind: wire.Unserved}); err != nil {
			e.log.Debug("sbr: a question was not answered", "from", string(q.from), "error", err)
		}
	}
	return t
}

// start admits questions of this member. Its node is there, and its identity is settled.
func (t *talker) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.self, t.started = wire.KeyOf(t.e.self.ID), true
}

// close ends all talking. It does not wait; work does.
func (t *talker) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel()
}

// takesPart reports whether this member may ask and answer.
func (t *talker) takesPart() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.started && t.ctx.Err() == nil && !t.e.life.isOver()
}

// service is one topic and its handler, which has the questions one at a time.
type service struct {
	serial
	handle func(*pendingQuestion)
}

// pendingQuestion is a question that has arrived.
type pendingQuestion struct {
	query
	from     sbr.ID
	body     []byte
	deadline time.Time

	mu       sync.Mutex
	answered bool
}

// hand hands a question over, and reports false if too many are waiting.
func (t *talker) hand(s *service, q *pendingQuestion) bool {
	return s.post(func() { guard(t.e.log, "a handler of questions", func() { s.handle(q) }) }, maxWaiting)
}

// Serve implements driver.
func (e *engine) Serve(topic string, f func(Question)) (stop func(), err error) {
	if err := wire.CheckTopic(topic); err != nil {
		return nil, fmt.Errorf("downing: %w", err)
	}
	t := e.talk
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.services[topic] != nil {
		return nil, fmt.Errorf("%w: %s", ErrTopicTaken, topic)
	}
	s := new(service)
	s.handle = func(q *pendingQuestion) {
		if !t.serves(topic, s) {
			t.hand(&t.unserved, q) // the handler was stopped meanwhile
			return
		}
		f(Question{From: q.from, Payload: q.body, Answer: func(payload []byte) error {
			return t.answer(q, payload)
		}})
	}
	t.services[topic] = s
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.services[topic] == s {
			delete(t.services, topic)
		}
	}, nil
}

func (t *talker) serves(topic string, s *service) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.services[topic] == s
}

// onQuestion handles a query of another member. It runs on the goroutine that reads the node's events, so it
// only looks and hands over.
func (t *talker) onQuestion(q query) {
	if !t.takesPart() {
		return
	}
	m, err := wire.DecodeFrame(q.payload)
	switch {
	case err != nil:
		t.ignore("a question", q.from, ignoredInvalid, err.Error())
		return
	case m.Kind != wire.Question:
		t.ignore("a question", q.from, ignoredInvalid, "it is no question")
		return
	case m.From == t.self, m.To != wire.Key{} && m.To != t.self:
		return
	}
	from := t.e.board.Load().index[m.From]
	if why := disbelief(from, q.from); why != "" {
		t.ignore("a question", q.from, ignoredForged, why)
		return
	}
	t.mu.Lock()
	s := t.services[m.Topic]
	t.mu.Unlock()
	if s == nil {
		s = &t.unserved
	}
	t.e.rec.add(countTalkHeard, m.Kind.String())
	if !t.hand(s, &pendingQuestion{query: q, from: from.ID, body: m.Payload,
		deadline: time.Now().Add(m.Within)}) {
		t.ignore("a question", q.from, ignoredOverload, "too many questions of the topic "+m.Topic+" are waiting")
	}
}

// disbelief says why a message does not count: p is its claimed sender, node where it came from if that is
// known. It is empty for a message that counts.
func disbelief(p *Peer, node string) string {
	switch {
	case p == nil:
		return "its sender is no member here"
	case node != "" && node != p.Name:
		return "it was sent by the node " + node
	case p.Status == sbr.Down:
		return "its sender is down"
	default:
		return ""
	}
}

func (t *talker) ignore(what, from, reason, why string) {
	t.e.rec.add(countTalkIgnored, reason)
	t.complain.log("sbr: ignored "+what, "from", from, "why", why)
}

// answer is Question.Answer.
func (t *talker) answer(q *pendingQuestion, payload []byte) error {
	if len(payload) > MaxTalk {
		return fmt.Errorf("%w: %d", ErrTalkSize, len(payload))
	}
	return t.respond(q, wire.Frame{Kind: wire.Answer, Payload: payload})
}

// respond sends the one answer to a question.
func (t *talker) respond(q *pendingQuestion, m wire.Frame) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !t.takesPart():
		return ErrNotMember
	case q.answered, time.Now().After(q.deadline):
		return ErrTooLate
	}
	m.From = t.self
	b, err := m.Encode()
	if err != nil {
		return fmt.Errorf("downing: %w", err)
	}
	if err := q.query.answer(b); err != nil {
		return fmt.Errorf("downing: the answer was not sent: %w", err)
	}
	q.answered = true
	t.e.rec.add(countTalkSent, m.Kind.String())
	return nil
}

// asked is one open question of this member.
type asked struct {
	t     *talker
	to    sbr.ID // empty: all members
	index map[wire.Key]*Peer
	given map[sbr.ID]struct{} // the members that have answered
	out   chan Answer
}

// Ask implements driver.
func (e *engine) Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (<-chan Answer, error) {
	if err := wire.CheckTopic(topic); err != nil {
		return nil, fmt.Errorf("downing: %w", err)
	}
	if len(payload) > MaxTalk {
		return nil, fmt.Errorf("%w: %d", ErrTalkSize, len(payload))
	}
	if timeout < time.Millisecond || timeout > wire.MaxWithin {
		return nil, fmt.Errorf("downing: the time-out of a question is %v: it must be 1ms to %v", timeout,
			wire.MaxWithin)
	}
	t := e.talk
	if !t.takesPart() {
		return nil, fmt.Errorf("%w: this member is not started, down, or stopped", ErrNotMember)
	}
	m := wire.Frame{Kind: wire.Question, From: t.self, Within: timeout.Truncate(time.Millisecond), Topic: topic,
		Payload: payload}
	index := e.board.Load().index
	a := &asked{t: t, to: to, index: index, given: make(map[sbr.ID]struct{}),
		out: make(chan Answer, len(index)+16)}
	if to != "" {
		m.To = wire.KeyOf(to)
		if p := index[m.To]; p == nil || p.ID == e.self.ID || p.Status == sbr.Down {
			return nil, fmt.Errorf("%w: %s", ErrNotMember, to)
		}
	}
	b, err := m.Encode()
	if err != nil {
		return nil, fmt.Errorf("downing: %w", err)
	}
	if err := t.begin(func() { a.run(b, timeout) }); err != nil {
		return nil, err
	}
	return a.out, nil
}

// begin runs one open question beside everything else, unless there are too many.
func (t *talker) begin(f func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return fmt.Errorf("%w: this member is down, or stopped", ErrNotMember)
	}
	if t.asking >= maxAsking || !t.limit.Allow() {
		return ErrTalkBusy
	}
	t.asking++
	t.work.Go(func() {
		defer func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.asking--
		}()
		f()
	})
	return nil
}

// run sends the question and passes answers on until it is over. A question that could not be sent stays
// open: to the caller it looks lost.
func (a *asked) run(b []byte, timeout time.Duration) {
	defer close(a.out)
	over := time.After(timeout)
	var answers <-chan serf.NodeResponse
	guard(a.t.e.log, "a question", func() {
		var err error
		if answers, err = a.t.e.node.query(wire.FrameQuery, b, timeout); err != nil {
			a.t.e.log.Debug("sbr: a question was not sent", "error", err)
			return
		}
		a.t.e.rec.add(countTalkSent, wire.Question.String())
	})
	for {
		select {
		case r, more := <-answers:
			if !more {
				answers = nil // Serf's time is over a moment earlier
			} else if a.take(&r) {
				return
			}
		case <-over:
			return
		case <-a.t.ctx.Done():
			return
		}
	}
}

// take passes an answer on, and reports whether it was the last one.
func (a *asked) take(r *serf.NodeResponse) (last bool) {
	m, err := wire.DecodeFrame(r.Payload)
	switch {
	case err != nil:
		a.t.ignore("an answer", r.From, ignoredInvalid, err.Error())
		return false
	case m.Kind == wire.Question:
		a.t.ignore("an answer", r.From, ignoredInvalid, "it is no answer")
		return false
	}
	from, why := a.sender(m.From, r.From)
	if why != "" {
		a.t.ignore("an answer", r.From, ignoredForged, why)
		return false
	}
	if _, twice := a.given[from]; twice {
		return false
	}
	a.given[from] = struct{}{}
	a.t.e.rec.add(countTalkHeard, m.Kind.String())
	select {
	case a.out <- Answer{From: from, Payload: m.Payload, Unserved: m.Kind == wire.Unserved}:
	default: // more members have joined since than there is room for
	}
	return a.to != ""
}

// sender returns the member that answered, or why what it says does not count.
func (a *asked) sender(key wire.Key, node string) (id sbr.ID, why string) {
	p := a.t.e.board.Load().index[key]
	if p == nil {
		p = a.index[key] // it has left since
	}
	switch why = disbelief(p, node); {
	case why != "":
		return "", why
	case a.to != "" && p.ID != a.to:
		return "", "somebody else was asked"
	case a.t.e.keepOut.list.Load().isOut(p.ID, p.Seen):
		return "", "its sender is down"
	default:
		return p.ID, ""
	}
}

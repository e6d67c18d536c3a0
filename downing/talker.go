package downing

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/serf-sbr/serf-sbr/downing/talk"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// What runs on top talks past the resolver: on goroutines of its own, in bounded numbers, and never on its loop.
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
	complain complaints
	limit    *rate.Limiter
	ctx      context.Context // ends with the talking
	cancel   context.CancelFunc
	work     sync.WaitGroup // questions of this member
	unserved service

	mu       sync.Mutex
	self     talk.Key // set by start
	started  bool
	closed   bool
	asking   int
	services map[string]*service
}

func newTalker(e *engine) *talker {
	t := &talker{e: e, limit: rate.NewLimiter(askRate, askBurst), services: make(map[string]*service)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.unserved.log = e.log
	t.unserved.f = func(q *pendingQuestion) {
		if err := t.respond(q, talk.Message{Kind: talk.Unserved}); err != nil {
			e.log.Debug("sbr: a question was not answered", "from", string(q.from), "error", err)
		}
	}
	return t
}

// start admits questions of this member. Its node is there, and its identity is settled.
func (t *talker) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.self, t.started = talk.KeyOf(t.e.self.ID), true
}

// close ends all talking. It does not wait; work does.
func (t *talker) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
}

// takesPart reports whether this member may ask and answer.
func (t *talker) takesPart() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.started && !t.closed && !t.e.life.isOver()
}

// service is one topic and its handler. Questions are handed over one at a time, on a goroutine that lives only while there are some.
type service struct {
	log *slog.Logger
	f   func(*pendingQuestion)

	mu      sync.Mutex
	queue   []*pendingQuestion
	running bool
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

// offer hands a question over, and reports false if too many are waiting.
func (s *service) offer(q *pendingQuestion) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= maxWaiting {
		return false
	}
	s.queue = append(s.queue, q)
	if !s.running {
		s.running = true
		go s.run()
	}
	return true
}

func (s *service) run() {
	for q := s.next(); q != nil; q = s.next() {
		guard(s.log, "a handler of questions", func() { s.f(q) })
	}
}

func (s *service) next() *pendingQuestion {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.running, s.queue = false, nil
		return nil
	}
	q := s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	return q
}

// Serve implements host.
func (e *engine) Serve(topic string, f func(Question)) (stop func(), err error) {
	if err := talk.CheckTopic(topic); err != nil {
		return nil, fmt.Errorf("downing: %w", err)
	}
	t := e.talk
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.services[topic] != nil {
		return nil, fmt.Errorf("%w: %s", ErrTopicTaken, topic)
	}
	s := &service{log: e.log}
	s.f = func(q *pendingQuestion) {
		if !t.serves(topic, s) {
			t.unserved.offer(q) // the handler was stopped meanwhile
			return
		}
		f(Question{From: q.from, Payload: q.body, Answer: func(payload []byte) error { return t.answer(q, payload) }})
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

// onQuestion takes in a query of another member. It runs on the goroutine that reads the node's events, so it only looks and hands over.
func (t *talker) onQuestion(q query) {
	if !t.takesPart() {
		return
	}
	m, err := talk.Decode(q.payload)
	switch {
	case err != nil:
		t.ignore(&q, ignoredInvalid, err.Error())
		return
	case m.Kind != talk.Question:
		t.ignore(&q, ignoredInvalid, "it is no question")
		return
	case m.From == t.self, m.To != talk.Key{} && m.To != t.self:
		return
	}
	_, index := t.e.board.read()
	from := index[m.From]
	switch {
	case from == nil:
		t.ignore(&q, ignoredForged, "its sender is no member here")
		return
	case q.from != "" && q.from != from.Name:
		t.ignore(&q, ignoredForged, "it was sent by the node "+q.from)
		return
	case from.Status == sbr.Down:
		t.ignore(&q, ignoredForged, "its sender is down")
		return
	}
	t.mu.Lock()
	s := t.services[m.Topic]
	t.mu.Unlock()
	if s == nil {
		s = &t.unserved
	}
	t.e.metrics.talkHeard.add(m.Kind.String())
	if !s.offer(&pendingQuestion{query: q, from: from.ID, body: m.Payload, deadline: time.Now().Add(m.Within)}) {
		t.ignore(&q, ignoredOverload, "too many questions of the topic "+m.Topic+" are waiting")
	}
}

func (t *talker) ignore(q *query, reason, why string) {
	t.e.metrics.talkIgnored.add(reason)
	t.complain.log(t.e, "sbr: ignored a question", "from", q.from, "why", why)
}

// answer is Question.Answer.
func (t *talker) answer(q *pendingQuestion, payload []byte) error {
	if len(payload) > MaxTalk {
		return fmt.Errorf("%w: %d", ErrTalkSize, len(payload))
	}
	return t.respond(q, talk.Message{Kind: talk.Answer, Payload: payload})
}

// respond sends the one answer to a question. Serf's way to answer is not made for a node that is gone: it panics.
func (t *talker) respond(q *pendingQuestion, m talk.Message) (err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !t.takesPart():
		return ErrNotMember
	case q.answered, time.Now().After(q.deadline):
		return ErrTooLate
	}
	m.From = t.self
	b, err := talk.Encode(m)
	if err != nil {
		return fmt.Errorf("downing: %w", err)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the node is gone: %v", ErrNotMember, p)
		}
	}()
	if err := q.respond(b); err != nil {
		return fmt.Errorf("downing: the answer was not sent: %w", err)
	}
	q.answered = true
	t.e.metrics.talkSent.add(m.Kind.String())
	return nil
}

package downing

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// onSerfEvent sees every event before the application does. It runs on the tap's goroutine.
func (e *engine) onSerfEvent(ev serf.Event) (own bool) {
	q, ok := ev.(*serf.Query)
	if !ok {
		if ev.EventType() <= serf.EventMemberReap {
			e.lookSoon()
		}
		return false
	}
	e.onQuery(q.Name, q.SourceNode(), q.Payload, q.Respond)
	return q.Name == wire.MessageQuery || q.Name == wire.FrameQuery
}

// lookSoon makes the loop look at the membership; one look is enough for a burst.
func (e *engine) lookSoon() {
	if e.looking.CompareAndSwap(false, true) {
		e.inbox.Post(func() {
			e.looking.Store(false)
			e.poll()
		})
	}
}

// query is a message of another member as it arrived. from is empty where Serf does not say whose it is.
type query struct {
	from    string
	payload []byte
	respond func([]byte) error
	asked   bool // it answers a question of this member
}

// onQuery handles a query that the node has received.
func (e *engine) onQuery(name, from string, payload []byte, respond func([]byte) error) {
	switch q := (query{from: from, payload: payload, respond: respond}); name {
	case wire.MessageQuery:
		e.onGossip(q)
	case wire.FrameQuery:
		e.talk.onQuestion(q)
	}
}

// onGossip passes a message to the loop. While a start waits for the store there is none, and when it begins
// what came is out of date; after Stop there is none either.
func (e *engine) onGossip(q query) {
	if !e.isRunning() || isClosed(e.looped) && !e.life.isOver() {
		return
	}
	m, err := wire.Decode(q.payload)
	switch {
	case err != nil:
		e.ignore(&q, &m, ignoredInvalid, err.Error())
	case m.From == e.self.ID:
	case e.life.isOver():
		if m.Names(e.self.ID) && (m.Kind == wire.KindVerdict || m.Kind == wire.KindOrder) {
			// The sender need not wait for a time-out: this member knows its standing, but its loop has
			// ended. The members of a losing side go down at the same moment, and tell each other.
			go e.respond(&q, wire.Message{Kind: wire.KindDone})
		}
	case e.pending.Load() >= maxPending:
		e.ignore(&q, &m, ignoredOverload, "too many messages are waiting")
	default:
		e.pending.Add(1)
		e.inbox.Post(func() {
			e.pending.Add(-1)
			e.onMessage(&q, m)
		})
	}
}

// answer sends one answer. Serf's way to answer is not made for a node that is gone: it panics.
func (q *query) answer(b []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: the node is gone: %v", ErrNotMember, p)
		}
	}()
	return q.respond(b)
}

func (e *engine) respond(q *query, m wire.Message) {
	if q.respond == nil {
		return
	}
	m.From = e.self.ID
	payloads := wire.Encode(m)
	if len(payloads) == 0 {
		return
	}
	if err := q.answer(payloads[0]); err != nil {
		e.log.Debug("sbr: an answer was not sent", "to", q.from, "error", err)
		return
	}
	e.rec.add(countSent, string(m.Kind))
}

// onMessage handles the message of another member. An answer means that it was handled, not merely received.
func (e *engine) onMessage(q *query, m wire.Message) {
	e.rec.add(countHeard, string(m.Kind))
	switch why := e.forged(q, &m); {
	case why == foreignSender && m.Kind == wire.KindBye: // said again: by the first one it is no member any more
		return
	case why != "":
		e.ignore(q, &m, ignoredForged, why)
		return
	}
	e.members.heard(m.From)
	if m.Kind == wire.KindReport {
		e.tracker.Reported(e.now(), m.From, m.Age(), m.Down, m.Up)
		e.probeUrgent()
		e.weighSoon()
		return
	}
	if e.gathering { // a decision of others is judged by all that they have sent
		e.weigh(false)
	}
	switch m.Kind {
	case wire.KindVerdict:
		e.observeTold(&m)
		e.told(q, m)
	case wire.KindOrder:
		e.observeTold(&m)
		m.Suspects = e.members.running(m.Suspects)
		e.step(m.Event())
		e.members.miss(m.Suspects...)
		if slices.ContainsFunc(m.Down, e.ordered) {
			e.rec.ordered(&m)
		}
		e.acknowledge(q, &m)
	case wire.KindAsk:
		if slices.Contains(m.Up, e.self.ID) {
			e.suspects(&m)
		}
	case wire.KindClear:
		e.suspects(&m)
	case wire.KindBye:
		if k := e.members.known[m.From]; k == nil || !k.goodbye {
			e.occur(about(OccurredGoodbye, m.From, " says goodbye"))
		}
		if e.members.saidGoodbye(m.From) {
			e.step(sbr.MemberGone{ID: m.From, Ended: true})
		}
		e.lookSoon()
	case wire.KindStanding:
		if answer := wire.Answering(e.self.ID, e.resolver.Answer(m.From, m.Seen)); answer != nil {
			e.respond(q, *answer)
		}
	}
}

// suspects handles a message whose sender cannot reach m.Down.
func (e *engine) suspects(m *wire.Message) {
	heard := *m
	heard.Down = e.members.running(m.Down)
	e.step(heard.Event())
	e.members.miss(m.Down...)
}

// acknowledge tells the sender that a message that names this member was handled.
func (e *engine) acknowledge(q *query, m *wire.Message) {
	if m.Names(e.self.ID) && e.tookIn(m) {
		e.respond(q, wire.Message{Kind: wire.KindDone})
	}
}

// tookIn reports whether the resolver acted on a verdict or an order. A message that it ignored, because it
// does not see yet what the sender sees, must be sent again.
func (e *engine) tookIn(m *wire.Message) bool {
	switch {
	case m.Kind == wire.KindVerdict:
		v := e.resolver.Verdict()
		return e.ended || v.Token >= m.Token
	case m.Kind != wire.KindOrder:
		return false
	case slices.Contains(m.Down, e.self.ID):
		// It goes down, or it tries first what the sender gave up (and then counts the sender as down).
		return e.ended || slices.Contains(m.Down, m.From) && e.ordered(m.From)
	default:
		return !slices.ContainsFunc(m.Down, func(id sbr.ID) bool { return !e.ordered(id) })
	}
}

// ordered reports whether an incarnation is kept out by an order, whatever verdicts say.
func (e *engine) ordered(id sbr.ID) bool { return e.resolver.KeptOut(id, math.MaxUint64) }

// exchange sends the payloads of a message to every member, one query for each. heard, if it is not nil,
// has every answer that can be read, until the time of the queries is over.
func (e *engine) exchange(kind wire.Kind, payloads [][]byte, heard func(from string, m wire.Message)) {
	for _, payload := range payloads {
		answers, err := e.node.query(wire.MessageQuery, payload, wire.QueryTime)
		if err != nil {
			e.log.Debug("sbr: a message was not sent", "kind", kind, "error", err)
			continue
		}
		e.rec.add(countSent, string(kind))
		if heard == nil {
			continue
		}
		e.spawn(&e.workers, func() {
			for a := range answers {
				if m, err := wire.Decode(a.Payload); err == nil {
					heard(a.From, m)
				}
			}
		})
	}
}

// tellings is how often a message is sent in the time of one query. A broadcast is passed on a few times
// only, at random: gossip passes over one member in a hundred, and more where most members are unreachable.
const tellings = 4

// send sends a message to all members, several times, without waiting for answers.
func (e *engine) send(m wire.Message, times int) {
	payloads := wire.Encode(m) // here: what it names is the loop's
	e.spawn(&e.workers, func() {
		for n := 0; n < times && !e.isGone(); n++ {
			if n > 0 {
				e.rest(wire.QueryTime / tellings)
			}
			e.exchange(m.Kind, payloads, nil)
		}
	})
}

// times is how often a message without an answer is sent: more than once in a small cluster only.
func (e *engine) times() int {
	if e.tracker.Small() {
		return tellings
	}
	return 1
}

// sayGoodbye tells the others that this member decides nothing any more: any member can make Serf report a
// leave. A member that has not received the goodbye suspects this one.
func (e *engine) sayGoodbye() {
	e.occur(Occurrence{Kind: OccurredGoodbye,
		Text: "says goodbye: this member leaves, and decides nothing any more"})
	e.send(wire.Message{Kind: wire.KindBye, From: e.self.ID}, tellings)
}

// isGone reports whether nothing can be said any more.
func (e *engine) isGone() bool { return e.ctx.Err() != nil || isClosed(e.node.done()) }

// askStanding asks all members for this member's standing and handles every answer, unless this member has stood
// still since: the answers may be older than a verdict.
func (e *engine) askStanding() {
	payloads, pauses := wire.Encode(wire.Message{Kind: wire.KindStanding, From: e.self.ID, Seen: e.self.Seen}),
		e.pauses
	e.spawn(&e.workers, func() {
		e.exchange(wire.KindStanding, payloads, func(from string, m wire.Message) {
			e.inbox.Post(func() {
				if e.pauses == pauses {
					e.onMessage(&query{from: from, asked: true}, m)
				}
			})
		})
	})
}

func (e *engine) unlisted(id sbr.ID) bool {
	m, known := e.resolver.Member(id)
	return known && m.Unlisted
}

// tell repeats a message until every target has acknowledged it or is gone, or Config.TellFor is over.
func (e *engine) tell(m wire.Message, targets []sbr.ID) {
	payloads, waiting := wire.Encode(m), make(map[sbr.ID]bool, len(targets))
	for _, id := range targets {
		if m.Names(id) {
			waiting[id] = true
		}
	}
	if len(waiting) == 0 {
		return
	}
	until := time.Now().Add(e.cfg.TellFor)
	e.rec.busy(1)
	began, told, answered := time.Now(), len(waiting), 0
	e.spawn(&e.tells, func() {
		defer func() { e.rec.told(m.Kind, began, told, answered, len(waiting)) }()
		for len(waiting) > 0 && time.Now().Before(until) && !e.isGone() {
			before := len(waiting)
			e.tellOnce(m.Kind, payloads, waiting)
			answered += before - len(waiting)
			e.dropGone(waiting)
		}
		if len(waiting) > 0 && !e.isGone() {
			e.log.Warn("sbr: some members did not answer what they were told", "kind", m.Kind, "members", len(waiting),
				"for", e.cfg.TellFor)
		}
	})
}

// tellOnce sends the message, again while a member has not answered (see tellings), and collects answers for
// the time of one query. A member answers the payload that names it.
func (e *engine) tellOnce(kind wire.Kind, payloads [][]byte, waiting map[sbr.ID]bool) {
	done, over := make(chan sbr.ID), make(chan struct{})
	defer close(over)
	round, again := time.NewTimer(wire.QueryTime), time.NewTicker(wire.QueryTime/tellings)
	defer round.Stop()
	defer again.Stop()
	hear := func(from string, a wire.Message) {
		if a.Kind != wire.KindDone || from != "" && from != NameOf(a.From) {
			return
		}
		select {
		case done <- a.From:
		case <-over:
		}
	}
	e.exchange(kind, payloads, hear)
	for len(waiting) > 0 {
		select {
		case <-again.C:
			e.exchange(kind, payloads, hear)
		case id := <-done:
			e.rec.add(countHeard, string(wire.KindDone))
			delete(waiting, id)
		case <-round.C:
			return
		case <-e.ctx.Done():
			return
		}
	}
}

// dropGone stops waiting for members that Serf no longer calls alive: they have left, or are past hearing.
func (e *engine) dropGone(waiting map[sbr.ID]bool) {
	alive := make(map[sbr.ID]bool)
	list, _, silence := e.node.members()
	if silence != nil {
		return
	}
	for _, m := range list {
		if m.Status == serf.StatusAlive || m.Status == serf.StatusLeaving {
			alive[idOf(&m)] = true
		}
	}
	maps.DeleteFunc(waiting, func(id sbr.ID, _ bool) bool { return !alive[id] })
}

func oneLine(err error) string {
	if err == nil {
		return ""
	}
	return strings.NewReplacer("\n\t", " ", "\n", "; ").Replace(err.Error()) // drivers indent what goes on
}

package downing

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/downing/talk"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// queryTimeout is how long answers to one query are awaited, and so the pause between two tellings.
const queryTimeout = time.Second

// onSerfEvent sees every event before the application does. It runs on the tap's goroutine.
func (e *engine) onSerfEvent(ev serf.Event) (own bool) {
	q, ok := ev.(*serf.Query)
	if !ok {
		if ev.EventType() <= serf.EventMemberReap {
			e.lookSoon()
		}
		return false
	}
	switch took := (query{from: q.SourceNode(), payload: q.Payload, respond: q.Respond}); q.Name {
	case gossip.QueryName:
		e.onQuery(took)
	case talk.QueryName:
		e.talk.onQuestion(took)
	default:
		return false
	}
	return true
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

func (e *engine) onQuery(q query) {
	m, err := gossip.Decode(q.payload)
	switch {
	case err != nil:
		e.metrics.dropped(noKind, ignoredInvalid)
		e.ignore(&q, "", err.Error())
	case m.From == e.self.ID:
	case e.life.isOver():
		if m.Names(e.self.ID) && (m.Kind == gossip.KindVerdict || m.Kind == gossip.KindOrder) {
			go e.answerDowned(q)
		}
	case e.pending.Load() >= maxPending:
		e.metrics.dropped(string(m.Kind), ignoredOverload)
		e.ignore(&q, m.Kind, "too many messages are waiting")
	default:
		e.pending.Add(1)
		e.inbox.Post(func() {
			e.pending.Add(-1)
			e.onMessage(&q, m)
		})
	}
}

// answerDowned spares whoever tells this member its fate the wait: it knows, but its loop has ended. The members of a losing side
// go down at the same moment, and tell each other.
func (e *engine) answerDowned(q query) {
	defer func() { _ = recover() }() // Serf's way to answer is not made for a node that leaves
	e.respond(&q, gossip.Message{Kind: gossip.KindDone})
}

func (e *engine) respond(q *query, m gossip.Message) {
	if q.respond == nil {
		return
	}
	m.From = e.self.ID
	payloads := gossip.Encode(m)
	if len(payloads) == 0 {
		return
	}
	if err := q.respond(payloads[0]); err != nil {
		e.log.Debug("sbr: an answer was not sent", "to", q.from, "error", err)
		return
	}
	e.metrics.sent.add(string(m.Kind))
}

// onMessage takes in what another member said. An answer means that it was handled, not merely received.
func (e *engine) onMessage(q *query, m gossip.Message) {
	e.metrics.heard.add(string(m.Kind))
	if why := e.forged(q, &m); why != "" {
		e.metrics.dropped(string(m.Kind), ignoredForged)
		e.ignore(q, m.Kind, why)
		return
	}
	e.members.heard(m.From)
	answer := func(a gossip.Message) { e.respond(q, a) }
	switch m.Kind {
	case gossip.KindReport:
		e.tracker.Reported(e.now(), m.From, m.Down, m.Up)
		e.weigh(false)
	case gossip.KindVerdict:
		e.observeTold(&m)
		e.told(q, m, answer)
	case gossip.KindOrder:
		e.observeTold(&m)
		m.Suspects = e.members.running(m.Suspects)
		e.step(sbr.Ordered{From: m.From, Order: m.Order()})
		e.members.miss(m.Suspects...)
		e.obeyed(&m)
		e.acknowledge(&m, answer)
	case gossip.KindAsk:
		if slices.Contains(m.Up, e.self.ID) {
			e.step(sbr.Asked{From: m.From, Suspects: e.members.running(m.Down)})
			e.members.miss(m.Down...)
		}
	case gossip.KindClear:
		e.step(sbr.Cleared{From: m.From, Token: m.Token, Unsure: m.Unsure, Suspects: e.members.running(m.Down)})
		e.members.miss(m.Down...)
	case gossip.KindBye:
		e.occur(about(OccurredGoodbye, m.From, " says goodbye"))
		if e.members.saidGoodbye(m.From) {
			e.step(sbr.MemberGone{ID: m.From, Ended: true})
		}
		e.lookSoon()
	case gossip.KindStanding:
		e.answerStanding(m, answer)
	}
}

// acknowledge tells the sender that a message that names this member was taken in.
func (e *engine) acknowledge(m *gossip.Message, answer func(gossip.Message)) {
	if m.Names(e.self.ID) && e.tookIn(m) {
		answer(gossip.Message{Kind: gossip.KindDone})
	}
}

// tookIn reports whether the resolver acted on a verdict or an order. One that it ignored, because it does not see yet what the sender
// sees, must be told again.
func (e *engine) tookIn(m *gossip.Message) bool {
	switch {
	case m.Kind == gossip.KindVerdict:
		v := e.resolver.Verdict()
		return e.ended || v.Token >= m.Token
	case m.Kind != gossip.KindOrder:
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

// answerStanding answers a member that asks for its fate.
func (e *engine) answerStanding(m gossip.Message, answer func(gossip.Message)) {
	switch a := e.resolver.Answer(m.From, m.Seen).(type) {
	case sbr.Told:
		answer(gossip.Message{Kind: gossip.KindVerdict, Token: a.Verdict.Token, By: a.Verdict.DecidedBy, Down: a.Verdict.Down, Reason: a.Verdict.Reason})
	case sbr.Ordered:
		answer(gossip.Message{Kind: gossip.KindOrder, Decided: a.Order.Kind.String(), Down: a.Order.Down, Reason: a.Order.Reason})
	case sbr.Cleared:
		answer(gossip.Message{Kind: gossip.KindClear, Token: a.Token, Unsure: a.Unsure, Down: gossip.Some(a.Suspects)})
	}
}

// send tells everybody something once, without waiting for answers.
func (e *engine) send(m gossip.Message) {
	payloads := gossip.Encode(m)
	e.spawn(&e.workers, func() {
		for _, b := range payloads {
			if _, err := e.query(m.Kind, b); err != nil {
				e.log.Debug("sbr: a message was not sent", "kind", m.Kind, "error", err)
			}
		}
	})
}

func (e *engine) askToRace(eff sbr.AskToRace) {
	e.send(gossip.Message{Kind: gossip.KindAsk, From: e.self.ID, Up: eff.Targets, Down: gossip.Some(eff.Suspects)})
}

// sayGoodbye tells the others that this member decides nothing any more: Serf's word that it leaves could be anybody's.
func (e *engine) sayGoodbye() {
	e.occur(Occurrence{Kind: OccurredGoodbye, Text: "says goodbye: this member leaves, and decides nothing any more"})
	e.send(gossip.Message{Kind: gossip.KindBye, From: e.self.ID})
}

// askStanding asks everybody for this member's fate and takes in every answer.
func (e *engine) askStanding() {
	payloads := gossip.Encode(gossip.Message{Kind: gossip.KindStanding, From: e.self.ID, Seen: e.self.Seen})
	e.spawn(&e.workers, func() {
		for _, b := range payloads { // it is one
			answers, err := e.query(gossip.KindStanding, b)
			if err != nil {
				e.log.Debug("sbr: a question was not sent", "error", err)
				return
			}
			for a := range answers {
				if m, err := gossip.Decode(a.Payload); err == nil {
					e.inbox.Post(func() { e.onMessage(&query{from: a.From, asked: true}, m) })
				}
			}
		}
	})
}

// tellVerdict tells the targets a verdict: whole if it fits, else at least who of the targets stays and everybody who goes.
func (e *engine) tellVerdict(eff sbr.TellVerdict) {
	v := eff.Verdict
	m := gossip.Message{Kind: gossip.KindVerdict, From: e.self.ID, Token: v.Token, By: v.DecidedBy, Reason: v.Reason,
		Up: v.Survivors, Down: v.Down, Whole: !v.Partial}
	e.tell(m, eff.Targets)
}

func (e *engine) tellOrder(eff sbr.TellOrder) {
	o := eff.Order
	m := gossip.Message{
		Kind: gossip.KindOrder, From: e.self.ID, Decided: o.Kind.String(), Reason: o.Reason,
		Down: o.Down, Up: others(eff.Targets, o.Down),
	}
	// Members of version 1 do not read an order with suspects, and need none unless they forgot them.
	if slices.ContainsFunc(o.Suspects, e.unlisted) {
		m.Suspects = gossip.Some(o.Suspects)
	}
	e.tell(m, eff.Targets)
}

func (e *engine) unlisted(id sbr.ID) bool {
	m, known := e.resolver.Member(id)
	return known && m.Unlisted
}

func others(targets, down []sbr.ID) (rest []sbr.ID) {
	gone := make(map[sbr.ID]bool, len(down))
	for _, id := range down {
		gone[id] = true
	}
	for _, id := range targets {
		if !gone[id] {
			rest = append(rest, id)
		}
	}
	return rest
}

// tell repeats a message until every target has said that it took it in, is gone, or Config.TellFor is over.
func (e *engine) tell(m gossip.Message, targets []sbr.ID) {
	payloads := gossip.Encode(m)
	waiting := make(map[sbr.ID]bool, len(targets))
	for _, id := range targets {
		if m.Names(id) {
			waiting[id] = true
		}
	}
	if len(waiting) == 0 {
		return
	}
	until := time.Now().Add(e.cfg.TellFor)
	t := e.newTelling(m.Kind, waiting)
	e.spawn(&e.tells, func() {
		defer func() { e.toldAll(&t, waiting) }()
		for len(waiting) > 0 && time.Now().Before(until) && e.ctx.Err() == nil && !isDone(e.node) {
			before := len(waiting)
			e.tellOnce(m.Kind, payloads, waiting)
			t.answered += before - len(waiting)
			e.dropGone(waiting)
		}
		if len(waiting) > 0 && e.ctx.Err() == nil && !isDone(e.node) {
			e.log.Warn("sbr: some members did not answer what they were told", "kind", m.Kind, "members", len(waiting), "for", e.cfg.TellFor)
		}
	})
}

// tellOnce sends every payload once and collects answers for the time of one query. A member answers the payload that names it.
func (e *engine) tellOnce(kind gossip.Kind, payloads [][]byte, waiting map[sbr.ID]bool) {
	done := make(chan sbr.ID)
	over := make(chan struct{})
	defer close(over)
	round := time.NewTimer(queryTimeout)
	defer round.Stop()
	for _, b := range payloads {
		answers, err := e.query(kind, b)
		if err != nil {
			e.log.Debug("sbr: a telling was not sent", "error", err)
			continue
		}
		e.spawn(&e.workers, func() { collect(answers, done, over) })
	}
	for len(waiting) > 0 {
		select {
		case id := <-done:
			e.metrics.heard.add(string(gossip.KindDone))
			delete(waiting, id)
		case <-round.C:
			return
		case <-e.ctx.Done():
			return
		}
	}
}

// collect passes on who has taken in what it was told, until Serf closes the channel at the query's time-out.
func collect(answers <-chan serf.NodeResponse, done chan<- sbr.ID, over <-chan struct{}) {
	for a := range answers {
		if m, err := gossip.Decode(a.Payload); err == nil && m.Kind == gossip.KindDone && (a.From == "" || a.From == NameOf(m.From)) {
			select {
			case done <- m.From:
			case <-over:
			}
		}
	}
}

// dropGone stops waiting for members that Serf no longer calls alive: they have left, or are past hearing.
func (e *engine) dropGone(waiting map[sbr.ID]bool) {
	alive := make(map[sbr.ID]bool)
	list, current := e.node.members()
	if !current {
		return
	}
	for _, m := range list {
		if m.Status == serf.StatusAlive || m.Status == serf.StatusLeaving {
			alive[idOf(&m)] = true
		}
	}
	for id := range waiting {
		if !alive[id] {
			delete(waiting, id)
		}
	}
}

func (e *engine) explain(x sbr.Explain) {
	e.count(&x)
	if x.What == sbr.TopicArmed {
		e.warnOfTiming()
	}
	e.occur(e.explained(&x))
}

func oneLine(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

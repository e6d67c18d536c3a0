package downing

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// queryTimeout is how long answers to one query are awaited, and so the pause between two tellings.
const queryTimeout = time.Second

// onSerfEvent sees every event before the application does. It runs on the tap's goroutine.
func (e *engine) onSerfEvent(ev serf.Event) (own bool) {
	q, ok := ev.(*serf.Query)
	if !ok {
		if ev.EventType() <= serf.EventMemberReap {
			e.inbox.post(e.poll)
		}
		return false
	}
	if q.Name != gossip.QueryName {
		return false
	}
	m, err := gossip.Decode(q.Payload)
	switch {
	case err != nil:
		e.log.Warn("sbr: ignored a message", "from", q.SourceNode(), "error", err)
	case m.From != e.self.ID:
		e.inbox.post(func() { e.onMessage(m, func(answer gossip.Message) { e.respond(q, answer) }) })
	}
	return true
}

func (e *engine) respond(q *serf.Query, m gossip.Message) {
	m.From = e.self.ID
	for _, b := range gossip.Encode(m)[:1] {
		if err := q.Respond(b); err != nil {
			e.log.Debug("sbr: an answer was not sent", "to", q.SourceNode(), "error", err)
		}
	}
}

// onMessage takes in what another member said. An answer means that it was handled, not merely received.
func (e *engine) onMessage(m gossip.Message, answer func(gossip.Message)) {
	switch m.Kind {
	case gossip.KindReport:
		e.tracker.Reported(e.now(), m.From, m.Down, m.Up)
		e.weigh(false)
	case gossip.KindVerdict:
		e.observeTold(m, "verdict %d", m.Token)
		e.step(sbr.Told{From: m.From, Verdict: m.Verdict()})
	case gossip.KindOrder:
		e.observeTold(m, "order %s", m.Decided)
		e.step(sbr.Ordered{From: m.From, Order: m.Order()})
	case gossip.KindAsk:
		if m.Names(e.self.ID) {
			e.step(sbr.Asked{From: m.From})
		}
	case gossip.KindClear:
		e.step(sbr.Cleared{From: m.From, Token: m.Token})
	case gossip.KindStanding:
		answer(e.standing(m))
		return
	}
	if m.Names(e.self.ID) && (m.Kind == gossip.KindVerdict || m.Kind == gossip.KindOrder) {
		answer(gossip.Message{Kind: gossip.KindDone})
	}
}

func (e *engine) observeTold(m gossip.Message, format string, args ...any) {
	if m.Names(e.self.ID) {
		e.observe(OccurredTold, NameOf(m.From), "%s told it: "+format, append([]any{NameOf(m.From)}, args...)...)
	}
}

// standing answers a member that asks for its fate.
func (e *engine) standing(m gossip.Message) gossip.Message {
	v := e.resolver.Verdict()
	switch {
	case v.Standing(m.From, m.Seen) == sbr.Out:
		return gossip.Message{Kind: gossip.KindVerdict, Token: v.Token, By: v.DecidedBy, Down: []sbr.ID{m.From}, Reason: v.Reason}
	case e.resolver.KeptOut(m.From, m.Seen):
		return gossip.Message{Kind: gossip.KindOrder, Decided: sbr.DownUnreachable.String(), Down: []sbr.ID{m.From}, Reason: "this incarnation was downed while it could not be reached"}
	default:
		return gossip.Message{Kind: gossip.KindClear, Token: v.Token}
	}
}

// send tells everybody something once, without waiting for answers.
func (e *engine) send(m gossip.Message) {
	payloads := gossip.Encode(m)
	e.workers.Go(func() {
		for _, b := range payloads {
			if _, err := e.node.query(b, queryTimeout); err != nil {
				e.log.Debug("sbr: a message was not sent", "kind", m.Kind, "error", err)
			}
		}
	})
}

func (e *engine) askToRace(eff sbr.AskToRace) {
	e.send(gossip.Message{Kind: gossip.KindAsk, From: e.self.ID, Up: eff.Targets})
}

// askStanding asks everybody for this member's fate and takes in every answer.
func (e *engine) askStanding() {
	payload := gossip.Encode(gossip.Message{Kind: gossip.KindStanding, From: e.self.ID, Seen: e.self.Seen})[0]
	e.workers.Go(func() {
		answers, err := e.node.query(payload, queryTimeout)
		if err != nil {
			return
		}
		for a := range answers {
			if m, err := gossip.Decode(a.Payload); err == nil {
				e.inbox.post(func() { e.onMessage(m, func(gossip.Message) {}) })
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
	e.tell(gossip.Message{Kind: gossip.KindOrder, From: e.self.ID, Decided: o.Kind.String(), Reason: o.Reason, Down: o.Down, Up: others(eff.Targets, o.Down)}, eff.Targets)
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
	e.tells.Go(func() {
		for len(waiting) > 0 && time.Now().Before(until) && e.ctx.Err() == nil {
			e.tellOnce(payloads, waiting)
			e.dropGone(waiting)
		}
		if len(waiting) > 0 {
			e.log.Warn("sbr: some members did not answer what they were told", "kind", m.Kind, "members", len(waiting), "for", e.cfg.TellFor)
		}
	})
}

func (e *engine) tellOnce(payloads [][]byte, waiting map[sbr.ID]bool) {
	round := time.Now()
	for i, b := range payloads {
		answers, err := e.node.query(b, queryTimeout)
		if err != nil {
			e.log.Debug("sbr: a telling was not sent", "error", err)
			continue
		}
		if i < len(payloads)-1 {
			e.workers.Go(func() { drain(answers) })
			continue
		}
		for a := range answers {
			if m, err := gossip.Decode(a.Payload); err == nil && m.Kind == gossip.KindDone {
				delete(waiting, m.From)
			}
			if len(waiting) == 0 {
				e.workers.Go(func() { drain(answers) })
				return
			}
		}
	}
	if rest := queryTimeout - time.Since(round); rest > 0 && len(waiting) > 0 {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-e.ctx.Done():
		}
	}
}

func drain(answers <-chan serf.NodeResponse) {
	for range answers { //nolint:revive // Serf closes the channel at the query's time-out
	}
}

// dropGone stops waiting for members that Serf no longer calls alive: they have left, or are past hearing.
func (e *engine) dropGone(waiting map[sbr.ID]bool) {
	alive := make(map[sbr.ID]bool)
	for _, m := range e.node.members() {
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
	level := e.log.Info
	if x.What == sbr.TopicDecision {
		level = e.log.Warn
		e.metrics.decided(x.Decision)
	}
	level("sbr: "+x.Text, "member", e.self.Name, "topic", string(x.What))
	o := Occurrence{Kind: string(x.What), Text: x.Text}
	if x.What == sbr.TopicVerdict {
		v := e.resolver.Verdict()
		o.Verdict = v.Clone()
	}
	e.emit(o)
}

func (e *engine) observe(kind, subject, format string, args ...any) {
	if e.cfg.Observe != nil {
		e.emit(Occurrence{Kind: kind, Subject: subject, Text: fmt.Sprintf(format, args...)})
	}
}

func (e *engine) emit(o Occurrence) {
	if e.cfg.Observe != nil {
		o.At, o.Member = time.Now(), e.self.Name
		e.cfg.Observe(o)
	}
}

func oneLine(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

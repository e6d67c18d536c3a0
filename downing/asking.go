package downing

import (
	"fmt"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/talk"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// asked is one open question of this member.
type asked struct {
	t     *talker
	to    sbr.ID // empty: everybody
	index map[talk.Key]*Peer
	given map[sbr.ID]struct{} // who has answered
	out   chan Answer
}

// Ask implements host.
func (e *engine) Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (<-chan Answer, error) {
	if err := talk.CheckTopic(topic); err != nil {
		return nil, fmt.Errorf("downing: %w", err)
	}
	if len(payload) > MaxTalk {
		return nil, fmt.Errorf("%w: %d", ErrTalkSize, len(payload))
	}
	if timeout < time.Millisecond || timeout > talk.MaxWithin {
		return nil, fmt.Errorf("downing: the time-out of a question is %v: it must be 1ms to %v", timeout, talk.MaxWithin)
	}
	t := e.talk
	if !t.takesPart() {
		return nil, fmt.Errorf("%w: this member is not started, down, or stopped", ErrNotMember)
	}
	m := talk.Message{Kind: talk.Question, From: t.self, Within: timeout.Truncate(time.Millisecond), Topic: topic, Payload: payload}
	_, index := e.board.read()
	a := &asked{t: t, to: to, index: index, given: make(map[sbr.ID]struct{}), out: make(chan Answer, len(index)+16)}
	if to != "" {
		m.To = talk.KeyOf(to)
		if p := index[m.To]; p == nil || p.ID == e.self.ID || p.Status == sbr.Down {
			return nil, fmt.Errorf("%w: %s", ErrNotMember, to)
		}
	}
	b, err := talk.Encode(m)
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
	if t.closed {
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

// run sends the question and passes answers on until it is over. One that could not be sent stays open: to whoever asks it is as if it were lost.
func (a *asked) run(b []byte, timeout time.Duration) {
	defer close(a.out)
	over := time.NewTimer(timeout)
	defer over.Stop()
	var answers <-chan serf.NodeResponse
	guard(a.t.e.log, "a question", func() {
		var err error
		if answers, err = a.t.e.node.query(talk.QueryName, b, timeout); err != nil {
			a.t.e.log.Debug("sbr: a question was not sent", "error", err)
			return
		}
		a.t.e.metrics.talkSent.add(talk.Question.String())
	})
	for {
		select {
		case r, more := <-answers:
			if !more {
				answers = nil // Serf's time is over a moment earlier
			} else if a.take(&r) {
				return
			}
		case <-over.C:
			return
		case <-a.t.ctx.Done():
			return
		}
	}
}

// take passes an answer on, and reports whether it was the last one.
func (a *asked) take(r *serf.NodeResponse) (last bool) {
	m, err := talk.Decode(r.Payload)
	switch {
	case err != nil:
		a.ignore(r, ignoredInvalid, err.Error())
		return false
	case m.Kind == talk.Question:
		a.ignore(r, ignoredInvalid, "it is no answer")
		return false
	}
	from, why := a.sender(m.From, r.From)
	if why != "" {
		a.ignore(r, ignoredForged, why)
		return false
	}
	if _, twice := a.given[from]; twice {
		return false
	}
	a.given[from] = struct{}{}
	a.t.e.metrics.talkHeard.add(m.Kind.String())
	select {
	case a.out <- Answer{From: from, Payload: m.Payload, Unserved: m.Kind == talk.Unserved}:
	default: // more members have joined since than there is room for
	}
	return a.to != ""
}

// sender returns the member that answered, or why what it says does not count.
func (a *asked) sender(key talk.Key, node string) (id sbr.ID, why string) {
	_, index := a.t.e.board.read()
	p := index[key]
	if p == nil {
		p = a.index[key] // it has left since
	}
	switch {
	case p == nil:
		return "", "its sender is no member here"
	case node != "" && node != p.Name:
		return "", "it was sent by the node " + node
	case a.to != "" && p.ID != a.to:
		return "", "somebody else was asked"
	case p.Status == sbr.Down || a.t.e.keepOut.list.Load().isOut(p.ID, p.Seen):
		return "", "its sender is down"
	default:
		return p.ID, ""
	}
}

func (a *asked) ignore(r *serf.NodeResponse, reason, why string) {
	a.t.e.metrics.talkIgnored.add(reason)
	a.t.complain.log(a.t.e, "sbr: ignored an answer", "from", r.From, "why", why)
}

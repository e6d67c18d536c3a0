package downing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// maxRequestReason is how long an operator's reason may be: the whole sentence stands in the verdict.
const maxRequestReason = 200

var errResolverEnded = errors.New("the resolver of this member has ended meanwhile")

// Down implements driver.
func (e *engine) Down(ctx context.Context, name, reason string) error {
	switch {
	case !e.isRunning():
		return refused("this member has not started")
	case isClosed(e.looped):
		return refused("the resolver of this member has ended")
	case len(reason) > maxRequestReason:
		return refused(fmt.Sprintf("the reason has %d bytes: at most %d", len(reason), maxRequestReason))
	case strings.ContainsFunc(reason, unicode.IsControl):
		return refused("the reason must be one line of text")
	}
	decided, err := ask(ctx, e, func(answer chan<- error) { e.request(ctx, name, reason, answer) })
	if err != nil {
		return fmt.Errorf("downing: it is not known whether %s is downed: %w", name, err)
	}
	return decided
}

// ask has f run on the loop, which answers at once or later, and waits for the answer.
func ask[T any](ctx context.Context, e *engine, f func(answer chan<- T)) (got T, err error) {
	answer := make(chan T, 1)
	e.inbox.Post(func() { f(answer) })
	select {
	case got = <-answer:
		return got, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-e.looped:
		err = errResolverEnded
	}
	select {
	case got = <-answer:
		return got, nil
	default:
		return got, err
	}
}

func refused(why string) error { return fmt.Errorf("%w: %s", ErrDownRefused, why) }

// request hands an operator's request to the resolver, which answers at once or later. Loop only.
func (e *engine) request(ctx context.Context, name, reason string, answer chan<- error) {
	if ctx.Err() != nil {
		return // the caller does not wait any more: nothing is begun
	}
	id, why := e.requested(name)
	switch {
	case e.operator != nil:
		why = "an earlier request is not decided yet"
	case e.leaving:
		why = "this member leaves its cluster"
	case e.newcomer:
		why = "this member has not found its cluster yet"
	case e.isBlind():
		why = "the Serf agent does not answer"
	}
	if why != "" {
		e.log.Warn("sbr: refused an operator's request to down a member", "subject", name, "why", why)
		answer <- refused(why)
		return
	}
	e.operator = answer
	e.step(sbr.DownRequested{ID: id, Reason: reason})
}

// requested finds the member that an operator names, by its node name or its incarnation.
func (e *engine) requested(name string) (id sbr.ID, why string) {
	s := e.resolver.Snapshot()
	ids := s.Named(name)
	switch {
	case len(ids) == 0:
		return "", name + " is no member here"
	case len(ids) > 1:
		return "", fmt.Sprintf("%s is the name of several: name one of the incarnations %v", name, ids)
	case isUntagged(ids[0]):
		return "", name + " runs no resolver, so no verdict reaches it: end it where it runs"
	}
	return ids[0], ""
}

// answerOperator says what became of a request. Loop only.
func (e *engine) answerOperator(a sbr.AnswerDownRequest) {
	name := NameOf(a.ID)
	e.log.Warn("sbr: an operator asked to down a member", "member", e.self.Name, "incarnation", e.self.ID,
		"subject", name, "outcome", a.Outcome.String(), "why", a.Text)
	answer := e.operator
	if answer == nil {
		return
	}
	e.operator = nil
	switch a.Outcome {
	case sbr.Granted:
		e.publish() // the next status shows the verdict
		answer <- nil
	case sbr.Held:
		answer <- refused(a.Text)
	default:
		answer <- fmt.Errorf("downing: it is not known whether %s is downed: %s", name, a.Text)
	}
}

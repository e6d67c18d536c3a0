package downing

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// holder is a reason for the application to take no new work.
type holder string

const (
	byResolver  holder = "resolver" // a partition
	byBlindness holder = "agent"    // the node does not answer
	byStart     holder = "start"    // the lease cannot be used yet
	byNewness   holder = "newcomer" // a newcomer that has not found its cluster
	byAdoption  holder = "adoption" // an earlier process of this incarnation stopped; checking for a verdict
	byTags      holder = "tags"     // its tags cannot be kept
	byStore     holder = "store"    // its lease is in another store than the cluster's
)

// holders are all of them; of several that hold, the first one's reason is shown.
var holders = []holder{byResolver, byBlindness, byStart, byNewness, byAdoption, byTags, byStore}

// held is why the application is suspended now.
type held struct {
	why    map[holder]string
	since  time.Time
	reason string // the reason that is shown
}

func (h *held) any() bool { return len(h.why) > 0 }

func (h *held) is(by holder) bool {
	_, is := h.why[by]
	return is
}

func (h *held) begin(by holder, reason string) {
	h.why, h.since, h.reason = map[holder]string{by: reason}, time.Now(), reason
}

// cause is the first sign of the episode that a suspension begins. Loop only.
func (e *engine) cause(by holder) string {
	switch {
	case by != byResolver:
		return string(by)
	case e.resolver.Suspects() > 0:
		return causeUnreachable
	default:
		return causePause
	}
}

// hold suspends the application, unless it is suspended already. A reason that is logged already is not
// logged again. Loop only.
func (e *engine) hold(by holder, reason string) {
	if e.held.any() {
		if !e.held.is(by) && (by == byTags || by == byStore) {
			e.log.Error("sbr: this member is suspended for another reason as well: " + reason) // nothing else says so
		}
		e.held.why[by] = reason
		return
	}
	e.held.begin(by, reason)
	o := because(OccurredSuspended, "suspended", reason)
	if by == byNewness { // the line before names the awaited members
		o = because(OccurredSuspended, "suspended", "it waits for the cluster that the last verdict left")
	}
	o.labels, o.cause = []string{string(by)}, e.cause(by)
	e.occur(o.with(slog.String("cause", o.cause)))
	e.life.Suspend(reason)
}

// free takes one reason back; the application resumes with the last one. Loop only.
func (e *engine) free(by holder, reason string) {
	if !e.held.is(by) {
		return
	}
	shown := e.held.reason == e.held.why[by]
	delete(e.held.why, by)
	if e.held.any() {
		if shown {
			e.held.reason = e.held.why[holders[slices.IndexFunc(holders, e.held.is)]]
		}
		return
	}
	e.occur(because(OccurredResumed, "resumed", reason))
	e.life.Resume(reason)
}

func (e *engine) isBlind() bool { return !e.blindSince.IsZero() }

// see notes whether the node can be seen, or why not, and reports whether to go on. A member that does not
// see its node decides nothing: to the resolver it is as if its process was paused, except that a verdict is
// still accepted. Loop only.
func (e *engine) see(silence error) bool {
	switch {
	case silence == nil && e.isBlind():
		gap := time.Since(e.blindSince).Round(time.Millisecond)
		e.blindSince = time.Time{}
		e.answerProbes(true)
		e.occur(Occurrence{Kind: OccurredAgentAnswers,
			Text: "the Serf agent answers again"}.with(slog.Duration("after", gap)))
		e.step(sbr.Resumed{Gap: gap, Why: "the Serf agent did not answer"})
		e.free(byBlindness, "the Serf agent answers again")
		return !e.ended
	case silence == nil:
		return true
	case e.leaving:
		e.ended = true // an agent that leaves ends itself
		e.life.leave()
	case !e.isBlind():
		e.blindSince = time.Now()
		e.answerProbes(false)
		o := because(OccurredAgentSilent, "the Serf agent does not answer", oneLine(silence))
		o.labels = []string{agentFault(silence)}
		e.occur(o.with(slog.Duration("down-after", e.cfg.AgentTimeout)))
		e.hold(byBlindness, "the Serf agent does not answer")
	case time.Since(e.blindSince) >= e.cfg.AgentTimeout:
		e.step(sbr.Failed{Reason: fmt.Sprintf("the Serf agent did not answer for %v: %s", e.cfg.AgentTimeout,
			oneLine(silence))})
	}
	return false
}

func (e *engine) answerProbes(yes bool) {
	if n, ok := e.node.(*beside); ok {
		n.answerProbes(e.self.ID, yes)
	}
}

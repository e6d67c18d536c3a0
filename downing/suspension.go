package downing

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// holder is a reason for the application to take no new work.
type holder uint8

const (
	byResolver  holder = iota // a partition
	byBlindness               // the node does not answer
	byStart                   // the lease cannot be used yet
	byNewness                 // a newcomer that has not found its cluster
	byAdoption                // an earlier process stopped, and nobody knows yet what was decided meanwhile
	byTags                    // its tags cannot be kept
	byStore                   // its lease is in another store than the cluster's
	holders
)

// held is why the application is suspended now.
type held struct {
	by     [holders]bool
	why    [holders]string
	since  time.Time
	reason string // the one that is shown
}

func (h *held) any() bool { return h.by != [holders]bool{} }

// hold suspends the application, unless it is suspended already. What another line has said before is not said again. Loop only.
func (e *engine) hold(by holder, reason string) {
	before := e.held.any()
	if before && !e.held.by[by] && (by == byTags || by == byStore) {
		e.log.Error("sbr: this member is suspended for another reason as well: " + reason) // nothing else says so
	}
	e.held.by[by], e.held.why[by] = true, reason
	if before {
		return
	}
	e.held.since, e.held.reason = time.Now(), reason
	e.metrics.suspended(by)
	o := because(OccurredSuspended, "suspended", reason)
	if by == byNewness { // who is waited for stands in the line before
		o = because(OccurredSuspended, "suspended", "it waits for the cluster that the last verdict left")
	}
	o.cause = e.causeOf(by)
	e.occur(o.with(slog.String("cause", o.cause)))
	e.life.Suspend(reason)
}

// free takes one reason back; the application resumes with the last one. Loop only.
func (e *engine) free(by holder, reason string) {
	before := e.held.any()
	if e.held.by[by] = false; e.held.any() && e.held.reason == e.held.why[by] {
		e.held.reason = e.held.why[slices.Index(e.held.by[:], true)]
	}
	e.held.why[by] = ""
	if !before || e.held.any() {
		return
	}
	e.metrics.resumed()
	e.occur(because(OccurredResumed, "resumed", reason))
	e.life.Resume(reason)
}

// showSuspension makes the status say so when it is not the resolver that suspends.
func (e *engine) showSuspension(st *Status) {
	if e.held.by[byAdoption] && e.askedFate && (st.State == sbr.StateUp || st.State == sbr.StateArming) {
		e.free(byAdoption, "nothing was decided against this member")
	}
	if !e.held.any() {
		return
	}
	if st.State == sbr.StateUp || st.State == sbr.StateArming {
		st.State = sbr.StateSuspended
	}
	since := e.held.since.Round(time.Millisecond)
	st.SuspendedSince, st.SuspendedBecause = &since, e.held.reason
}

func (e *engine) isBlind() bool { return !e.blindSince.IsZero() }

// see notes whether the node can be seen, and reports whether to go on. Who is blind decides nothing: to the resolver it is as if its
// process stood still, except that a verdict is still taken in. Loop only.
func (e *engine) see(current bool) bool {
	switch {
	case current && e.isBlind():
		gap := time.Since(e.blindSince).Round(time.Millisecond)
		e.blindSince = time.Time{}
		e.metrics.blind(false)
		e.answerProbes(true)
		e.occur(Occurrence{Kind: OccurredAgentAnswers, Text: "the Serf agent answers again"}.with(slog.Duration("after", gap)))
		e.step(sbr.Resumed{Gap: gap, Why: "the Serf agent did not answer"})
		e.free(byBlindness, "the Serf agent answers again")
		return !e.ended
	case current:
		return true
	case e.leaving:
		e.ended = true // an agent that leaves ends itself
		e.life.leave()
	case !e.isBlind():
		e.blindSince = time.Now()
		e.metrics.blind(true)
		e.metrics.agentFailed(e.silence())
		e.answerProbes(false)
		e.occur(because(OccurredAgentSilent, "the Serf agent does not answer", oneLine(e.silence())).
			with(slog.Duration("down-after", e.cfg.AgentTimeout)))
		e.hold(byBlindness, "the Serf agent does not answer")
	case time.Since(e.blindSince) >= e.cfg.AgentTimeout:
		e.step(sbr.Failed{Reason: fmt.Sprintf("the Serf agent did not answer for %v: %s", e.cfg.AgentTimeout, oneLine(e.silence()))})
	}
	return false
}

// silence is why the Serf agent beside this member does not answer.
func (e *engine) silence() error {
	if n, ok := e.node.(*beside); ok {
		if told, ok := n.agent.(interface{ Silence() error }); ok {
			return cmp.Or(told.Silence(), ErrAgentSilent)
		}
	}
	return ErrAgentSilent
}

func (e *engine) answerProbes(yes bool) {
	if n, ok := e.node.(*beside); ok {
		n.answerProbes(e.self.ID, yes)
	}
}

// reportStatus is who cannot reach whom.
func (e *engine) reportStatus() []ReportStatus {
	out := make([]ReportStatus, len(e.reports))
	for i, r := range e.reports {
		out[i] = ReportStatus{Observer: NameOf(r.Observer), Subject: NameOf(r.Subject)}
	}
	return out
}

package downing

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// holder is a reason for the application to take no new work.
type holder uint8

const (
	byResolver  holder = iota // a partition
	byBlindness               // the node does not answer
	byNewness                 // a newcomer that has not found its cluster
	byAdoption                // an earlier process stopped, and nobody knows yet what was decided meanwhile
	holders
)

// held is why the application is suspended now.
type held struct {
	by     [holders]bool
	since  time.Time
	reason string
}

func (h *held) any() bool { return h.by != [holders]bool{} }

// hold suspends the application, unless it is suspended already. Loop only.
func (e *engine) hold(by holder, reason string) {
	before := e.held.any()
	e.held.by[by] = true
	if before {
		return
	}
	e.held.since, e.held.reason = time.Now(), reason
	e.observe(OccurredSuspended, "", "suspended: %s", reason)
	e.life.Suspend(reason)
	e.trouble(by, reason)
}

// free takes one reason back; the application resumes with the last one. Loop only.
func (e *engine) free(by holder, reason string) {
	before := e.held.any()
	e.held.by[by] = false
	if !before || e.held.any() {
		return
	}
	e.observe(OccurredResumed, "", "resumed: %s", reason)
	e.life.Resume(reason)
	e.metrics.resumed()
	e.episodes.resumed(reason)
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
		e.log.Warn("sbr: the Serf agent answers again", "after", gap)
		e.step(sbr.Resumed{Gap: gap})
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
		e.answerProbes(false)
		e.log.Error("sbr: the Serf agent does not answer: this member is suspended, and goes down unless it answers again", "within", e.cfg.AgentTimeout)
		e.hold(byBlindness, "the Serf agent does not answer")
	case time.Since(e.blindSince) >= e.cfg.AgentTimeout:
		e.step(sbr.Failed{Reason: fmt.Sprintf("the Serf agent has not answered for %v", e.cfg.AgentTimeout)})
	}
	return false
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

package downing

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// recorder turns what happens to a member into metrics, and into episodes, one at a time, that become traces.
// All methods are safe for concurrent use, and none of them blocks.
type recorder struct {
	*metrics
	e      *engine
	tracer trace.Tracer
	flush  func(context.Context) error // nil: the provider of traces cannot be flushed

	mu  sync.Mutex
	now readings
	cur *episode // nil: all is well
	// sealed says that the last episode is being written: this member is down.
	sealed bool
	work   int               // what is under way and belongs to an episode
	leased [2]string         // incident and trace of the last grant: both may be over when the lease is released
	said   map[string]string // what a retried kind of occurrence said last in this incident
}

func newRecorder(e *engine) (*recorder, error) {
	r := &recorder{e: e, said: make(map[string]string)}
	m, err := newMetrics(e.cfg.Meter, r.read)
	if err != nil {
		return nil, err
	}
	r.metrics = m
	p := cmp.Or(e.cfg.Tracer, otel.GetTracerProvider())
	r.tracer = p.Tracer(scope, trace.WithInstrumentationVersion(Version()))
	if f, ok := p.(interface{ ForceFlush(context.Context) error }); ok {
		r.flush = f.ForceFlush
	}
	return r, nil
}

func (r *recorder) read() readings {
	r.e.mu.Lock()
	status := r.e.status
	r.e.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now
	now.at, now.status, now.queue = time.Now(), status, r.e.inbox.Len()
	ep := r.present()
	now.open = ep != nil && ep.outcome == ""
	return now
}

// set changes readings.
func (r *recorder) set(f func(*readings)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.now)
}

// measure makes metrics of an occurrence.
func (r *recorder) measure(o *Occurrence) {
	m := manners[o.Kind]
	if m.counts != nil {
		r.add(m.counts, o.labels...)
	}
	if m.shows != nil {
		r.set(m.shows)
	}
}

// agentFault is why the Serf agent does not answer.
func agentFault(err error) string {
	for i, known := range []error{ErrAgentAuth, ErrAgentClosed, ErrAgentRefused, ErrAgentTimeout} {
		if errors.Is(err, known) {
			return agentFaults[i]
		}
	}
	return agentFaults[len(agentFaults)-1]
}

// leaseRead notes a read of the lease.
func (e *engine) leaseRead(began time.Time, err error) {
	e.rec.worked(stepRead, began, oneLine(err), leaseKey.String(e.cfg.leaseName()))
	if err != nil {
		e.rec.add(countLeaseReads, outcomeError)
		return
	}
	e.rec.add(countLeaseReads, outcomeOK)
	e.rec.set(func(now *readings) { now.awaits, now.answered = false, time.Now() })
}

// acquired notes an attempt to get the lease.
func (e *engine) acquired(began time.Time, a *sbr.LeaseAnswer) {
	e.rec.add(countAttempts, a.Outcome.String())
	e.rec.took(timeAcquire, time.Since(began), a.Outcome.String())
	failed := ""
	if a.Outcome == sbr.Unknown {
		failed = a.Err
	} else {
		e.rec.set(func(now *readings) { now.answered = time.Now() })
	}
	e.rec.worked(stepAcquire, began, failed, leaseKey.String(e.cfg.leaseName()),
		outcomeKey.String(a.Outcome.String()),
		attribute.String("sbr.lease.holder", string(a.Record.Holder)),
		attribute.Int64("sbr.lease.token", int64(a.Record.Token)))
}

// told notes the end of a delivery.
func (r *recorder) told(kind wire.Kind, began time.Time, targets, answered, unanswered int) {
	r.addN(countTold, answered, outcomeAnswered)
	r.addN(countTold, targets-answered-unanswered, outcomeGone)
	r.addN(countTold, unanswered, outcomeUnanswered)
	r.worked(stepTell, began, "", kindKey.String(string(kind)),
		attribute.Int("sbr.targets", targets), attribute.Int("sbr.unanswered", unanswered))
	r.busy(-1)
}

func (r *recorder) probed(p pong) {
	if !p.answered {
		r.add(countProbes, outcomeUnanswered)
		return
	}
	r.add(countProbes, outcomeAnswered)
	r.took(timeProbe, p.took)
}

// called notes a callback that has returned.
func (r *recorder) called(kind string, took time.Duration, panicked bool) {
	r.took(timeCallback, took, kind)
	if panicked {
		r.add(countPanics, kind)
	}
}

// hide ends the reading of gauges: what a stopped member last saw is no news.
func (r *recorder) hide() { _ = r.gauges.Unregister() }

// present is the episode that is under way, nil if there is none.
func (r *recorder) present() *episode {
	if r.sealed || r.cur == nil || r.cur.cause == "" {
		return nil
	}
	return r.cur
}

// begin makes an episode that is not open yet: only its id counts, and the unreachable members.
func (r *recorder) begin() {
	if r.cur == nil {
		id, _ := TraceIDs{}.NewIDs(background)
		r.cur = &episode{incident: id}
	}
}

// open begins an episode unless one is under way.
func (r *recorder) open(cause string) *episode {
	r.begin()
	if r.cur.cause == "" {
		r.cur.cause, r.cur.began = cause, time.Now()
		r.add(countPartitions, cause)
	}
	return r.cur
}

// ids are the incident that is under way and its trace; each is empty if there is none.
func (r *recorder) ids() (incident, trace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.incident(), r.trace()
}

func (r *recorder) incident() string {
	if r.cur == nil {
		return ""
	}
	return r.cur.incident.String()
}

// trace is that of the first verdict of the incident that is under way; empty before.
func (r *recorder) trace() string {
	if r.cur == nil || r.cur.verdict.Token == 0 {
		return ""
	}
	return traceOf(&r.cur.verdict).String()
}

// join puts an occurrence into the episode that it belongs to, or begins, and sets its incident. repeated
// says that it is of a retried kind and says nothing new.
func (r *recorder) join(o *Occurrence) (repeated bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.sealed {
		switch o.Kind {
		case OccurredUnreachable, OccurredDown:
			r.begin()
		case OccurredSuspended:
			again := r.present() != nil
			ep := r.open(o.cause)
			if again && !ep.suspended {
				ep.flaps++
			}
			ep.suspended = true
		case OccurredVerdict: // others may have come to it before this member noticed anything
			ep := r.open(causeVerdict)
			if ep.verdict.Token == 0 {
				ep.verdict = *o.Verdict.Clone()
			}
			r.settle(ep)
		}
		if r.cur != nil {
			r.step(r.cur, o)
		}
	}
	o.Incident = r.incident()
	if o.Trace == "" { // a verdict has its own
		o.Trace = r.trace()
	}
	switch o.Kind {
	case OccurredGranted:
		r.leased = [2]string{o.Incident, o.Trace} // the watch may have brought the verdict before
	case OccurredVerdict:
		if o.Incident == r.leased[0] {
			r.leased[1] = o.Trace
		}
	case OccurredReleased, OccurredLost:
		o.Incident, o.Trace = r.leased[0], r.leased[1]
	}
	if !manners[o.Kind].retried {
		return false
	}
	before, text := r.said[o.Kind], o.Incident+o.SubjectIncarnation+o.Text
	r.said[o.Kind] = text
	return before == text
}

// step makes an occurrence a step of the episode, unless a span records it.
func (r *recorder) step(ep *episode, o *Occurrence) {
	if ep.cause == "" && o.Kind != OccurredUnreachable {
		return
	}
	switch o.Kind {
	case OccurredUnreachable, OccurredReachable:
		ep.changed = o.At
	case OccurredResumed:
		ep.suspended, ep.calmSince = false, o.At
	case string(sbr.TopicDecision):
		since := ep.changed
		if since.IsZero() {
			since = ep.began
		}
		ep.span(stepStable, since, "")
		if !o.decision.Final.NeedsLease() {
			r.settle(ep)
		}
	}
	if !manners[o.Kind].spanned {
		ep.event(o.Kind, o.traced()...)
	}
}

// during runs f on the present episode, if there is one.
func (r *recorder) during(f func(*episode)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ep := r.present(); ep != nil {
		f(ep)
	}
}

// worked notes something that took time since began.
func (r *recorder) worked(name string, began time.Time, failed string, attrs ...attribute.KeyValue) {
	r.during(func(ep *episode) { ep.span(name, began, failed, attrs...) })
}

// ordered notes the order of another member that this one obeys: it is in no verdict.
func (r *recorder) ordered(m *wire.Message) {
	r.during(func(ep *episode) {
		r.settle(ep)
		ep.event(stepOrder, memberKey.String(NameOf(m.From)), decisionKey.String(m.Decided),
			textKey.String(m.Reason),
			downKey.Int(len(m.Down)))
	})
}

func (r *recorder) settle(ep *episode) {
	if ep.settled.IsZero() {
		ep.settled = time.Now()
		r.took(timeDeciding, ep.settled.Sub(ep.began))
	}
}

// busy says that more or less is under way: an episode waits for it.
func (r *recorder) busy(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work += more
}

// look takes in what the loop sees on every turn, and ends the episode once it is over. removing says that
// members are just being removed.
func (r *recorder) look(s *sbr.Snapshot, removing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reachable, cutOff, downed := 0, 0, 0
	for i := range s.Members {
		switch m := &s.Members[i]; {
		case m.Status == sbr.Down:
			downed++
		case m.Downable() && m.Unreachable:
			cutOff++
		case m.Downable():
			reachable++
		}
	}
	r.now.members, r.now.unreachable = reachable+cutOff, cutOff
	ep := r.present()
	switch {
	case ep == nil && cutOff == 0 &&
		!r.sealed: // what was unreachable before this member was armed began nothing
		r.cur = nil
		return
	case ep == nil || ep.outcome != "":
		return
	case cutOff > ep.cutOff:
		ep.reachable, ep.cutOff = reachable, cutOff
	}
	ep.downed, ep.listed = max(ep.downed, downed), downed
	switch {
	case ep.suspended:
	case ep.settled.IsZero():
		if time.Since(ep.calmSince) >= calmFor {
			r.close(ep, outcomeHealed, ep.calmSince)
		}
	case downed == 0 && !removing && r.work == 0 || time.Since(ep.settled) >= lingerFor:
		r.took(timeRemoving, time.Since(ep.settled))
		if ep.downed > 0 {
			ep.span(stepRemoval, ep.settled, "", downKey.Int(ep.downed))
		}
		r.close(ep, outcomeResolved, time.Now())
	}
}

// abandon ends an episode that is not followed any further.
func (r *recorder) abandon() {
	r.during(func(ep *episode) {
		switch {
		case ep.outcome != "": // down: its trace is written elsewhere
		case ep.suspended || !ep.settled.IsZero():
			r.close(ep, outcomeStopped, time.Now())
		default:
			r.close(ep, outcomeHealed, ep.calmSince)
		}
	})
}

// close ends an episode, and has its trace written: a span processor may block.
func (r *recorder) close(ep *episode, outcome string, at time.Time) {
	r.cur = nil
	r.end(ep, outcome, at)
	r.e.spawn(&r.e.workers, func() { r.write(ep) })
}

func (r *recorder) end(ep *episode, outcome string, at time.Time) {
	ep.outcome, ep.ended = outcome, at
	r.took(timePartition, at.Sub(ep.began), outcome)
}

// down ends the episode of a member that is down, and begins it if nothing announced that. What is still told
// after that belongs to it, until lastTrace.
func (r *recorder) down(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed || r.cur != nil && r.cur.outcome != "" {
		return
	}
	ep := r.open(causeFailure)
	ep.reason = reason
	r.end(ep, outcomeDown, time.Now())
}

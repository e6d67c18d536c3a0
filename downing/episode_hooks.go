package downing

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/serf/serf"
	"go.opentelemetry.io/otel/attribute"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// record prepares an engine to be watched.
func (e *engine) record() {
	e.tracing = newTracing(e.cfg.Tracer, e.log)
	e.episodes = &chronicle{metrics: e.metrics, publish: func(ep *episode) {
		e.spawn(&e.workers, func() { e.tracing.write(ep) }) // a span processor may block
	}}
	e.life.called = e.metrics.called
	e.metrics.set(func(r *readings) { r.queue = e.inbox.Len })
}

// introduce says in every trace who this member is, once that is known.
func (e *engine) introduce() {
	e.tracing.always = []attribute.KeyValue{systemKey.String(e.cfg.System), memberKey.String(e.self.Name),
		incarnationKey.String(string(e.self.ID)), strategyKey.String(e.cfg.Strategy)}
}

// lastTrace writes the trace of a member that is down and sees that it leaves the process.
func (e *engine) lastTrace(deadline time.Time) {
	if ep := e.episodes.take(); ep != nil {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		e.tracing.last(ctx, ep)
	}
}

// causeOf is the cause of a suspension. Loop only.
func (e *engine) causeOf(by holder) string {
	switch {
	case by == byBlindness:
		return causeAgent
	case by == byNewness:
		return causeNewcomer
	case by == byAdoption:
		return causeAdoption
	case by == byTags:
		return causeTags
	case by == byStore:
		return causeStore
	case e.resolver.Suspects() > 0:
		return causeUnreachable
	default:
		return causePause
	}
}

// count counts what the resolver has to say. Loop only.
func (e *engine) count(x *sbr.Explain) {
	switch x.What {
	case sbr.TopicArmed:
		e.metrics.arm()
	case sbr.TopicDecision:
		e.metrics.decided(x.Decision)
	case sbr.TopicBackwards:
		e.metrics.backwards.add("")
	case sbr.TopicConflict:
		e.metrics.conflicts.add("")
	case sbr.TopicIgnored:
		e.metrics.dropped(string(e.hearing), ignoredResolver)
	}
}

// kindOf is the kind of message that an event comes from; empty if it comes from none that the resolver might ignore.
func kindOf(ev sbr.Event) gossip.Kind {
	switch ev.(type) {
	case sbr.Told:
		return gossip.KindVerdict
	case sbr.Ordered:
		return gossip.KindOrder
	default:
		return ""
	}
}

// obeyed notes an order that the resolver took in: no verdict tells of it. Loop only.
func (e *engine) obeyed(m *gossip.Message) {
	if slices.ContainsFunc(m.Down, e.ordered) {
		e.episodes.ordered(NameOf(m.From), m)
	}
}

func (e *engine) leaseRead(began time.Time, err error) {
	e.metrics.leaseRead(err)
	e.episodes.worked(stepRead, began, oneLine(err), leaseKey.String(e.cfg.leaseName()))
}

func (e *engine) acquired(began time.Time, out *lease.Outcome) {
	e.metrics.acquired(out.Kind, time.Since(began))
	failed := ""
	if out.Kind == lease.Unknown {
		failed = oneLine(out.Err)
	}
	e.episodes.worked(stepAcquire, began, failed, leaseKey.String(e.cfg.leaseName()), outcomeKey.String(out.Kind.String()),
		holderKey.String(out.Record.Holder), leaseTokenKey.Int64(int64(out.Record.Token)))
}

// query sends one payload to every member.
func (e *engine) query(kind gossip.Kind, payload []byte) (<-chan serf.NodeResponse, error) {
	answers, err := e.node.query(gossip.QueryName, payload, queryTimeout)
	if err == nil {
		e.metrics.sent.add(string(kind))
	}
	return answers, err
}

// telling is how the telling of one message goes.
type telling struct {
	kind              gossip.Kind
	began             time.Time
	targets, answered int
}

func (e *engine) newTelling(kind gossip.Kind, waiting map[sbr.ID]bool) telling {
	e.episodes.busy(1)
	return telling{kind: kind, began: time.Now(), targets: len(waiting)}
}

// toldAll notes the end of a telling.
func (e *engine) toldAll(t *telling, waiting map[sbr.ID]bool) {
	left := len(waiting)
	e.metrics.toldAll(t.answered, t.targets-t.answered-left, left)
	e.episodes.worked(stepTell, t.began, "", kindKey.String(string(t.kind)), targetsKey.Int(t.targets), unansweredKey.Int(left))
	e.episodes.busy(-1)
}

package downing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// The names of spans, and of events in the first of them.
const (
	stepPartition = "sbr.partition"
	stepStable    = "sbr.stable"
	stepRead      = "sbr.lease.read"
	stepAcquire   = "sbr.lease.acquire"
	stepTell      = "sbr.tell"
	stepRemoval   = "sbr.removal"

	// The other events are called as the occurrences that they are.
	stepOrder = "order"
)

// The keys of attributes.
const (
	systemKey      = attribute.Key("sbr.system")
	memberKey      = attribute.Key("sbr.member")
	incarnationKey = attribute.Key("sbr.incarnation")
	strategyKey    = attribute.Key("sbr.strategy")
	causeKey       = attribute.Key("sbr.cause")
	outcomeKey     = attribute.Key("sbr.outcome")
	reasonKey      = attribute.Key("sbr.reason")
	reachableKey   = attribute.Key("sbr.side.reachable")
	cutOffKey      = attribute.Key("sbr.side.unreachable")
	flapsKey       = attribute.Key("sbr.flaps")
	skippedKey     = attribute.Key("sbr.steps.skipped")
	episodeKey     = attribute.Key("sbr.episode")
	leftKey        = attribute.Key("sbr.downed.listed")

	tokenKey      = attribute.Key("sbr.verdict.token")
	byKey         = attribute.Key("sbr.verdict.decided_by")
	survivorsKey  = attribute.Key("sbr.survivors")
	incidentKey   = attribute.Key("sbr.incident")
	downKey       = attribute.Key("sbr.down")
	textKey       = attribute.Key("sbr.text")
	decisionKey   = attribute.Key("sbr.decision")
	leaseKey      = attribute.Key("sbr.lease")
	holderKey     = attribute.Key("sbr.lease.holder")
	leaseTokenKey = attribute.Key("sbr.lease.token")
	kindKey       = attribute.Key("sbr.message")
	targetsKey    = attribute.Key("sbr.targets")
	unansweredKey = attribute.Key("sbr.unanswered")
)

// traced are the attributes of the event that tells of an occurrence.
func (o *Occurrence) traced() []attribute.KeyValue {
	switch v, d := o.Verdict, o.decision; {
	case v != nil:
		return []attribute.KeyValue{tokenKey.Int64(int64(v.Token)), byKey.String(string(v.DecidedBy)),
			survivorsKey.Int(len(v.Survivors)), downKey.Int(len(v.Down)), textKey.String(v.Reason)}
	case d != nil:
		return []attribute.KeyValue{decisionKey.String(d.Final.String()), textKey.String(d.Reason), downKey.Int(len(d.Down))}
	case o.Kind == OccurredTold:
		return []attribute.KeyValue{memberKey.String(o.Subject), kindKey.String(o.Details[0].Value.String())}
	case o.Subject != "":
		return []attribute.KeyValue{memberKey.String(o.Subject)}
	default:
		return []attribute.KeyValue{textKey.String(cmp.Or(o.Reason, o.Text))}
	}
}

// tracing turns episodes into traces. An episode becomes a trace when it is over: a span that is open is seen by nobody, and lost with
// its process, so nothing is lost by that; and only then it is known which verdict settled it, and so which trace it is part of.
type tracing struct {
	tracer trace.Tracer
	flush  func(context.Context) error // nil: the provider cannot be flushed
	log    *slog.Logger
	always []attribute.KeyValue
}

func newTracing(p trace.TracerProvider, log *slog.Logger) *tracing {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	t := &tracing{log: log, tracer: p.Tracer(scope, trace.WithInstrumentationVersion(Version()))}
	if f, ok := p.(interface{ ForceFlush(context.Context) error }); ok {
		t.flush = f.ForceFlush
	}
	return t
}

// write makes the trace of an episode. It may block for as long as the provider's span processors do. If they panic there is no trace, and
// nothing else happens: this is no part of what keeps a member safe.
func (t *tracing) write(ep *episode) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error("sbr: a trace could not be written", "panic", fmt.Sprint(p))
		}
	}()
	ctx := withTraceID(context.Background(), ep.incident)
	attrs := append(slices.Clip(t.always), incidentKey.String(ep.incident.String()), causeKey.String(ep.cause), outcomeKey.String(ep.outcome),
		reachableKey.Int(ep.reachable), cutOffKey.Int(ep.cutOff), flapsKey.Int(ep.flaps))
	if v := &ep.verdict; v.Token > 0 {
		id := traceOf(v)
		ctx = withTraceID(ctx, id)
		attrs = append(attrs, episodeKey.String(id.String()), tokenKey.Int64(int64(v.Token)), byKey.String(string(v.DecidedBy)))
	}
	if ep.reason != "" {
		attrs = append(attrs, reasonKey.String(ep.reason))
	}
	if ep.skipped > 0 {
		attrs = append(attrs, skippedKey.Int(ep.skipped))
	}
	if ep.downedLeft > 0 {
		attrs = append(attrs, leftKey.Int(ep.downedLeft))
	}
	ctx, root := t.tracer.Start(ctx, stepPartition, trace.WithNewRoot(), trace.WithTimestamp(ep.began), trace.WithAttributes(attrs...))
	for _, list := range [][]step{ep.first, ep.last} {
		for i := range list {
			t.step(ctx, root, &list[i])
		}
	}
	root.AddEvent(ep.outcome, trace.WithTimestamp(ep.ended))
	if ep.outcome == outcomeDown {
		root.SetStatus(codes.Error, ep.reason)
	}
	root.End(trace.WithTimestamp(ep.ended))
}

func (t *tracing) step(ctx context.Context, root trace.Span, s *step) {
	if s.to.IsZero() {
		root.AddEvent(s.name, trace.WithTimestamp(s.from), trace.WithAttributes(s.attrs...))
		return
	}
	kind := trace.SpanKindInternal
	if s.name == stepRead || s.name == stepAcquire || s.name == stepTell {
		kind = trace.SpanKindClient
	}
	_, span := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithSpanKind(kind), trace.WithAttributes(s.attrs...))
	if s.failed != "" {
		span.SetStatus(codes.Error, s.failed)
	}
	span.End(trace.WithTimestamp(s.to))
}

// flushWithin bounds how long a member that is down waits until its last trace has left the process.
const flushWithin = 3 * time.Second

// last writes the last trace of a process and sees it off, at most until ctx ends.
func (t *tracing) last(ctx context.Context, ep *episode) {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // of a flush
		t.write(ep)
		if t.flush != nil {
			_ = t.flush(ctx)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

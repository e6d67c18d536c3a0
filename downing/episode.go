package downing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// episode is one partition as this member observes it: from the first sign until it is over. It becomes a
// trace then: an open span is not exported, and lost with its process; and only then it is known which
// verdict settled it, and so which trace it is part of.
type episode struct {
	incident trace.TraceID

	cause   string // empty: members are unreachable, and this one is not suspended yet
	began   time.Time
	ended   time.Time
	outcome string
	reason  string

	suspended bool
	calmSince time.Time // when it was resumed last
	flaps     int       // how often it was suspended again
	changed   time.Time // when a member became unreachable or reachable last
	settled   time.Time // when the verdict or the order was learnt; zero: not yet
	verdict   sbr.Verdict
	reachable int // the two sides, as they were when most were unreachable
	cutOff    int
	downed    int // most members that were listed as downed at the same time
	listed    int // those that are now

	steps
}

// The first signs of an episode, beside the holders of a suspension.
const (
	causeUnreachable = "unreachable" // a member cannot be reached
	causePause       = "pause"       // this process was paused, or its standing is unknown otherwise
	causeVerdict     = "verdict"     // others have decided already
	causeFailure     = "failure"     // this member goes down, and nothing announced it
)

var causes = append(texts([]holder{byBlindness, byNewness, byAdoption, byTags, byStore}),
	causeUnreachable, causePause, causeVerdict, causeFailure)

// What became of it.
const (
	outcomeResolved = "resolved" // decided, and all downed members are gone
	outcomeHealed   = "healed"   // this member knows of no downed member
	outcomeDown     = "down"     // this member is down
	outcomeStopped  = "stopped"  // this member left, or was stopped
)

const (
	// calmFor is how long all must be well until an episode without a decision is over: a flapping member
	// makes one long episode.
	calmFor = time.Minute
	// lingerFor bounds how long a decided episode waits for downed members to vanish: another member may keep
	// one in Serf's list.
	lingerFor = 15 * time.Minute
	// flushWithin bounds how long a member that is down waits until its last trace has left the process.
	flushWithin = 3 * time.Second
)

// steps are what happened in an episode, the first and the last of them: an episode may last for hours.
type steps struct {
	first, last []step
	skipped     int
	of          map[string]int // how many of each kind
}

// step is one of them. One without an end happened at a moment.
type step struct {
	name     string
	from, to time.Time
	failed   string
	attrs    []attribute.KeyValue
}

const (
	// keepSteps is how many of the first and how many of the last steps are kept.
	keepSteps = 40
	// keepAlike is how many steps are kept of a kind of which each member of a large cluster makes one.
	keepAlike = 16
)

func (s *steps) event(name string, attrs ...attribute.KeyValue) {
	s.add(step{name: name, from: time.Now(), attrs: attrs})
}

func (s *steps) span(name string, from time.Time, failed string, attrs ...attribute.KeyValue) {
	s.add(step{name: name, from: from, to: time.Now(), failed: failed, attrs: attrs})
}

func (s *steps) add(x step) {
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.of[x.name]++
	switch {
	case s.of[x.name] > keepAlike && manners[x.name].alike:
		s.skipped++
	case len(s.first) < keepSteps:
		s.first = append(s.first, x)
	case len(s.last) < keepSteps:
		s.last = append(s.last, x)
	default:
		s.last = append(s.last[1:], x)
		s.skipped++
	}
}

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

// The keys of attributes that stand in several places.
const (
	memberKey   = attribute.Key("sbr.member")
	outcomeKey  = attribute.Key("sbr.outcome")
	tokenKey    = attribute.Key("sbr.verdict.token")
	byKey       = attribute.Key("sbr.verdict.decided_by")
	downKey     = attribute.Key("sbr.down")
	textKey     = attribute.Key("sbr.text")
	decisionKey = attribute.Key("sbr.decision")
	leaseKey    = attribute.Key("sbr.lease")
	kindKey     = attribute.Key("sbr.message")
)

// traced are the attributes of the event that tells of an occurrence.
func (o *Occurrence) traced() []attribute.KeyValue {
	switch v, d := o.Verdict, o.decision; {
	case v != nil:
		return []attribute.KeyValue{tokenKey.Int64(int64(v.Token)), byKey.String(string(v.DecidedBy)),
			attribute.Int("sbr.survivors", len(v.Survivors)), downKey.Int(len(v.Down)), textKey.String(v.Reason)}
	case d != nil:
		return []attribute.KeyValue{decisionKey.String(d.Final.String()), textKey.String(d.Reason),
			downKey.Int(len(d.Down))}
	case o.Kind == OccurredTold:
		return []attribute.KeyValue{memberKey.String(o.Subject), kindKey.String(o.Details[0].Value.String())}
	case o.Subject != "":
		return []attribute.KeyValue{memberKey.String(o.Subject)}
	default:
		return []attribute.KeyValue{textKey.String(cmp.Or(o.Reason, o.Text))}
	}
}

// write makes the trace of an episode. It may block for as long as the provider's span processors do. If they
// panic there is no trace, and nothing else happens: this is no part of what keeps a member safe.
func (r *recorder) write(ep *episode) {
	defer func() {
		if p := recover(); p != nil {
			r.e.log.Error("sbr: a trace could not be written", "panic", fmt.Sprint(p))
		}
	}()
	ctx := withTraceID(context.Background(), ep.incident)
	attrs := []attribute.KeyValue{
		attribute.String("sbr.system", r.e.cfg.System), memberKey.String(r.e.self.Name),
		attribute.String("sbr.incarnation", string(r.e.self.ID)),
		attribute.String("sbr.strategy", r.e.cfg.Strategy),
		attribute.String("sbr.incident", ep.incident.String()), attribute.String("sbr.cause", ep.cause),
		outcomeKey.String(ep.outcome), attribute.Int("sbr.flaps", ep.flaps),
	}
	if ep.cutOff > 0 {
		attrs = append(attrs, attribute.Int("sbr.side.reachable", ep.reachable),
			attribute.Int("sbr.side.unreachable", ep.cutOff))
	}
	if v := &ep.verdict; v.Token > 0 {
		id := traceOf(v)
		ctx = withTraceID(ctx, id)
		attrs = append(attrs, attribute.String("sbr.episode", id.String()), tokenKey.Int64(int64(v.Token)),
			byKey.String(string(v.DecidedBy)))
	}
	if ep.reason != "" {
		attrs = append(attrs, attribute.String("sbr.reason", ep.reason))
	}
	if ep.skipped > 0 {
		attrs = append(attrs, attribute.Int("sbr.steps.skipped", ep.skipped))
	}
	if ep.listed > 0 {
		attrs = append(attrs, attribute.Int("sbr.downed.listed", ep.listed))
	}
	ctx, root := r.tracer.Start(ctx, stepPartition, trace.WithNewRoot(), trace.WithTimestamp(ep.began),
		trace.WithAttributes(attrs...))
	for _, s := range slices.Concat(ep.first, ep.last) {
		r.writeStep(ctx, root, &s)
	}
	root.AddEvent(ep.outcome, trace.WithTimestamp(ep.ended))
	if ep.outcome == outcomeDown {
		root.SetStatus(codes.Error, ep.reason)
	}
	root.End(trace.WithTimestamp(ep.ended))
}

func (r *recorder) writeStep(ctx context.Context, root trace.Span, s *step) {
	if s.to.IsZero() {
		root.AddEvent(s.name, trace.WithTimestamp(s.from), trace.WithAttributes(s.attrs...))
		return
	}
	kind := trace.SpanKindInternal
	if s.name == stepRead || s.name == stepAcquire || s.name == stepTell {
		kind = trace.SpanKindClient
	}
	_, span := r.tracer.Start(ctx, s.name, trace.WithTimestamp(s.from), trace.WithSpanKind(kind),
		trace.WithAttributes(s.attrs...))
	if s.failed != "" {
		span.SetStatus(codes.Error, s.failed)
	}
	span.End(trace.WithTimestamp(s.to))
}

// lastTrace writes the trace of a member that is down and sees that it leaves the process, at most until the
// deadline.
func (r *recorder) lastTrace(deadline time.Time) {
	r.mu.Lock()
	ep := r.present()
	r.sealed = true
	r.mu.Unlock()
	if ep == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(time.Until(deadline), flushWithin))
	defer cancel()
	sleep.Within(ctx.Done(), func() {
		defer func() { _ = recover() }() // of a flush
		r.write(ep)
		if r.flush != nil {
			_ = r.flush(ctx)
		}
	})
}

// TraceIDs makes the ids of traces and spans for the SDK of OpenTelemetry:
// sdktrace.WithIDGenerator(downing.TraceIDs{}). With it all members that a verdict concerns put their
// episodes into one trace; without it each has its own, and the attribute sbr.episode ties them together. All
// other ids are random. It is safe for concurrent use.
type TraceIDs struct{}

type traceIDKey struct{}

func withTraceID(ctx context.Context, id trace.TraceID) context.Context {
	return context.WithValue(ctx, traceIDKey{}, id)
}

// traceOf is the trace of a verdict, the same at all members. Incarnations are unique, and none writes two
// verdicts with one token.
func traceOf(v *sbr.Verdict) trace.TraceID {
	text := binary.BigEndian.AppendUint64([]byte("sbr verdict "+string(v.DecidedBy)+" "), v.Token)
	sum := sha256.Sum256(text)
	return trace.TraceID(sum[:16])
}

// NewIDs implements the IDGenerator of the SDK.
func (g TraceIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(traceIDKey{}).(trace.TraceID)
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements the IDGenerator of the SDK.
func (TraceIDs) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

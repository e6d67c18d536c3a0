package downing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// TraceIDs makes the ids of traces and spans for the SDK of OpenTelemetry: sdktrace.WithIDGenerator(downing.TraceIDs{}). With it all members
// that a verdict concerns put their episodes into one trace; without it each has its own, and the attribute sbr.episode ties
// them together. All other ids are random. It is safe for concurrent use.
type TraceIDs struct{}

type traceIDKey struct{}

func withTraceID(ctx context.Context, id trace.TraceID) context.Context {
	return context.WithValue(ctx, traceIDKey{}, id)
}

// traceOf is the trace of everybody who learns of a verdict. Incarnations are unique, and none writes two verdicts with one token.
func traceOf(v *sbr.Verdict) (id trace.TraceID) {
	var token [8]byte
	binary.BigEndian.PutUint64(token[:], v.Token)
	sum := sha256.Sum256(append([]byte("sbr verdict "+string(v.DecidedBy)+" "), token[:]...))
	copy(id[:], sum[:])
	return id
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

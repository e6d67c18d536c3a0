package drive

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/downing"
)

// trace writes the trace of a run that has ended: only then its cause is known, and no backend shows an open
// span. It may block for as long as the provider's span processors do.
func (d *Driver[M]) trace(r *Run) {
	defer func() {
		if p := recover(); p != nil {
			d.Log.Error("sbr: a trace could not be written", "panic", fmt.Sprint(p))
		}
	}()
	p := cmp.Or(d.Cluster.Config().Tracer, otel.GetTracerProvider())
	tracer := p.Tracer(scope, trace.WithInstrumentationVersion(downing.Version()))
	ended := time.Now()
	cause, told := r.ending()
	ctx, span := tracer.Start(context.Background(), "sbr.run", trace.WithNewRoot(),
		trace.WithTimestamp(r.begun), trace.WithAttributes(
			attribute.String("sbr.system", d.Cluster.Config().System),
			attribute.String("sbr.member", downing.NameOf(d.Self)),
			attribute.String("sbr.incarnation", string(d.Self)),
			attribute.String("sbr.kind", d.Kind), attribute.String("sbr.name", d.Instance),
			attribute.String("sbr.run", r.Of), attribute.Int64("sbr.run.token", int64(r.Token)),
			attribute.String("sbr.from", r.From), attribute.String("sbr.cause", cause)))
	if !told.IsZero() {
		_, stop := tracer.Start(ctx, "sbr.run.stop", trace.WithTimestamp(told))
		stop.End(trace.WithTimestamp(ended))
	}
	span.End(trace.WithTimestamp(ended))
}

package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/slot"
)

// scope is that of metrics and traces.
const scope = "github.com/serf-sbr/serf-sbr/singleton"

// Meter is the meter of singletons and shards.
func Meter(c Cluster) metric.Meter {
	p := cmp.Or(c.Config().Meter, otel.GetMeterProvider())
	return p.Meter(scope, metric.WithInstrumentationVersion(downing.Version()))
}

// returned is the cause of a run that ends by itself.
const returned = "returned"

var causes = []string{
	string(slot.CauseHandOver), string(slot.CauseOrdered), string(slot.CauseResigned),
	string(slot.CauseLeaseLost), string(slot.CauseUnsure), string(slot.CauseDown), returned,
}

// meters measure the runs of one driver. They are safe for concurrent use.
type meters struct {
	plain        metric.MeasurementOption
	ended        map[string]metric.MeasurementOption // by cause
	starts, ends metric.Int64Counter
	stops        metric.Float64Histogram
	active       atomic.Int64
	shown        metric.Registration
}

// newMeters makes the instruments. Counters exist with zero from the start.
func newMeters(meter metric.Meter, kind, name string) (*meters, error) {
	of := []attribute.KeyValue{attribute.String("kind", kind), attribute.String("name", name)}
	m := &meters{plain: metric.WithAttributes(of...), ended: make(map[string]metric.MeasurementOption)}
	var errs [5]error
	m.starts, errs[0] = meter.Int64Counter("sbr.run.starts", metric.WithUnit("{run}"),
		metric.WithDescription("Runs of a singleton or of shards that have started on this member."))
	m.ends, errs[1] = meter.Int64Counter("sbr.run.ends", metric.WithUnit("{run}"),
		metric.WithDescription("Runs that have ended on this member, by cause."))
	m.stops, errs[2] = meter.Float64Histogram("sbr.run.stop.duration", metric.WithUnit("s"),
		metric.WithDescription("From the end of a run's context until its function returned: nothing runs meanwhile."),
		metric.WithExplicitBucketBoundaries(.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60))
	active, err := meter.Int64ObservableGauge("sbr.run.active", metric.WithUnit("{run}"),
		metric.WithDescription("Runs of a singleton or of shards on this member."))
	errs[3] = err
	m.starts.Add(context.Background(), 0, m.plain)
	for _, cause := range causes {
		m.ended[cause] = metric.WithAttributes(append(of, attribute.String("cause", cause))...)
		m.ends.Add(context.Background(), 0, m.ended[cause])
	}
	m.shown, errs[4] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(active, m.active.Load(), m.plain)
		return nil
	}, active)
	return m, errors.Join(errs[:]...)
}

func (m *meters) start() {
	m.active.Add(1)
	m.starts.Add(context.Background(), 1, m.plain)
}

// end counts the end of a run.
func (m *meters) end(r *Run) {
	m.active.Add(-1)
	cause, told := r.ending()
	m.ends.Add(context.Background(), 1, m.ended[cause])
	if !told.IsZero() {
		m.stops.Record(context.Background(), time.Since(told).Seconds(), m.plain)
	}
}

// close shows nothing any more. nil: nothing was shown.
func (m *meters) close() {
	if m != nil {
		_ = m.shown.Unregister()
	}
}

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

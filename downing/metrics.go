package downing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// metrics are the instruments of one engine. Attributes have few values: strategies' kinds, outcomes, states.
type metrics struct {
	decisions metric.Int64Counter
	downs     metric.Int64Counter
	acquires  metric.Float64Histogram
	members   metric.Int64Gauge
	suspects  metric.Int64Gauge
	token     metric.Int64Gauge
}

func newMetrics(p metric.MeterProvider) (*metrics, error) {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	meter := p.Meter("github.com/serf-sbr/serf-sbr/downing")
	m := &metrics{}
	var errs [6]error
	m.decisions, errs[0] = meter.Int64Counter("sbr.decisions", metric.WithDescription("Decisions of the resolver, by kind."))
	m.downs, errs[1] = meter.Int64Counter("sbr.downs", metric.WithDescription("How often this member was downed: 0 or 1."))
	m.acquires, errs[2] = meter.Float64Histogram("sbr.lease.acquire.duration", metric.WithUnit("s"), metric.WithDescription("Attempts to acquire the lease, by outcome: granted, held, unknown."))
	m.members, errs[3] = meter.Int64Gauge("sbr.members", metric.WithDescription("Members this one knows and that were not downed."))
	m.suspects, errs[4] = meter.Int64Gauge("sbr.unreachable", metric.WithDescription("Members that are unreachable and not yet downed."))
	m.token, errs[5] = meter.Int64Gauge("sbr.verdict.token", metric.WithDescription("Fencing token of the newest verdict; 0 when there is none."))
	return m, errors.Join(errs[:]...)
}

func (m *metrics) decided(d *sbr.Decision) {
	if d != nil {
		m.decisions.Add(context.Background(), 1, metric.WithAttributes(attribute.String("kind", d.Final.String())))
	}
}

func (m *metrics) downed() { m.downs.Add(context.Background(), 1) }

func (m *metrics) acquired(k lease.Kind, took time.Duration) {
	m.acquires.Record(context.Background(), took.Seconds(), metric.WithAttributes(attribute.String("outcome", k.String())))
}

func (m *metrics) publish(s *sbr.Snapshot) {
	ctx := context.Background()
	var members, suspects int64
	for i := range s.Members {
		if x := &s.Members[i]; x.Downable() {
			members++
			if x.Unreachable {
				suspects++
			}
		}
	}
	m.members.Record(ctx, members)
	m.suspects.Record(ctx, suspects)
	m.token.Record(ctx, int64(s.Verdict.Token))
}

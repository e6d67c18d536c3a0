package downing

import (
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// tally is a counter with at most one label whose values are known beforehand. Each has its attributes built once, and counts zero from
// the start: whoever computes a rate sees the first event, too.
type tally struct {
	counter metric.Int64Counter
	with    map[string]metric.MeasurementOption
}

func (t tally) add(value string) { t.addN(value, 1) }

func (t tally) addN(value string, n int) {
	if with, known := t.with[value]; known && n > 0 {
		t.counter.Add(background, int64(n), with)
	}
}

// spread is a histogram of seconds with at most one label.
type spread struct {
	histogram metric.Float64Histogram
	with      map[string]metric.MeasurementOption
}

func (s spread) record(value string, took time.Duration) {
	if with, known := s.with[value]; known {
		s.histogram.Record(background, took.Seconds(), with)
	}
}

// fixedLabel is a label that has one value.
type fixedLabel struct{ label, value string }

// instruments makes instruments and collects what goes wrong.
type instruments struct {
	meter  metric.Meter
	errs   []error
	hooked []metric.Observable
}

func (b *instruments) err() error { return errors.Join(b.errs...) }

// tally makes a counter. Without a label the one value is "".
func (b *instruments) tally(name, unit, help, label string, values ...string) tally {
	return b.tallyOf(name, unit, help, fixedLabel{}, label, values...)
}

func (b *instruments) tallyOf(name, unit, help string, fixed fixedLabel, label string, values ...string) tally {
	c, err := b.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
	b.errs = append(b.errs, err)
	t := tally{counter: c, with: options(fixed, label, values)}
	for _, with := range t.with {
		c.Add(background, 0, with)
	}
	return t
}

func (b *instruments) spread(name, help string, bounds []float64, label string, values ...string) spread {
	h, err := b.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help), metric.WithExplicitBucketBoundaries(bounds...))
	b.errs = append(b.errs, err)
	return spread{histogram: h, with: options(fixedLabel{}, label, values)}
}

func options(fixed fixedLabel, label string, values []string) map[string]metric.MeasurementOption {
	var always []attribute.KeyValue
	if fixed.label != "" {
		always = append(always, attribute.String(fixed.label, fixed.value))
	}
	if label == "" {
		return map[string]metric.MeasurementOption{"": metric.WithAttributeSet(attribute.NewSet(always...))}
	}
	with := make(map[string]metric.MeasurementOption, len(values))
	for _, v := range values {
		set := append(slices.Clip(always), attribute.String(label, v))
		with[v] = metric.WithAttributeSet(attribute.NewSet(set...))
	}
	return with
}

func (b *instruments) level(name, unit, help string) metric.Int64Observable {
	g, err := b.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	b.errs, b.hooked = append(b.errs, err), append(b.hooked, g)
	return g
}

func (b *instruments) age(name, help string) metric.Float64Observable {
	g, err := b.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(help))
	b.errs, b.hooked = append(b.errs, err), append(b.hooked, g)
	return g
}

func (b *instruments) time(name, help string) metric.Float64Observable {
	c, err := b.meter.Float64ObservableCounter(name, metric.WithUnit("s"), metric.WithDescription(help))
	b.errs, b.hooked = append(b.errs, err), append(b.hooked, c)
	return c
}

// observe has f called whenever somebody collects.
func (b *instruments) observe(f metric.Callback) metric.Registration {
	r, err := b.meter.RegisterCallback(f, b.hooked...)
	b.errs = append(b.errs, err)
	return r
}

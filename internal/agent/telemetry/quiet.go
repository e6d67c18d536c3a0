package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"golang.org/x/time/rate"
)

// quiet makes OpenTelemetry log through log, and little: a collector that is away must not fill the log of a cluster in trouble.
func quiet(log *slog.Logger) {
	l := newLimited(log.Handler())
	limited := slog.New(l)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { limited.Warn("sbr: telemetry was not sent", "error", err) }))
	otel.SetLogger(logr.FromSlogHandler(l))
}

const prefix = "sbr: "

// lineEvery is how often a line is logged.
const lineEvery = time.Minute

// limited is a handler that lets one record through in a while, and counts the rest. It is safe for concurrent use.
type limited struct {
	slog.Handler
	sometimes *rate.Sometimes
	silent    *atomic.Int64
}

func newLimited(h slog.Handler) limited {
	return limited{h, &rate.Sometimes{Interval: lineEvery}, new(atomic.Int64)}
}

// Enabled implements slog.Handler: what is less than a warning concerns those who write SDKs.
func (l limited) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && l.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l limited) Handle(ctx context.Context, r slog.Record) (err error) {
	l.silent.Add(1)
	l.sometimes.Do(func() {
		r = r.Clone()
		if !strings.HasPrefix(r.Message, prefix) {
			r.Message = prefix + "telemetry: " + r.Message // the SDK's own
		}
		if silent := l.silent.Swap(0) - 1; silent > 0 {
			r.AddAttrs(slog.Int64("more-like-it", silent))
		}
		err = l.Handler.Handle(ctx, r)
	})
	return err
}

// WithAttrs implements slog.Handler.
func (l limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{l.Handler.WithAttrs(attrs), l.sometimes, l.silent}
}

// WithGroup implements slog.Handler.
func (l limited) WithGroup(name string) slog.Handler {
	return limited{l.Handler.WithGroup(name), l.sometimes, l.silent}
}

package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
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
	*since
}

type since struct {
	mu     sync.Mutex
	last   time.Time
	silent int
}

func newLimited(h slog.Handler) limited { return limited{h, new(since)} }

// Enabled implements slog.Handler: what is less than a warning concerns those who write SDKs.
func (l limited) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && l.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l limited) Handle(ctx context.Context, r slog.Record) error {
	silent, ok := l.admit()
	if !ok {
		return nil
	}
	r = r.Clone()
	if !strings.HasPrefix(r.Message, prefix) {
		r.Message = prefix + "telemetry: " + r.Message // the SDK's own
	}
	if silent > 0 {
		r.AddAttrs(slog.Int("more-like-it", silent))
	}
	return l.Handler.Handle(ctx, r)
}

// admit reports whether a record may be logged now, and how many were not before it.
func (s *since) admit() (silent int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() && now.Sub(s.last) < lineEvery {
		s.silent++
		return 0, false
	}
	silent, s.silent, s.last = s.silent, 0, now
	return silent, true
}

// WithAttrs implements slog.Handler.
func (l limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{l.Handler.WithAttrs(attrs), l.since}
}

// WithGroup implements slog.Handler.
func (l limited) WithGroup(name string) slog.Handler {
	return limited{l.Handler.WithGroup(name), l.since}
}

package telemetry

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"golang.org/x/time/rate"
)

// lineEvery is how often a line is logged.
const lineEvery = time.Minute

// quiet makes OpenTelemetry log through log, and little: an unreachable collector must not fill the log of a
// cluster in trouble. Messages of the SDK below errors are for its developers.
func quiet(log *slog.Logger) {
	say := seldom(log)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { say(slog.LevelWarn, "sbr: telemetry was not sent", err.Error()) }))
	otel.SetLogger(funcr.New(func(_, text string) { say(slog.LevelError, "sbr: telemetry: the SDK complains", text) },
		funcr.Options{Verbosity: -1}))
}

// seldom returns what lets one line through in a while. It is safe for concurrent use.
func seldom(log *slog.Logger) func(level slog.Level, message, problem string) {
	sometimes := rate.Sometimes{Interval: lineEvery}
	return func(level slog.Level, message, problem string) {
		sometimes.Do(func() { log.Log(context.Background(), level, message, "error", problem) })
	}
}

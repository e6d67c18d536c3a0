// Package logtest keeps what is logged, for tests that look into it while it is written.
package logtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Log is a log. The zero Log is empty. It is safe for concurrent use. It is what a handler writes to, or it
// makes a Logger.
type Log struct {
	mu      sync.Mutex
	records []string
}

// Write keeps p as one record, as handlers of log/slog write it.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// All returns the records. A record with a line break is one record all the same.
func (l *Log) All() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// With returns the records that contain text.
func (l *Log) With(text string) []string {
	return slices.DeleteFunc(l.All(), func(r string) bool { return !strings.Contains(r, text) })
}

// String returns the records as lines.
func (l *Log) String() string { return strings.Join(append(l.All(), ""), "\n") }

// Logger keeps every record: the message and the record's own attributes, each as key=value, nothing quoted.
func (l *Log) Logger() *slog.Logger { return slog.New(handler{l, slog.LevelDebug}) }

// Warnings is as Logger, and keeps warnings and errors only.
func (l *Log) Warnings() *slog.Logger { return slog.New(handler{l, slog.LevelWarn}) }

type handler struct {
	log   *Log
	level slog.Level
}

func (h handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }
func (h handler) WithAttrs([]slog.Attr) slog.Handler               { return h }
func (h handler) WithGroup(string) slog.Handler                    { return h }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, " %s=%v", a.Key, a.Value)
		return true
	})
	_, err := h.log.Write([]byte(line.String()))
	return err
}

package agent

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// serfLogger hands the lines of Serf and memberlist on, with the level that stands in them: "[WARN] serf: …".
func serfLogger(to *slog.Logger) *log.Logger { return log.New(&serfLog{to}, "", 0) }

type serfLog struct{ to *slog.Logger }

var serfLevels = []struct {
	prefix string
	level  slog.Level
}{
	{"[TRACE] ", slog.LevelDebug - 4},
	{"[DEBUG] ", slog.LevelDebug},
	{"[INFO] ", slog.LevelInfo},
	{"[WARN] ", slog.LevelWarn},
	{"[ERR] ", slog.LevelError},
	{"[ERROR] ", slog.LevelError},
}

// Write implements io.Writer.
func (s *serfLog) Write(p []byte) (int, error) {
	line, level := bytes.TrimSpace(p), slog.LevelInfo
	for _, l := range serfLevels {
		if rest, ok := bytes.CutPrefix(line, []byte(l.prefix)); ok {
			line, level = rest, l.level
			break
		}
	}
	s.to.Log(context.Background(), level, string(line))
	return len(p), nil
}

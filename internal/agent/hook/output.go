package hook

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
)

// What is logged of one run.
const (
	maxLines = 100
	maxLine  = 1 << 10
)

// output logs what a command prints, and drops what is too much.
type output struct {
	log            *slog.Logger
	lines, dropped atomic.Int64 // dropped are bytes
}

// stream is one of the two outputs. Each is written to by one goroutine.
type stream struct {
	*output
	name    string
	line    []byte
	partial bool // the rest of this line is dropped
}

// Write never fails and never keeps more than a line: a command must not stand still because of what it prints.
func (s *stream) Write(p []byte) (int, error) {
	if s.lines.Load() >= maxLines { // a gigabyte is read as fast as it comes
		s.drop(len(p))
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		text, after, whole := bytes.Cut(rest, []byte{'\n'})
		rest = after
		s.add(text)
		if whole {
			s.flush()
			s.partial = false
		}
	}
	return len(p), nil
}

func (s *stream) add(text []byte) {
	room := maxLine - len(s.line)
	if s.partial {
		room = 0
	}
	if len(text) > room {
		s.drop(len(text) - room)
		text, s.partial = text[:room], true
	}
	s.line = append(s.line, text...)
}

// flush logs the line that was collected, also one that has no end.
func (s *stream) flush() {
	text := strings.ToValidUTF8(strings.TrimRight(string(s.line), "\r"), "\uFFFD")
	s.line = s.line[:0]
	if text == "" {
		return
	}
	if s.lines.Add(1) > maxLines {
		s.drop(len(text))
		return
	}
	s.log.Info("sbr: hook printed", "output", s.name, "line", text)
}

func (o *output) drop(n int) { o.dropped.Add(int64(n)) }

// end says how much was dropped. Both streams have ended.
func (o *output) end() {
	if n := o.dropped.Load(); n > 0 {
		o.log.Warn("sbr: hook printed more than is logged", "dropped-bytes", n, "max-lines", maxLines, "max-line-bytes", maxLine)
	}
}

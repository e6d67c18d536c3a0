package hook

import (
	"bytes"
	"log/slog"
	"strings"
)

// maxOutput is how much of each of its two outputs is logged of one run, in bytes.
const maxOutput = 16 << 10

// output keeps the beginning of what a command prints, and counts the rest. Write never fails: output must
// not block a command.
type output struct {
	kept    bytes.Buffer
	dropped int
}

func (o *output) Write(p []byte) (int, error) {
	n := min(len(p), maxOutput-o.kept.Len())
	o.kept.Write(p[:n])
	o.dropped += len(p) - n
	return len(p), nil
}

// log logs what was printed, line by line.
func (o *output) log(name string, to *slog.Logger) {
	for line := range strings.Lines(strings.ToValidUTF8(o.kept.String(), "\uFFFD")) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			to.Info("sbr: hook printed", "output", name, "line", line)
		}
	}
	if o.dropped > 0 {
		to.Warn("sbr: hook printed more than is logged", "output", name, "dropped-bytes", o.dropped, "logged-bytes", maxOutput)
	}
}

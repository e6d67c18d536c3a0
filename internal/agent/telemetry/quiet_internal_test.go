package telemetry

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// After a minute there is another line. What belongs together is limited together.
func TestSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		say := seldom(slog.New(slog.NewTextHandler(&out, nil)))
		for range 7 {
			say(slog.LevelWarn, "sbr: telemetry was not sent", "no")
		}
		time.Sleep(lineEvery)
		say(slog.LevelError, "sbr: telemetry: the SDK complains", "upload failed")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 2)
		require.Contains(t, lines[1], `level=ERROR msg="sbr: telemetry: the SDK complains" error="upload failed"`)
	})
}

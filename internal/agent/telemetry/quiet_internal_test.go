package telemetry

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

// After a minute there is another line, which says how many were not written. What belongs together is limited together.
func TestLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		h := newLimited(slog.NewTextHandler(&out, nil))
		log, sdk := slog.New(h), logr.FromSlogHandler(h)
		log.Warn("sbr: telemetry was not sent")
		for range 5 {
			log.With("a", 1).WithGroup("g").Warn("sbr: telemetry was not sent")
		}
		sdk.Error(errors.New("no"), "hidden")
		sdk.V(1).Info("never")
		time.Sleep(lineEvery)
		sdk.Error(errors.New("connection refused"), "upload failed")
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 2)
		require.Contains(t, lines[1], `msg="sbr: telemetry: upload failed"`)
		require.Contains(t, lines[1], "more-like-it=6")
	})
}

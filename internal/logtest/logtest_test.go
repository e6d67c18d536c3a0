package logtest_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
)

func TestLog_Warnings(t *testing.T) {
	var l logtest.Log
	log := l.Warnings().With("node", "n1").WithGroup("g")
	log.Info("not this")
	log.Warn("a message", "after", time.Second, "text", `says "no"`)
	log.Error("another one\nof two lines")
	require.Equal(t, []string{`a message after=1s text=says "no"`, "another one\nof two lines"}, l.All())
	require.Len(t, l.With("another"), 1)
	require.Empty(t, l.With("not this"))
	l.Logger().Debug("but this")
	require.Equal(t, "but this", l.All()[2])
}

func TestLog_IsAWriter(t *testing.T) {
	var l logtest.Log
	slog.New(slog.NewTextHandler(&l, nil)).Info("a message")
	require.Contains(t, l.String(), `level=INFO msg="a message"`)
	require.Len(t, l.With("a message"), 1)
}

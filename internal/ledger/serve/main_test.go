package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/lease/fence"
)

func TestRun_ServesUntilItsContextEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	status := make(chan int)
	go func() { status <- run(ctx, []string{"--file", file, "--listen", "127.0.0.1:0"}, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	require.True(t, ok, "%q", line)

	client := ledger.Client{URL: "http://" + address, HTTP: &http.Client{Transport: &http.Transport{}}}
	entry := ledger.Entry{Resource: "backup", Member: "n1", Run: "1", Seq: 1, Kind: ledger.Work}
	require.NoError(t, client.Append(t.Context(), 2, entry))
	require.ErrorIs(t, client.Append(t.Context(), 1, entry), fence.ErrStale)
	client.HTTP.CloseIdleConnections()
	cancel()
	require.Zero(t, <-status)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines, err := ledger.Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.Len(t, lines, 2)

	var messages bytes.Buffer
	require.Equal(t, 1, run(t.Context(), []string{"--file", file}, io.Discard, &messages))
	require.Contains(t, messages.String(), "is not empty")
}

func TestRun_WrongCommandLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 2, "-file"},
		{[]string{"--file", file, "more"}, 2, "-file"},
		{[]string{"--files", file}, 2, "not defined"},
		{[]string{"--file", file, "--listen", "nowhere"}, 1, "nowhere"},
		{[]string{"--file", filepath.Join(file, "absent")}, 1, "absent"},
	} {
		var messages bytes.Buffer
		require.Equal(t, c.status, run(t.Context(), c.args, io.Discard, &messages))
		require.Contains(t, messages.String(), c.want)
	}
}

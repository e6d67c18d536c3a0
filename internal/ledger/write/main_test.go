package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
)

// The test binary is the program when asked to be.
func TestMain(m *testing.M) {
	if os.Getenv("LEDGER_TEST_WRITE") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A real process that gets its facts from the environment and is told to stop.
func TestWrite_UntilTERM(t *testing.T) {
	s, err := ledger.Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
	require.NoError(t, err)
	defer s.Close()
	web := httptest.NewServer(s)
	defer web.Close()
	client := ledger.Client{URL: web.URL, HTTP: web.Client()}

	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "LEDGER_TEST_WRITE=1", "LEDGER_URL="+web.URL, "SBR_TOKEN=7",
		"SBR_SINGLETON=backup", "SBR_MEMBER=n1#x")
	var messages bytes.Buffer
	cmd.Stderr = &messages
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		lines, err := client.Lines(t.Context())
		return err == nil && len(lines) >= 5
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), "status 0")

	lines, err := client.Lines(t.Context())
	require.NoError(t, err)
	require.Equal(t, ledger.Start, lines[0].Kind)
	require.Equal(t, ledger.Work, lines[1].Kind)
	require.Equal(t, ledger.Stop, lines[len(lines)-1].Kind)
	for i, l := range lines {
		require.Equal(t, []any{"backup", "n1#x", lines[0].Run, uint64(7), uint64(i + 1), true},
			[]any{l.Resource, l.Member, l.Run, l.Token, l.Seq, l.Accepted})
	}
	require.NotEmpty(t, lines[0].Run)
	require.Contains(t, messages.String(), "backup on n1#x under token 7")
	require.Contains(t, messages.String(), "0 refused, 0 failed")
}

func TestParse_WhereFactsComeFrom(t *testing.T) {
	environment := func(facts map[string]string) func(string) string {
		return func(name string) string { return facts[name] }
	}
	all := map[string]string{"LEDGER_URL": "http://l", "SBR_TOKEN": "7", "SBR_SINGLETON": "s", "SBR_LEASE": "l",
		"SBR_MEMBER": "m", "SBR_HOLDER": "h"}
	w, err := parse(nil, environment(all), os.Stderr)
	require.NoError(t, err)
	require.Equal(t, []any{"http://l", uint64(7), "s", "m", ledger.DefaultEvery},
		[]any{w.Client.URL, w.Token, w.Entry.Resource, w.Entry.Member, w.Every})

	alone := map[string]string{"SBR_TOKEN": "7", "SBR_LEASE": "l", "SBR_HOLDER": "h"}
	w, err = parse([]string{"--ledger", "http://x", "--every", "1s"}, environment(alone), os.Stderr)
	require.NoError(t, err)
	require.Equal(t, []any{"http://x", "l", "h", time.Second},
		[]any{w.Client.URL, w.Entry.Resource, w.Entry.Member, w.Every})

	w, err = parse([]string{"--resource", "r", "--member", "me"}, environment(all), os.Stderr)
	require.NoError(t, err)
	require.Equal(t, []any{"r", "me"}, []any{w.Entry.Resource, w.Entry.Member})
}

func TestRun_SaysAllThatIsMissing(t *testing.T) {
	var messages bytes.Buffer
	require.Equal(t, 2, run(t.Context(), []string{"--every", "0s"}, func(string) string { return "" },
		&messages))
	for _, want := range []string{"LEDGER_URL", "SBR_SINGLETON", "SBR_TOKEN", "--every is 0s"} {
		require.Contains(t, messages.String(), want)
	}
	require.Equal(t, 2, run(t.Context(), []string{"--nonsense"}, func(string) string { return "" }, &messages))
}

package hook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// waitMost is how long a test waits for what must happen, on a machine that is busy.
const waitMost = 20 * time.Second

type hooks = config.Hooks

// journal is a log that tests look into.
type journal struct{ logtest.Log }

// lines returns what was logged with that message.
func (j *journal) lines(t *testing.T, message string) (all []map[string]any) {
	for _, line := range j.With("") {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if m["msg"] == message {
			all = append(all, m)
		}
	}
	return all
}

// one waits for the first line with that message.
func (j *journal) one(t *testing.T, message string) map[string]any {
	t.Helper()
	require.Eventually(t, func() bool { return len(j.lines(t, message)) > 0 }, waitMost,
		time.Millisecond, message)
	return j.lines(t, message)[0]
}

// start returns a Runner that logs into the journal and is closed at the end of the test.
func start(t *testing.T, o hooks) (*Runner, *journal) {
	t.Helper()
	j := &journal{}
	if o.Timeout == 0 {
		o.Timeout = waitMost
	}
	r, err := New(&o, slog.New(slog.NewJSONHandler(j, nil)))
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r, j
}

// script writes an executable shell script. Nothing is started meanwhile: a process that is being started
// would hold the file open for writing for a moment, and it could not be executed then.
func script(t *testing.T, text string) []string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(t.TempDir(), "hook.sh")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
	return []string{path}
}

// appears waits until a file has a whole line, and returns all that is in it.
func appears(t *testing.T, path string) string {
	t.Helper()
	var data []byte
	require.Eventually(t, func() bool {
		data, _ = os.ReadFile(path)
		return bytes.HasSuffix(data, []byte("\n"))
	}, waitMost, time.Millisecond, path)
	return string(data)
}

// within fails when f takes longer than that.
func within(t *testing.T, most time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	require.Less(t, time.Since(began), most)
}

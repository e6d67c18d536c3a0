package file

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const waitFor = 20 * time.Second

// childVariable makes the test binary one of these instead of running the tests.
const childVariable = "LEASE_FILE_TEST_CHILD"

var children = map[string]func() error{}

func TestMain(m *testing.M) {
	if role := os.Getenv(childVariable); role != "" {
		if err := children[role](); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newPath is the path of a record that does not exist yet, in a directory of its own.
func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "payments.lease") }

func openStore(path string, log *slog.Logger) (*Store, error) {
	cfg := Config{}
	cfg.Path, cfg.Logger = path, log
	return New(cfg)
}

func newStore(t testing.TB, path string) *Store {
	t.Helper()
	return newLoggingStore(t, path, nil)
}

func newLoggingStore(t testing.TB, path string, log *slog.Logger) *Store {
	t.Helper()
	s, err := openStore(path, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func record(holder string, token uint64) lease.Record {
	at := time.Date(2026, 11, 21, 13, 35, 7, 123456789, time.UTC)
	return lease.Record{
		Holder: holder, Token: token, Nonce: fmt.Sprintf("nonce-%s-%d", holder, token), TTL: 90 * time.Second,
		Acquired: at, Renewed: at.Add(time.Duration(token) * time.Second),
		Verdict: &sbr.Verdict{
			Token: token, Survivors: []sbr.ID{"n1@1", "n2@1"}, Down: []sbr.ID{"n3@1"}, DecidedBy: "n1@1",
			Reason: `n3 is "cut off": <2> of 3 survive – größer, 多数`,
		},
	}
}

func mustRead(t testing.TB, s *Store) lease.Snapshot {
	t.Helper()
	got, err := s.Read(context.Background())
	require.NoError(t, err)
	return got
}

func mustWrite(t testing.TB, s *Store, r lease.Record, prev lease.Version) lease.Snapshot {
	t.Helper()
	version, err := s.Write(context.Background(), r, prev)
	require.NoError(t, err)
	return lease.Snapshot{Record: r, Version: version}
}

func mustWriteFile(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func mustReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// names are the files in the directory of path, hidden ones included.
func names(t testing.TB, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// refusedOneLine insists on a certain no, in one line that names the file and says what to do.
func refusedOneLine(t testing.TB, s *Store, err error, contains ...string) {
	t.Helper()
	require.ErrorIs(t, err, lease.ErrRefused)
	require.NotErrorIs(t, err, lease.ErrConflict)
	oneLine(t, s, err, contains...)
}

func oneLine(t testing.TB, s *Store, err error, contains ...string) {
	t.Helper()
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
	require.Contains(t, err.Error(), s.path)
	require.True(t, strings.HasSuffix(err.Error(), ")"), "it says the way out: %v", err)
	for _, text := range contains {
		require.Contains(t, err.Error(), text)
	}
}

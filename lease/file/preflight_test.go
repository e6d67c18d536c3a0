package file

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

func TestPreflight_ChangesNothing(t *testing.T) {
	s := newStore(t, newPath(t))
	require.NoError(t, s.Preflight(t.Context()))
	require.Equal(t, []string{"payments.lease.lock"}, names(t, s.path))
	want := mustWrite(t, s, record("a", 1), "")
	require.NoError(t, s.Preflight(t.Context()))
	require.Equal(t, want, mustRead(t, s))
	require.ElementsMatch(t, []string{"payments.lease", "payments.lease.lock"}, names(t, s.path))
}

func TestPreflight_AllProblemsAtOnce(t *testing.T) {
	s := newStore(t, newPath(t))
	mustWriteFile(t, s.path, "{}")
	s.system.notify = func(string) (*fsnotify.Watcher, error) { return nil, syscall.ENOSPC }
	s.system.SyncDir = func(string) error { return syscall.EIO }
	err := s.Preflight(t.Context())
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 3)
	for i, want := range []string{"not a readable record",
		"changes are seen up to 1s late (raise fs.inotify.max_user_instances", "input/output error"} {
		require.Contains(t, lines[i], want)
		require.Contains(t, lines[i], s.path)
	}
	require.ElementsMatch(t, []string{"payments.lease", "payments.lease.lock"}, names(t, s.path))
}

func TestPreflight_ReplacementFails(t *testing.T) {
	s := newStore(t, newPath(t))
	s.system.Rename = func(string, string) error { return &os.LinkError{Op: "rename", Err: syscall.EPERM} }
	err := s.Preflight(t.Context())
	refusedOneLine(t, s, err, "operation not permitted")
	require.Equal(t, []string{"payments.lease.lock"}, names(t, s.path))
}

func TestPreflight_TheLockIsTaken(t *testing.T) {
	s := newStore(t, newPath(t))
	held, err := newStore(t, s.path).lock(t.Context())
	require.NoError(t, err)
	defer held.release()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	refusedOneLine(t, s, s.Preflight(ctx), "another process has the lock")
}

func TestPreflight_NotificationsDoNotCome(t *testing.T) {
	s := newStore(t, newPath(t))
	s.system.notify = func(string) (*fsnotify.Watcher, error) { return fsnotify.NewWatcher() } // of nothing
	require.ErrorContains(t, s.Preflight(t.Context()), "no notifications of changes within 1s")
	s.system.notify = func(string) (*fsnotify.Watcher, error) {
		n, err := fsnotify.NewBufferedWatcher(1)
		go func() { n.Errors <- errors.New("overflow") }()
		return n, err
	}
	require.ErrorContains(t, s.Preflight(t.Context()), "overflow")
}

func TestPreflight_Ends(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := newStore(t, newPath(t)).Preflight(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, lease.ErrRefused)
}

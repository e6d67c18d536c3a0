package file

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

// While somebody has the lock, nobody writes and everybody reads; who waits is told who to look for, and that nothing was written.
func TestLock_IsWaitedForWithinTheContext(t *testing.T) {
	s, judge := storeWithRecord(t)
	held, err := judge.lock(t.Context())
	require.NoError(t, err)
	prev := mustRead(t, s).Version

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = s.Write(ctx, record("b", 2), prev)
	refusedOneLine(t, s, err, "another process has the lock", "fuser -v "+s.lockPath())
	require.ErrorIs(t, err, context.DeadlineExceeded)

	written := make(chan error, 1)
	go func() {
		_, err := s.Write(t.Context(), record("b", 2), prev)
		written <- err
	}()
	require.Eventually(t, func() bool { return len(s.writing) == 1 }, waitFor, time.Millisecond)
	require.Empty(t, written)
	held.release()
	require.NoError(t, <-written)
}

func TestLock_WaitersOfOneStoreHonourTheirContext(t *testing.T) {
	s, judge := storeWithRecord(t)
	held, err := judge.lock(t.Context())
	require.NoError(t, err)
	defer held.release()
	first, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Write(first, record("b", 2), "")
		done <- err
	}()
	require.Eventually(t, func() bool { return len(s.writing) == 1 }, waitFor, time.Millisecond)
	second, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer stop()
	_, err = s.Write(second, record("c", 2), "")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	cancel()
	require.ErrorIs(t, <-done, lease.ErrRefused)
}

func TestLock_TwoStoresOfOneProcessExcludeEachOther(t *testing.T) {
	a, b := storeWithRecord(t)
	held, err := a.lock(t.Context())
	require.NoError(t, err)
	defer held.release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = b.lock(ctx)
	require.ErrorIs(t, err, errLockHeld)
}

// A killed writer leaves its temporary file. The next one removes it, once it is old, and nothing else.
func TestLeftovers_OnlyOwnOnlyOld(t *testing.T) {
	s := newStore(t, newPath(t))
	dir := filepath.Dir(s.path)
	leave := func(name string, age time.Duration) {
		path := filepath.Join(dir, name)
		mustWriteFile(t, path, "x")
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	const random = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	own, young := ".payments.lease."+random+".tmp", ".payments.lease.BBCDEFGHIJKLMNOPQRSTUVWXYZ.tmp"
	leave(own, time.Hour)
	leave(young, 0)
	others := []string{
		".orders.lease." + random + ".tmp", ".payments.lease.tmp", ".payments.lease.backup.tmp", "payments.lease." + random + ".tmp",
		".payments.lease." + random, ".payments.lease.abcdefghijklmnopqrstuvwxyz.tmp", "payments.lease.bak",
	}
	for _, name := range others {
		leave(name, time.Hour)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".payments.lease.DBCDEFGHIJKLMNOPQRSTUVWXYZ.tmp"), 0o700))
	require.True(t, s.isTemp(filepath.Base(s.tempName())))

	first := mustWrite(t, s, record("a", 1), "")
	require.NotContains(t, names(t, s.path), own)
	require.Subset(t, names(t, s.path), append(others, young, ".payments.lease.DBCDEFGHIJKLMNOPQRSTUVWXYZ.tmp"))

	leave(own, time.Hour)
	second := mustWrite(t, s, record("a", 2), first.Version)
	require.Contains(t, names(t, s.path), own, "it looks once a minute")
	s.tidied = time.Time{}
	mustWrite(t, s, record("a", 3), second.Version)
	require.NotContains(t, names(t, s.path), own)
}

package file

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
)

// What is certainly not written says so; from the replacement on, every error says that nobody knows. In both
// cases the file holds the old record or the new one, whole, and no temporary file.
func TestWrite_Faults(t *testing.T) {
	for name, c := range map[string]struct {
		sabotage func(*system)
		unknown  bool   // else refused
		stored   uint64 // the token in the file: 1 is the old record, 2 the new one
		want     string
	}{
		"disk full, no file": {
			sabotage: func(y *system) {
				y.Create = func(path string, _ int, _ os.FileMode) (
					*os.File, error) {
					return nil, pathError(path, syscall.ENOSPC)
				}
			},
			stored: 1, want: "free some space",
		},
		"disk full, no room for its content": {
			sabotage: func(y *system) { y.Sync = func(f *os.File) error { return pathError(f.Name(), syscall.ENOSPC) } },
			stored:   1, want: "free some space",
		},
		"quota reached": {
			sabotage: func(y *system) { y.Sync = func(f *os.File) error { return pathError(f.Name(), syscall.EDQUOT) } },
			stored:   1, want: "free some space",
		},
		"file cannot be synced": {
			sabotage: func(y *system) { y.Sync = func(f *os.File) error { return pathError(f.Name(), syscall.EIO) } },
			stored:   1, want: "write a temporary file",
		},
		"file cannot be written": {
			sabotage: func(y *system) {
				y.Create = func(path string, _ int, mode os.FileMode) (*os.File, error) {
					return os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, mode)
				}
			},
			stored: 1, want: "write a temporary file",
		},
		"too many open files": {
			sabotage: func(y *system) {
				y.Create = func(path string, _ int, _ os.FileMode) (
					*os.File, error) {
					return nil, pathError(path, syscall.EMFILE)
				}
			},
			stored: 1, want: "raise the limit",
		},
		"replacement not allowed": {
			sabotage: func(y *system) { y.Rename = func(string, string) error { return pathError("x", syscall.EPERM) } },
			stored:   1, want: "one user",
		},
		"the file is a mount point": {
			sabotage: func(y *system) { y.Rename = func(string, string) error { return pathError("x", syscall.EBUSY) } },
			stored:   1, want: "mount its directory",
		},
		"replacement failed, not done": {
			sabotage: func(y *system) { y.Rename = func(string, string) error { return pathError("x", syscall.EIO) } },
			unknown:  true, stored: 1, want: "put the temporary file in place",
		},
		"replacement failed, done": {
			sabotage: func(y *system) {
				real := y.Rename
				y.Rename = func(from, to string) error { _ = real(from, to); return pathError("x", syscall.EIO) }
			},
			unknown: true, stored: 2, want: "put the temporary file in place",
		},
		"directory cannot be synced": {
			sabotage: func(y *system) { y.SyncDir = func(string) error { return pathError("x", syscall.EIO) } },
			unknown:  true, stored: 2, want: "sync the directory",
		},
		"disk full while the directory is synced": {
			sabotage: func(y *system) { y.SyncDir = func(string) error { return pathError("x", syscall.ENOSPC) } },
			unknown:  true, stored: 2, want: "sync the directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, judge := storeWithRecord(t)
			c.sabotage(&s.system)
			_, err := s.Write(t.Context(), record("b", 2), mustRead(t, judge).Version)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, s.path)
			require.NotContains(t, err.Error(), "\n")
			require.NotErrorIs(t, err, lease.ErrConflict)
			if c.unknown {
				require.NotErrorIs(t, err, lease.ErrRefused)
				require.ErrorContains(t, err, "outcome unknown")
			} else {
				require.ErrorIs(t, err, lease.ErrRefused)
			}
			require.Equal(t, c.stored, mustRead(t, judge).Record.Token)
			require.ElementsMatch(t, []string{"payments.lease", "payments.lease.lock"}, names(t, s.path))

			s.system = realSystem()
			mustWrite(t, s, record("c", 3), mustRead(t, s).Version) // nothing is left locked
		})
	}
}

func pathError(path string, err error) error { return &fs.PathError{Op: "x", Path: path, Err: err} }

// storeWithRecord is a store whose system can be sabotaged, with the record of token 1, and another one that
// is whole.
func storeWithRecord(t *testing.T) (s, judge *Store) {
	s = newStore(t, newPath(t))
	judge = newStore(t, s.path)
	mustWrite(t, s, record("a", 1), "")
	return s, judge
}

// A hand that changes the file while a write is on its way does not take the lock. The write looks again
// right before it replaces.
func TestWrite_AHandIsFaster(t *testing.T) {
	s, judge := storeWithRecord(t)
	s.system.Sync = func(*os.File) error {
		copied := mustReadFile(t, s.path)
		mustWriteFile(t, s.path, copied+"\n")
		return nil
	}
	_, err := s.Write(t.Context(), record("b", 2), mustRead(t, s).Version)
	require.ErrorIs(t, err, lease.ErrConflict)
	require.EqualValues(t, 1, mustRead(t, judge).Record.Token)
}

func TestWrite_AHandIsFasterThanTheAnswer(t *testing.T) {
	s, _ := storeWithRecord(t)
	s.system.SyncDir = func(string) error { return os.Remove(s.path) }
	_, err := s.Write(t.Context(), record("b", 2), mustRead(t, s).Version)
	require.ErrorIs(t, err, errOvertaken)
	require.NotErrorIs(t, err, lease.ErrRefused, "it was written, and is gone")
	require.NotErrorIs(t, err, lease.ErrConflict)
}

// Deleting the lock file lets two writers in. The writer that notices it begins again, and sees what the
// other one wrote.
func TestWrite_TheLockFileIsDeleted(t *testing.T) {
	s, judge := storeWithRecord(t)
	prev := mustRead(t, s).Version
	s.system.Sync = func(f *os.File) error {
		s.system.Sync = (*os.File).Sync
		if err := os.Remove(s.lockPath()); err != nil {
			return err
		}
		_, err := judge.Write(t.Context(), record("intruder", 2), prev)
		return err
	}
	_, err := s.Write(t.Context(), record("b", 2), prev)
	require.ErrorIs(t, err, lease.ErrConflict)
	require.Equal(t, "intruder", mustRead(t, judge).Record.Holder)

	s.system.Sync = func(*os.File) error {
		s.system.Sync = (*os.File).Sync
		return os.Remove(s.lockPath())
	}
	mustWrite(t, s, record("c", 3), mustRead(t, s).Version) // nobody else came
	require.ElementsMatch(t, []string{"payments.lease", "payments.lease.lock"}, names(t, s.path))
}

// A caller that gives up before the replacement gets the truth: refused, and nothing comes later.
func TestWrite_GivenUpBeforeTheReplacement(t *testing.T) {
	s, judge := storeWithRecord(t)
	resume, ended := make(chan struct{}), make(chan struct{})
	s.system.Sync = func(*os.File) error { <-resume; return nil }
	s.system.Rename = func(string, string) error { t.Error("replaced after all"); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err := s.Write(ctx, record("b", 2), mustRead(t, judge).Version)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorIs(t, err, context.Canceled)
	close(resume)
	go func() { s.writing <- struct{}{}; close(ended) }() // the slot is free when the write has ended
	<-ended
	require.EqualValues(t, 1, mustRead(t, judge).Record.Token)
	require.ElementsMatch(t, []string{"payments.lease", "payments.lease.lock"}, names(t, s.path))
}

// A caller that gives up later learns that the outcome is unknown. Here it is written.
func TestWrite_GivenUpDuringTheReplacement(t *testing.T) {
	for name, sabotage := range map[string]func(*system, func()){
		"rename": func(y *system, stand func()) {
			y.Rename = func(a, b string) error { stand(); return os.Rename(a, b) }
		},
		"sync dir": func(y *system, stand func()) { y.SyncDir = func(string) error { stand(); return nil } },
	} {
		t.Run(name, func(t *testing.T) {
			s, judge := storeWithRecord(t)
			resume := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sabotage(&s.system, func() { cancel(); <-resume })
			_, err := s.Write(ctx, record("b", 2), mustRead(t, judge).Version)
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, lease.ErrRefused)
			require.NotErrorIs(t, err, lease.ErrConflict)
			close(resume)
			s.writing <- struct{}{}
			require.EqualValues(t, 2, mustRead(t, judge).Record.Token)
		})
	}
}

func TestRead_ADiskThatDoesNotAnswer(t *testing.T) {
	s, _ := storeWithRecord(t)
	resume := make(chan struct{})
	s.system.locality = func(string) (locality, error) { <-resume; return locality{}, nil }
	for range 2 * cap(s.reading) { // more than may hang at a time
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_, err := s.Read(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, lease.ErrRefused)
		oneLine(t, s, err, "the disk did not answer in time")
	}
	require.Len(t, s.reading, cap(s.reading))
	close(resume)
	require.EqualValues(t, 1, mustRead(t, s).Record.Token)
}

func TestClose_EndsEverything(t *testing.T) {
	s, judge := storeWithRecord(t)
	reported, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.Watch(t.Context(), func(lease.Snapshot) { close(reported) }) }()
	<-reported
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, lease.ErrClosed)
	_, err := s.Read(t.Context())
	require.ErrorIs(t, err, lease.ErrClosed)
	_, err = s.Write(t.Context(), record("b", 2), mustRead(t, judge).Version)
	require.ErrorIs(t, err, lease.ErrClosed)
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorIs(t, s.Preflight(t.Context()), lease.ErrClosed)
	require.EqualValues(t, 1, mustRead(t, judge).Record.Token)
}

// While the lock is held, no other party writes and all read; a waiting writer gets an error that says which
// process to look for, and that nothing was written.
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

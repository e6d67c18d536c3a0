package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
)

// Real obstacles: each operation says in one line which file, what is wrong and the way out, and nothing is
// made.
func TestErrors_WrongPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		path func(t *testing.T, dir string) string
		want []string
	}{
		"no directory": {
			func(_ *testing.T, dir string) string { return filepath.Join(dir, "none", "x.lease") },
			[]string{"the directory does not exist", "mkdir -p "},
		},
		"a directory": {
			func(t *testing.T, dir string) string {
				require.NoError(t, os.Mkdir(filepath.Join(dir, "x.lease"), 0o755))
				return filepath.Join(dir, "x.lease")
			},
			[]string{"not a regular file but a directory", "set lease.file.path to a file"},
		},
		"under a file": {
			func(t *testing.T, dir string) string {
				mustWriteFile(t, filepath.Join(dir, "x"), "")
				return filepath.Join(dir, "x", "y.lease")
			},
			[]string{"not a directory", "set lease.file.path"},
		},
		"a link": {
			func(t *testing.T, dir string) string {
				mustWriteFile(t, filepath.Join(dir, "real.lease"), string(mustEncode(t, record("a", 1))))
				require.NoError(t, os.Symlink("real.lease", filepath.Join(dir, "x.lease")))
				return filepath.Join(dir, "x.lease")
			},
			[]string{"a symbolic link", "the same for all parties"},
		},
		"a link to nowhere": {
			func(t *testing.T, dir string) string {
				require.NoError(t, os.Symlink("real.lease", filepath.Join(dir, "x.lease")))
				return filepath.Join(dir, "x.lease")
			},
			[]string{"a symbolic link"},
		},
		"a long name": {
			func(_ *testing.T, dir string) string { return filepath.Join(dir, strings.Repeat("x", 300)) },
			[]string{"a shorter name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, c.path(t, t.TempDir()))
			_, err := s.Read(t.Context())
			refusedOneLine(t, s, err, c.want...)
			_, err = s.Write(t.Context(), record("b", 2), "")
			refusedOneLine(t, s, err, c.want...)
			require.ErrorIs(t, s.Preflight(t.Context()), lease.ErrRefused)
			_, err = os.Stat(filepath.Join(filepath.Dir(s.path), "real.lease"))
			require.Equal(t, name != "a link", errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR))
		})
	}
}

// A name that just fits leaves no room for the names beside it.
func TestErrors_NameWithoutRoomForTheLock(t *testing.T) {
	s := newStore(t, filepath.Join(t.TempDir(), strings.Repeat("x", 253)))
	require.Zero(t, mustRead(t, s))
	_, err := s.Write(t.Context(), record("a", 1), "")
	refusedOneLine(t, s, err, "a shorter name")
	require.ErrorContains(t, s.Preflight(t.Context()), "a shorter name")
}

func TestErrors_LinkedDirectoriesAreFine(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	one, other := newStore(t, filepath.Join(dir, "real", "x.lease")),
		newStore(t, filepath.Join(dir, "link", "x.lease"))
	got := mustWrite(t, one, record("a", 1), "")
	require.Equal(t, got, mustRead(t, other))
	held, err := one.lock(t.Context())
	require.NoError(t, err)
	defer held.release()
	ok, err := os.ReadDir(filepath.Join(dir, "link"))
	require.NoError(t, err)
	require.Len(t, ok, 2, "one lock for both names of the directory")
}

func TestErrors_TheLockFile(t *testing.T) {
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"a directory": {func(path string) error { return os.Mkdir(path, 0o755) }, "is a directory"},
		"a link":      {func(path string) error { return os.Symlink("elsewhere", path) }, "symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, newPath(t))
			require.NoError(t, c.make(s.lockPath()))
			_, err := s.Write(t.Context(), record("a", 1), "")
			require.ErrorIs(t, err, lease.ErrRefused)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, s.lockPath())
			require.Equal(t, []string{"payments.lease.lock"}, names(t, s.path))
			require.ErrorContains(t, s.Preflight(t.Context()), c.want)
		})
	}
}

// Every operation is refused, before a lock file is made there.
func TestErrors_NetworkFileSystem(t *testing.T) {
	s := newStore(t, newPath(t))
	s.system.locality = func(string) (locality, error) { return locality{remote, "nfs"}, nil }
	_, err := s.Read(t.Context())
	refusedOneLine(t, s, err, "is on nfs")
	require.ErrorIs(t, err, ErrNetworkFileSystem)
	_, err = s.Write(t.Context(), record("a", 1), "")
	refusedOneLine(t, s, err, "is on nfs")
	require.ErrorIs(t, err, ErrNetworkFileSystem)
	err = s.Watch(t.Context(), func(lease.Snapshot) { t.Error("told something") })
	refusedOneLine(t, s, err, "is on nfs")
	err = s.Preflight(t.Context())
	refusedOneLine(t, s, err, "another lease-implementation for several machines")
	require.Empty(t, names(t, s.path))
}

func TestErrors_DoubtfulFileSystem(t *testing.T) {
	var log logtest.Log
	s := newLoggingStore(t, newPath(t), log.Logger())
	s.system.locality = func(string) (locality, error) { return locality{doubtful, "fuse"}, nil }
	mustWrite(t, s, record("a", 1), "")
	mustRead(t, s)
	require.Len(t, log.With("nobody knows whether this file system is local"), 1)
	require.Contains(t, log.String(), "file-system=fuse")
}

// The messages that take a broken machine to see.
func TestErrors_Advice(t *testing.T) {
	s := newStore(t, newPath(t))
	for err, want := range map[error]string{
		syscall.EROFS:   "(the file system is read-only: mount it for writing, or set lease.file.path)",
		syscall.EACCES:  "(all parties must run as one user, who owns the files and may write in " + s.dir + ")",
		syscall.ENOSPC:  "(the disk or the quota is full: free some space)",
		syscall.ENFILE:  "(too many open files: raise the limit)",
		errUnstableRead: "",
		syscall.EIO:     "",
	} {
		require.True(t, strings.HasSuffix(s.fail("x", err).Error(), err.Error()+strings.TrimSuffix(" "+want, " ")),
			"%v", s.fail("x", err))
	}
	require.ErrorIs(t, s.failRead(fs.ErrPermission), lease.ErrRefused)
	require.NotErrorIs(t, s.failRead(syscall.EIO), lease.ErrRefused, "it may pass")
	require.NotErrorIs(t, s.failRead(ErrBadRecord), lease.ErrRefused, "a hand may be at work")
	require.ErrorIs(t, s.failRead(lease.ErrNewerFormat), lease.ErrRefused)
}

package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Errors of a Store, beside those of package lease.
var (
	// ErrNetworkFileSystem is wrapped, together with lease.ErrRefused, by every operation on a directory that
	// is not on a local disk: locks and the atomic replacement of files do not hold between the machines that
	// share it.
	ErrNetworkFileSystem = errors.New("file: network file systems are not supported")
	// ErrBadRecord is wrapped by a Read, and passed over by a Watch, when the file exists and is not the
	// record of a lease: damaged, cut off, empty, or of a newer version of this program (then the error wraps
	// lease.ErrRefused as well). It never reads as free.
	ErrBadRecord = errors.New("file: not a readable record")
)

var (
	errNotRegular        = errors.New("not a regular file")
	errNoDirectory       = errors.New("the directory does not exist")
	errLockHeld          = errors.New("another process has the lock all this time")
	errLockGone          = errors.New("the lock file was deleted or replaced")
	errNotifyUnavailable = errors.New("no notifications of changes")
	errUnstableRead      = errors.New("it changes faster than it can be read")
	errOvertaken         = errors.New("somebody changed it without the lock at the same time")
)

// failRead is an error of a read.
func (s *Store) failRead(err error) error {
	if r := remedyOf(err); r.needsOperator && !errors.Is(err, lease.ErrRefused) {
		return s.refused("read", err)
	}
	return s.fail("read", err)
}

func (s *Store) fail(action string, err error) error {
	return fmt.Errorf("lease file %s: %s: %w%s", s.path, action, err, s.advice(err))
}

// refused is for what certainly was not written.
func (s *Store) refused(action string, err error) error {
	return fmt.Errorf("lease file %s: %s: %w: %w%s", s.path, action, lease.ErrRefused, err, s.advice(err))
}

// remedy is what to do about an error. DIR in it is the directory, LOCK the lock file.
type remedy struct {
	err error
	// needsOperator: asking again at once makes no sense, only a person can mend it.
	needsOperator bool
	text          string
}

// remedies are in order: the first that fits counts.
var remedies = []remedy{
	{ErrNetworkFileSystem, true, "set lease.file.path to a local disk, or use another lease-implementation for several machines"},
	{lease.ErrNewerFormat, true, "upgrade this program"},
	{ErrBadRecord, false, "correct it, or stop all parties and move it away to start afresh"},
	// Before its cause: its "no space left" is not the disk's.
	{errNotifyUnavailable, false, "raise fs.inotify.max_user_instances and max_user_watches, or live with it"},
	{errLockHeld, false, "a stopped process or a slow disk? `fuser -v LOCK` says who has it; end that one, never delete the lock file"},
	{context.DeadlineExceeded, false, "the disk did not answer in time"},
	{errNoDirectory, true, "mkdir -p DIR, mount it, or set lease.file.path"},
	{syscall.ENOTDIR, true, "set lease.file.path to a file in a directory"},
	{syscall.ELOOP, true, "a symbolic link: set lease.file.path to what it points at, the same for all parties"},
	{errNotRegular, true, "set lease.file.path to a file, or to a name that is not in use"},
	{syscall.EROFS, false, "the file system is read-only: mount it for writing, or set lease.file.path"},
	{fs.ErrPermission, true, "all parties must run as one user, who owns the files and may write in DIR"},
	{syscall.ENOSPC, false, "the disk or the quota is full: free some space"},
	{syscall.EDQUOT, false, "the disk or the quota is full: free some space"},
	{syscall.EBUSY, false, "is the file itself a mount point? mount its directory instead"},
	{syscall.ENAMETOOLONG, true, "set lease.file.path to a shorter name"},
	{syscall.EMFILE, false, "too many open files: raise the limit"},
	{syscall.ENFILE, false, "too many open files: raise the limit"},
}

// remedyOf returns the zero remedy where none is known.
func remedyOf(err error) remedy {
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return r
		}
	}
	return remedy{}
}

// advice says in brackets what to do about an error, or nothing.
func (s *Store) advice(err error) string {
	text := remedyOf(err).text
	if text == "" {
		return ""
	}
	return " (" + strings.NewReplacer("DIR", s.dir, "LOCK", s.lockPath()).Replace(text) + ")"
}

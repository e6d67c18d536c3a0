package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/serf-sbr/serf-sbr/lease"
)

// Errors of a Store, beside those of package lease.
var (
	// ErrNetworkFileSystem is wrapped, together with lease.ErrRefused, by every operation on a directory that is not on a local disk:
	// locks and the atomic replacement of files do not hold between the machines that share it.
	ErrNetworkFileSystem = errors.New("file: network file systems are not supported")
	// ErrBadRecord is wrapped by a Read, and passed over by a Watch, when the file exists and is not the record of a lease: damaged,
	// cut off, empty, or of a newer version of this program (then the error wraps lease.ErrRefused as well). It never reads as free.
	ErrBadRecord = errors.New("file: not a readable record")
)

var (
	errNotRegular  = errors.New("not a regular file")
	errNoDirectory = errors.New("the directory does not exist")
	errNotDir      = errors.New("the directory is none")
	errLockHeld    = errors.New("another process has the lock all this time")
	errLockGone    = errors.New("the lock file was deleted or replaced")
	errBlind       = errors.New("no notifications of changes")
	errRestless    = errors.New("it changes faster than it can be read")
	errOvertaken   = errors.New("somebody changed it without the lock at the same time")
)

// futile reports whether asking again at once makes no sense: only a person can mend it.
func futile(err error) bool {
	for _, target := range []error{
		ErrNetworkFileSystem, lease.ErrNewerFormat, errNotRegular, errNoDirectory, errNotDir,
		fs.ErrPermission, syscall.ELOOP, syscall.ENOTDIR, syscall.ENAMETOOLONG,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// failRead is an error of a read.
func (s *Store) failRead(err error) error {
	if futile(err) && !errors.Is(err, lease.ErrRefused) {
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

// advice says in brackets what to do about an error, or nothing.
func (s *Store) advice(err error) string {
	text := s.remedy(err)
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func (s *Store) remedy(err error) string {
	dir := filepath.Dir(s.path)
	switch {
	case errors.Is(err, ErrNetworkFileSystem):
		return "set lease.file.path to a local disk, or use another lease-implementation for several machines"
	case errors.Is(err, lease.ErrNewerFormat):
		return "upgrade this program"
	case errors.Is(err, ErrBadRecord):
		return "correct it, or stop all parties and move it away to start afresh"
	case errors.Is(err, errBlind): // whose "no space left" is not the disk's
		return "raise fs.inotify.max_user_instances and max_user_watches, or live with it"
	case errors.Is(err, errLockHeld):
		return "a stopped process or a slow disk? `fuser -v " + s.lockPath() + "` says who has it; end that one, never delete the lock file"
	case errors.Is(err, context.DeadlineExceeded):
		return "the disk did not answer in time"
	case errors.Is(err, errNoDirectory):
		return "mkdir -p " + dir + ", mount it, or set lease.file.path"
	case errors.Is(err, errNotDir), errors.Is(err, syscall.ENOTDIR):
		return "set lease.file.path to a file in a directory"
	case errors.Is(err, syscall.ELOOP):
		return "a symbolic link: set lease.file.path to what it points at, the same for all parties"
	case errors.Is(err, errNotRegular):
		return "set lease.file.path to a file, or to a name that is not in use"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: mount it for writing, or set lease.file.path"
	case errors.Is(err, fs.ErrPermission):
		return "all parties must run as one user, who owns the files and may write in " + dir
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk or the quota is full: free some space"
	case errors.Is(err, syscall.EBUSY):
		return "is the file itself a mount point? mount its directory instead"
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "set lease.file.path to a shorter name"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "too many open files: raise the limit"
	default:
		return ""
	}
}

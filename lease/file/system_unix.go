//go:build unix

package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags: neither follow a link (two names of one file would have two locks) nor hang on a pipe.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

func openFile(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|openFlags, 0) }

func identify(f *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return identity{}, &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	// The types of the fields differ from system to system.
	return identity{device: uint64(st.Dev), inode: uint64(st.Ino), changed: st.Ctim.Nano(), size: int64(st.Size)}, nil //nolint:unconvert // see above
}

func replace(from, to string) error { return os.Rename(from, to) }

// notRenamed reports whether err, of replace, means that it certainly did nothing: the kernel says these
// before it touches the disk.
func notRenamed(err error) bool {
	for _, target := range []error{
		syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EBUSY, syscall.EISDIR, syscall.ENOTDIR, syscall.EXDEV, syscall.ENOENT, syscall.ELOOP,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// mayReplace reports whether this process may put another file in place of the one at path, as far as a
// sticky directory (/tmp) decides that: there only the owner of a file or of the directory may. A path
// without a file has no owner.
func mayReplace(dir, path string) bool {
	var d, f unix.Stat_t
	if unix.Stat(dir, &d) != nil || d.Mode&unix.S_ISVTX == 0 || unix.Lstat(path, &f) != nil {
		return true
	}
	me := os.Geteuid()
	return me == 0 || me == int(d.Uid) || me == int(f.Uid)
}

//go:build darwin || freebsd

package file

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

func localityOf(dir string) (locality, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return locality{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	kind := unix.ByteSliceToString(st.Fstypename[:])
	if uint64(st.Flags)&unix.MNT_LOCAL == 0 {
		return locality{remote, kind}, nil
	}
	return locality{local, kind}, nil
}

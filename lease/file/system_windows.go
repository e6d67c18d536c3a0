package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

const openFlags = 0

func openFile(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
	}
	return os.Open(path)
}

// basicInfo is FILE_BASIC_INFO.
type basicInfo struct {
	created, accessed, written, changed int64
	attributes                          uint32
	_                                   uint32
}

func identify(f *os.File) (identity, error) {
	h := windows.Handle(f.Fd())
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return identity{}, &fs.PathError{Op: "GetFileInformationByHandle", Path: f.Name(), Err: err}
	}
	var basic basicInfo
	err := windows.GetFileInformationByHandleEx(h, windows.FileBasicInfo, (*byte)(unsafe.Pointer(&basic)),
		uint32(unsafe.Sizeof(basic)))
	if err != nil {
		return identity{}, &fs.PathError{Op: "GetFileInformationByHandleEx", Path: f.Name(), Err: err}
	}
	return identity{
		device: uint64(info.VolumeSerialNumber), inode: uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow),
		changed: basic.changed, size: int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow),
	}, nil
}

// replace waits a moment for readers: Windows does not replace an open file.
func replace(from, to string) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(2 * time.Millisecond) {
		err := os.Rename(from, to)
		if err == nil || !inUse(err) || time.Now().After(end) {
			return err
		}
	}
}

func inUse(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// notRenamed: what else Windows may have done before it said no is not known here.
func notRenamed(err error) bool { return inUse(err) }

func localityOf(dir string) (locality, error) {
	if _, err := os.Stat(dir); err != nil {
		return locality{}, err
	}
	from, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return locality{}, err
	}
	volume := make([]uint16, windows.MAX_LONG_PATH)
	if err := windows.GetVolumePathName(from, &volume[0], uint32(len(volume))); err != nil {
		return locality{}, &fs.PathError{Op: "GetVolumePathName", Path: dir, Err: err}
	}
	switch windows.GetDriveType(&volume[0]) {
	case windows.DRIVE_REMOTE:
		return locality{remote, "network drive"}, nil
	case windows.DRIVE_UNKNOWN, windows.DRIVE_NO_ROOT_DIR:
		return locality{doubtful, "unknown"}, nil
	default:
		return locality{local, "local drive"}, nil
	}
}

// mayReplace: there are no sticky directories.
func mayReplace(string, string) bool { return true }

// Package folder makes what was done in a folder last: what was written, and a name that was given or taken
// away, outlives a power loss.
package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Disk is what replacing a file asks of the operating system, where a crash or a fault can come in between.
type Disk struct {
	Create  func(path string, flag int, mode os.FileMode) (*os.File, error)
	Write   func(f *os.File, data []byte) error
	Sync    func(f *os.File) error
	Rename  func(from, to string) error
	SyncDir func(dir string) error
}

// Real is the disk itself.
func Real() Disk {
	return Disk{
		Create: os.OpenFile,
		Write: func(f *os.File, data []byte) error {
			_, err := f.Write(data)
			return err
		},
		Sync:    (*os.File).Sync,
		Rename:  os.Rename,
		SyncDir: Sync,
	}
}

// Replace puts data in place of the file at path: it is staged in the file temp, which takes the name of the
// old one, and the folder is synced.
func (d *Disk) Replace(path, temp string, data []byte, mode os.FileMode) error {
	if err := d.Stage(temp, data, os.O_TRUNC, mode, 0); err != nil {
		return err
	}
	if err := d.Rename(temp, path); err != nil {
		return err
	}
	if err := d.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: sync the directory: %w", path, err)
	}
	return nil
}

// Stage writes data to a file, down to the disk. flag joins those that open it to be written. exactly, where
// it is not zero, is its mode whatever the umask says.
func (d *Disk) Stage(path string, data []byte, flag int, mode, exactly os.FileMode) error {
	f, err := d.Create(path, os.O_WRONLY|os.O_CREATE|flag, mode)
	if err != nil {
		return err
	}
	if exactly != 0 {
		err = f.Chmod(exactly)
	}
	if err == nil {
		err = d.Write(f, data)
	}
	if err == nil {
		err = d.Sync(f)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// Sync writes the names in a folder to the disk. It does nothing on Windows, which has no such call: NTFS
// writes its journal by itself, a moment later.
func Sync(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

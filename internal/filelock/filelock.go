package filelock

import (
	"fmt"
	"os"
)

// Lock is a held lock. Close gives it back.
type Lock struct{ file *os.File }

// Try takes the lock of the file at path, which it creates if need be, without waiting. A nil Lock without an error means that
// somebody else holds it.
func Try(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("filelock: %w", err)
	}
	taken, err := tryLock(file)
	if err != nil || !taken {
		_ = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("filelock: %s: %w", path, err)
	}
	if !taken {
		return nil, nil
	}
	return &Lock{file: file}, nil
}

// Close gives the lock back. The file stays: removing it would let two holders lock two files of one name.
func (l *Lock) Close() error { return l.file.Close() }

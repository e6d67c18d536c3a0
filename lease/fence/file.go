package fence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"github.com/serf-sbr/serf-sbr/internal/folder"
)

// Errors of a File.
var (
	// ErrInUse is wrapped by OpenFile when the file is open already: two fences before one resource are none.
	ErrInUse = errors.New("fence: the file is in use")
	// ErrDamaged is wrapped by File.Load when the file holds anything but a token.
	ErrDamaged = errors.New("fence: the file is damaged")
)

const fileMode = 0o644

// File is a Storage: a file with the token as a decimal number and a newline, which a person can read and
// correct. Beside it are PATH.lock, which stays, and for moments PATH.tmp.
type File struct {
	path string
	disk folder.Disk

	mu   sync.Mutex // a Save, or Close
	lock *flock.Flock
}

// OpenFile opens the file at path for this process alone, until Close. A file that is not there yet has never
// seen a token; its directory must exist. The error wraps ErrInUse if another process, or another File, has
// it.
func OpenFile(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	// the file stays: with it removed two processes could lock two files of one name
	lock := flock.New(path + ".lock")
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("fence: %s: %w", path, err)
	}
	if !locked {
		return nil, fmt.Errorf("%w: %s: end the other process, or give this one a file of its own", ErrInUse, path)
	}
	return &File{path: path, lock: lock, disk: folder.Real()}, nil
}

// Close lets others open the file. Close it when nothing goes through its Fence any more: that saves nothing
// from here on, and so admits no larger tokens.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lock.Close()
}

// Load implements Storage. The error wraps ErrDamaged when the file is there and holds no token.
func (f *File) Load() (uint64, error) {
	text, err := f.read()
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("fence: %w", err)
	}
	// The newline is how a file that was cut off is told from a smaller token.
	line, whole := strings.CutSuffix(text, "\n")
	token, err := Parse(line)
	if err != nil || !whole {
		return 0, fmt.Errorf("%w: %s holds %.32q: it must be a token and a newline; write the largest token ever accepted into it, "+
			"do not remove it", ErrDamaged, f.path, text)
	}
	return token, nil
}

// read returns the file's text, or so much of it that it cannot be a token any more.
func (f *File) read() (string, error) {
	file, err := os.Open(f.path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, 64))
	return string(text), err
}

// Save implements Storage: a new file, down to the disk, takes the place of the old one, and the directory is
// synced.
func (f *File) Save(token uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.lock.Locked() {
		return fmt.Errorf("fence: %s: %w", f.path, os.ErrClosed)
	}
	if err := f.disk.Replace(f.path, f.path+".tmp", []byte(Format(token)+"\n"), fileMode); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	return nil
}

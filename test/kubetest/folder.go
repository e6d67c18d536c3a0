package kubetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	folderPrefix = "sbr-kubetest-"
	// leftoverAge leaves time to read the logs of a failed start.
	leftoverAge = time.Hour
)

// folder holds what a cluster writes. Its lock tells other test processes that it is in use.
type folder struct {
	path string
	kept bool
	lock *flock.Flock
}

func openFolder(path string) (*folder, error) {
	f := &folder{path: path, kept: path != ""}
	var err error
	if f.kept {
		err = os.MkdirAll(path, 0o755)
	} else {
		removeLeftovers(os.TempDir())
		f.path, err = os.MkdirTemp("", folderPrefix)
	}
	if err != nil {
		return nil, fmt.Errorf("kubetest: folder: %w", err)
	}
	f.lock = flock.New(f.file("lock"))
	locked, err := f.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("kubetest: folder: %w", err)
	}
	if !locked {
		return nil, fmt.Errorf("kubetest: folder %s: another cluster uses it; give each its own Options.Dir", path)
	}
	return f, nil
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

func (f *folder) close() error {
	var err error
	if !f.kept {
		err = os.RemoveAll(f.path)
	}
	return errors.Join(err, f.lock.Close())
}

// removeLeftovers clears the folders of killed tests: etcd alone reserves 64 MB in each.
func removeLeftovers(parent string) {
	folders, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*"))
	for _, path := range folders {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < leftoverAge {
			continue
		}
		lock := flock.New(filepath.Join(path, "lock"))
		if locked, err := lock.TryLock(); err != nil || !locked {
			continue
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}

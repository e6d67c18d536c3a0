package kubetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/filelock"
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
	lock *filelock.Lock
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
	if f.lock, err = filelock.Try(filepath.Join(f.path, "lock")); err != nil {
		return nil, err
	}
	if f.lock == nil {
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
		lock, err := filelock.Try(filepath.Join(path, "lock"))
		if err != nil || lock == nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}

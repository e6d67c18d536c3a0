package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/kubetest/internal/filelock"
)

// CacheEnv names the environment variable that moves the cache out of the repository, for example to share it between clones.
const CacheEnv = "SBR_KUBE_CACHE"

const lockPoll = 200 * time.Millisecond

// Set is where the two programs are.
type Set struct {
	APIServer string
	Etcd      string
}

// Ensure returns the programs and builds them first when they are missing or out of date: about 4 minutes from nothing on two
// cores. It reports progress on out and waits for a build that another process has under way. The working folder must be inside
// the repository.
func Ensure(ctx context.Context, out io.Writer) (Set, error) {
	root, err := repositoryRoot()
	if err != nil {
		return Set{}, err
	}
	src, err := readSource(ctx, filepath.Join(root, "test", "kube"))
	if err != nil {
		return Set{}, err
	}
	return src.ensure(ctx, cacheFolder(root), out)
}

func (s source) ensure(ctx context.Context, cache string, out io.Writer) (Set, error) {
	target := filepath.Join(cache, s.key())
	if exists(target) {
		return setIn(target), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Set{}, fmt.Errorf("binaries: cache folder: %w; point %s to a folder that can be written", err, CacheEnv)
	}
	lock, err := waitForLock(ctx, cache, out)
	if err != nil {
		return Set{}, err
	}
	defer func() { _ = lock.Close() }()
	// Whoever held the lock may have built the very same thing.
	if exists(target) {
		return setIn(target), nil
	}
	if err := s.buildInto(ctx, cache, target, out); err != nil {
		return Set{}, err
	}
	return setIn(target), nil
}

// buildInto builds beside the target and renames: a target that exists is always whole.
func (s source) buildInto(ctx context.Context, cache, target string, out io.Writer) error {
	removeUnfinished(cache)
	unfinished, err := os.MkdirTemp(cache, unfinishedPrefix)
	if err != nil {
		return fmt.Errorf("binaries: cache folder: %w; point %s to a folder that can be written", err, CacheEnv)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	set := setIn(unfinished)
	steps := []step{
		{label: "[1/2] etcd " + s.etcdVersion, pkg: etcdPackage, output: set.Etcd},
		{label: "[2/2] kube-apiserver " + s.kubeVersion + " (minutes, the first time)", pkg: apiServerPackage, output: set.APIServer},
	}
	for _, step := range steps {
		if err := step.run(ctx, s.module, out); err != nil {
			return err
		}
	}
	if err := os.Rename(unfinished, target); err != nil {
		return fmt.Errorf("binaries: finished build: %w", err)
	}
	return nil
}

const unfinishedPrefix = "unfinished-"

// removeUnfinished clears what killed builds left. The caller holds the lock, so no build is using any of it.
func removeUnfinished(cache string) {
	left, _ := filepath.Glob(filepath.Join(cache, unfinishedPrefix+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

func waitForLock(ctx context.Context, cache string, out io.Writer) (*filelock.Lock, error) {
	path := filepath.Join(cache, "lock")
	for told := false; ; told = true {
		lock, err := filelock.Try(path)
		if err != nil {
			return nil, fmt.Errorf("binaries: %w", err)
		}
		if lock != nil {
			return lock, nil
		}
		if !told {
			fmt.Fprintln(out, "kubetest: waiting for another build of kube-apiserver and etcd")
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("binaries: %s: another build still holds the lock: %w", path, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

func setIn(dir string) Set {
	return Set{APIServer: filepath.Join(dir, "kube-apiserver"), Etcd: filepath.Join(dir, "etcd")}
}

func cacheFolder(root string) string {
	dir := os.Getenv(CacheEnv)
	switch {
	case dir == "":
		return filepath.Join(root, ".cache", "kube")
	case filepath.IsAbs(dir):
		return dir
	default:
		// Tests run in the folder of their package; one setting must mean one folder for all of them.
		return filepath.Join(root, dir)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

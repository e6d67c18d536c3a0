package buildcache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Env names the environment variable that moves the folder of all builds out of the repository, for instance
// to share it between clones.
const Env = "SBR_TEST_CACHE"

const (
	mainModule       = "module github.com/serf-sbr/serf-sbr"
	lockPoll         = 200 * time.Millisecond
	unfinishedPrefix = "unfinished-"
)

// Root returns the folder of the repository, found by walking up from the working folder: tests run in the
// folder of their package. An error is returned outside of it.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("buildcache: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("buildcache: %w", err)
		}
		if first, _, _ := strings.Cut(string(mod), "\n"); strings.TrimSpace(first) == mainModule {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("buildcache: %s is not inside the serf-sbr repository; run from there", start)
		}
	}
}

// Folder is where builds of one kind lie: .cache/kind of the repository, or in the folder that Env names,
// which is relative to it.
func Folder(root, kind string) string {
	dir := os.Getenv(Env)
	if dir == "" {
		dir = ".cache"
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir) // tests run in the folder of their package
	}
	return filepath.Join(dir, kind)
}

// Ensure returns the folder named key in folder, and has it made by build, which is called with an empty
// folder, when it is missing. It waits for the build of another process. An error is returned when the folder
// cannot be written, when ctx ends, or when build fails; then nothing is left.
func Ensure(ctx context.Context, folder, key string, build func(dir string) error) (string, error) {
	target := filepath.Join(folder, key)
	if exists(target) {
		return target, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("buildcache: %w; point %s to a folder that can be written", err, Env)
	}
	lock := flock.New(filepath.Join(folder, "lock"))
	if _, err := lock.TryLockContext(ctx, lockPoll); err != nil {
		return "", fmt.Errorf("buildcache: %s: another build still holds the lock: %w", lock.Path(), err)
	}
	defer func() { _ = lock.Close() }()
	if exists(target) { // the process that held the lock has built the very same thing
		return target, nil
	}
	return target, buildInto(target, build)
}

// buildInto builds beside the target and renames: a target that exists is always whole.
func buildInto(target string, build func(dir string) error) error {
	// What killed builds left. The caller holds the lock, so no build is using any of it.
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(target), unfinishedPrefix+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(target), unfinishedPrefix)
	if err != nil {
		return fmt.Errorf("buildcache: %w; point %s to a folder that can be written", err, Env)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := build(unfinished); err != nil {
		return err
	}
	if err := os.Rename(unfinished, target); err != nil {
		return fmt.Errorf("buildcache: finished build: %w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

package buildcache

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockPoll         = 200 * time.Millisecond
	unfinishedPrefix = "unfinished-"
)

// Cache is a folder of finished builds. It may be used from several goroutines and processes.
type Cache struct {
	// Dir is the folder. It is made when it is missing.
	Dir string
	// Env names the environment variable that moves it: errors say so.
	Env string
	// Owner begins each line of progress.
	Owner string
	// What is built, as a reader knows it.
	What string
}

// Folder is where a cache lies: what the environment variable env says, relative to the repository at root, or .cache/name there.
func Folder(root, env, name string) string {
	dir := os.Getenv(env)
	switch {
	case dir == "":
		return filepath.Join(root, ".cache", name)
	case filepath.IsAbs(dir):
		return dir
	default:
		// Tests run in the folder of their package; one setting must mean one folder for all of them.
		return filepath.Join(root, dir)
	}
}

// Ensure returns the folder named key, and has it made by build, which is called with an empty folder, when it is missing. It waits for a
// build that another process has under way. An error is returned when the folder cannot be written, when ctx ends, or when build fails;
// then nothing is left.
func (c Cache) Ensure(ctx context.Context, key string, out io.Writer, build func(dir string) error) (string, error) {
	target := filepath.Join(c.Dir, key)
	if exists(target) {
		return target, nil
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", c.unusable(err)
	}
	lock, err := c.wait(ctx, out)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	// Whoever held the lock may have built the very same thing.
	if exists(target) {
		return target, nil
	}
	return target, c.buildInto(target, build)
}

// buildInto builds beside the target and renames: a target that exists is always whole.
func (c Cache) buildInto(target string, build func(dir string) error) error {
	c.removeUnfinished()
	unfinished, err := os.MkdirTemp(c.Dir, unfinishedPrefix)
	if err != nil {
		return c.unusable(err)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	if err := build(unfinished); err != nil {
		return err
	}
	if err := os.Rename(unfinished, target); err != nil {
		return fmt.Errorf("%s: finished build: %w", c.Owner, err)
	}
	return nil
}

func (c Cache) unusable(err error) error {
	return fmt.Errorf("%s: cache folder: %w; point %s to a folder that can be written", c.Owner, err, c.Env)
}

// removeUnfinished clears what killed builds left. The caller holds the lock, so no build is using any of it.
func (c Cache) removeUnfinished() {
	left, _ := filepath.Glob(filepath.Join(c.Dir, unfinishedPrefix+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

func (c Cache) wait(ctx context.Context, out io.Writer) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(c.Dir, "lock"))
	for told := false; ; told = true {
		locked, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Owner, err)
		}
		if locked {
			return lock, nil
		}
		if !told {
			fmt.Fprintf(out, "%s: waiting for another build of %s\n", c.Owner, c.What)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %s: another build still holds the lock: %w", c.Owner, lock.Path(), ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

package buildcache

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
)

const env = "SBR_TEST_CACHE"

func newCache(dir string) Cache { return Cache{Dir: dir, Env: env, Owner: "owner", What: "a thing"} }

func never(t *testing.T) func(string) error {
	return func(string) error {
		t.Error("it is built")
		return nil
	}
}

func TestEnsure_BuildsOnce(t *testing.T) {
	cache := newCache(filepath.Join(t.TempDir(), "made"))
	dir, err := cache.Ensure(t.Context(), "key", t.Output(), func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "program"), nil, 0o600)
	})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "program"))
	again, err := cache.Ensure(t.Context(), "key", t.Output(), never(t))
	require.NoError(t, err)
	require.Equal(t, dir, again)
}

func TestEnsure_FailedBuildLeavesNothing(t *testing.T) {
	cache := newCache(t.TempDir())
	require.NoError(t, os.Mkdir(filepath.Join(cache.Dir, unfinishedPrefix+"killed"), 0o755))
	failed := errors.New("failed")
	_, err := cache.Ensure(t.Context(), "key", t.Output(), func(string) error { return failed })
	require.ErrorIs(t, err, failed)
	left, err := filepath.Glob(filepath.Join(cache.Dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(cache.Dir, "lock")}, left)
}

func TestEnsure_WaitsForAnotherBuild(t *testing.T) {
	cache := newCache(t.TempDir())
	other := flock.New(filepath.Join(cache.Dir, "lock"))
	locked, err := other.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	done := make(chan error, 1)
	go func() {
		_, err := cache.Ensure(t.Context(), "key", t.Output(), never(t))
		done <- err
	}()
	time.Sleep(lockPoll / 2)
	require.NoError(t, os.Mkdir(filepath.Join(cache.Dir, "key"), 0o755))
	require.NoError(t, other.Close())
	require.NoError(t, <-done, "it takes what the other one built")
}

func TestEnsure_GivesUpWaiting(t *testing.T) {
	cache := newCache(t.TempDir())
	other := flock.New(filepath.Join(cache.Dir, "lock"))
	locked, err := other.TryLock()
	require.NoError(t, err)
	require.True(t, locked)
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	_, err = cache.Ensure(ctx, "key", &out, never(t))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, cache.Dir)
	require.Equal(t, "owner: waiting for another build of a thing\n", out.String())
}

func TestEnsure_UnusableCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := newCache(filepath.Join(file, "cache")).Ensure(t.Context(), "key", t.Output(), never(t))
	require.ErrorContains(t, err, env)
}

func TestFolder(t *testing.T) {
	t.Setenv(env, "")
	require.Equal(t, filepath.Join("/repo", ".cache", "kube"), Folder("/repo", env, "kube"))
	t.Setenv(env, "/elsewhere")
	require.Equal(t, "/elsewhere", Folder("/repo", env, "kube"))
	t.Setenv(env, "other")
	require.Equal(t, filepath.Join("/repo", "other"), Folder("/repo", env, "kube"))
}

func TestRoot_Outside(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Root()
	require.ErrorContains(t, err, "not inside the serf-sbr repository")
}

func TestDigest_DependsOnEachPart(t *testing.T) {
	require.Equal(t, Digest([]byte("a"), []byte("b")), Digest([]byte("a"), []byte("b")))
	require.NotEqual(t, Digest([]byte("a"), []byte("b")), Digest([]byte("ab"), nil))
	require.NotEqual(t, Digest([]byte("a"), []byte("b")), Digest([]byte("a"), []byte("c")))
}

const tiny = "package main\n\nfunc main() {}\n"

func newModule(t *testing.T, program string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/tiny\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	return dir
}

func newBuild(t *testing.T, program string) GoBuild {
	return GoBuild{
		Owner: "owner", Label: "tiny", Module: newModule(t, program), Package: ".", Output: filepath.Join(t.TempDir(), "program"),
	}
}

func TestGoBuild_WhateverTheCallersFlags(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor -race")
	t.Setenv("GOWORK", "/no/such/go.work")
	var out bytes.Buffer
	build := newBuild(t, tiny)
	require.NoError(t, build.Run(t.Context(), &out))
	require.FileExists(t, build.Output)
	require.Regexp(t, `(?s)^owner: building tiny: 0s\n.*owner: built tiny: \d+s\n$`, out.String())
}

func TestGoBuild_CompilerErrorInOneLine(t *testing.T) {
	err := newBuild(t, "package main\n\nfunc main() { oops() }\n").Run(t.Context(), t.Output())
	require.ErrorContains(t, err, "undefined: oops")
	require.NotContains(t, err.Error(), "\n")
}

func TestGoBuild_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := newBuild(t, tiny).Run(ctx, t.Output())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "run it again")
}

func TestProgress_BeatsUntilFinished(t *testing.T) {
	var out bytes.Buffer
	p := startProgress(&out, "owner", "thing")
	p.stopped.Go(func() { p.beatEvery(time.Millisecond) })
	time.Sleep(50 * time.Millisecond)
	p.finish(nil)
	require.Greater(t, bytes.Count(out.Bytes(), []byte("\n")), 3)
}

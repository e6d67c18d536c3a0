package buildcache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
)

func never(t *testing.T) func(string) error {
	return func(string) error {
		t.Error("it is built")
		return nil
	}
}

func TestEnsure_BuildsOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	dir, err := Ensure(t.Context(), folder, "key", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "program"), nil, 0o600)
	})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "program"))
	again, err := Ensure(t.Context(), folder, "key", never(t))
	require.NoError(t, err)
	require.Equal(t, dir, again)
}

func TestEnsure_FailedBuildLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, unfinishedPrefix+"killed"), 0o755))
	failed := errors.New("failed")
	_, err := Ensure(t.Context(), folder, "key", func(string) error { return failed })
	require.ErrorIs(t, err, failed)
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(folder, "lock")}, left)
}

// locked is a folder in which another process builds.
func locked(t *testing.T) (folder string, other *flock.Flock) {
	folder = t.TempDir()
	other = flock.New(filepath.Join(folder, "lock"))
	ok, err := other.TryLock()
	require.NoError(t, err)
	require.True(t, ok)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	return folder, other
}

func TestEnsure_WaitsForAnotherBuild(t *testing.T) {
	folder, other := locked(t)
	done := make(chan error, 1)
	go func() {
		_, err := Ensure(t.Context(), folder, "key", never(t))
		done <- err
	}()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "key"), 0o755))
	require.NoError(t, other.Unlock())
	require.NoError(t, <-done, "it takes what the other one built")
}

func TestEnsure_GivesUpWaiting(t *testing.T) {
	folder, _ := locked(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := Ensure(ctx, folder, "key", never(t))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, folder)
}

func TestEnsure_UnusableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Ensure(t.Context(), filepath.Join(file, "cache"), "key", never(t))
	require.ErrorContains(t, err, Env)
}

func TestFolder(t *testing.T) {
	for env, want := range map[string]string{"": "/repo/.cache/kind", "/elsewhere": "/elsewhere/kind",
		"other": "/repo/other/kind"} {
		t.Setenv(Env, env)
		require.Equal(t, want, Folder("/repo", "kind"))
	}
}

func TestRoot_Outside(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := Root()
	require.ErrorContains(t, err, "not inside the serf-sbr repository")
}

func newModule(t *testing.T, program string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"),
		[]byte("module example.com/tiny\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	return dir
}

const tiny = "package main\n\nfunc main() {}\n"

func TestBuild_WhateverTheCallersFlags(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor -race")
	t.Setenv("GOWORK", "/no/such/go.work")
	output := filepath.Join(t.TempDir(), "program")
	require.NoError(t, Build(t.Context(), newModule(t, tiny), "", ".", output))
	require.FileExists(t, output)
}

func TestBuild_CompilerErrorInOneLine(t *testing.T) {
	err := Build(t.Context(), newModule(t, "package main\n\nfunc main() { oops() }\n"), "",
		".", filepath.Join(t.TempDir(), "program"))
	require.ErrorContains(t, err, "undefined: oops")
	require.NotContains(t, err.Error(), "\n")
}

func TestBuild_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Build(ctx, newModule(t, tiny), "", ".", filepath.Join(t.TempDir(), "program"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "run it again")
}

func TestPrograms_EachHasAKey(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	for _, p := range Programs() {
		key, err := p.key(t.Context(), filepath.Join(root, p.module))
		require.NoError(t, err)
		require.Regexp(t, `^go1\.[0-9a-z.]+_\w+_\w+_[0-9a-f]{12}$`, key, p)
	}
}

func TestKey_FollowsWhatTheBuildDependsOn(t *testing.T) {
	dir := newModule(t, tiny)
	p := Program{name: "tiny", path: "."}
	key := func() string {
		key, err := p.key(t.Context(), dir)
		require.NoError(t, err)
		return key
	}
	first := key()
	require.Equal(t, first, key())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), []byte("other\n"), 0o600))
	second := key()
	require.NotEqual(t, first, second)
	p.tags = "other"
	require.NotEqual(t, second, key())
	t.Setenv("GOOS", "plan9")
	p.tags = ""
	require.NotEqual(t, second, key())

	_, err := p.key(t.Context(), filepath.Join(dir, "nowhere"))
	require.ErrorContains(t, err, "restore it from git")
	t.Setenv("PATH", "")
	_, err = p.key(t.Context(), dir)
	require.ErrorContains(t, err, "the go command must be on PATH")
}

package binaries

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubetest/internal/filelock"
)

func TestEnsure_FinishedBuildNeedsNoLock(t *testing.T) {
	cache := t.TempDir()
	src := source{kubeVersion: "v1", etcdVersion: "v2", sum: "3"}
	require.NoError(t, os.Mkdir(filepath.Join(cache, src.key()), 0o755))
	set, err := src.ensure(t.Context(), cache, t.Output())
	require.NoError(t, err)
	require.Equal(t, setIn(filepath.Join(cache, src.key())), set)
	require.NoFileExists(t, filepath.Join(cache, "lock"))
}

func TestEnsure_WaitsForAnotherBuild(t *testing.T) {
	cache := t.TempDir()
	src := source{kubeVersion: "v1"}
	other, err := filelock.Try(filepath.Join(cache, "lock"))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := src.ensure(t.Context(), cache, t.Output())
		done <- err
	}()
	time.Sleep(lockPoll / 2)
	require.NoError(t, os.Mkdir(filepath.Join(cache, src.key()), 0o755))
	require.NoError(t, other.Close())
	require.NoError(t, <-done, "it takes what the other one built")
}

func TestEnsure_GivesUpWaiting(t *testing.T) {
	cache := t.TempDir()
	other, err := filelock.Try(filepath.Join(cache, "lock"))
	require.NoError(t, err)
	defer other.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	_, err = source{}.ensure(ctx, cache, &out)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, cache)
	require.Contains(t, out.String(), "waiting for another build")
}

func TestEnsure_FailedBuildLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(cache, unfinishedPrefix+"killed"), 0o755))
	src := source{module: newModule(t, "package main\n\nfunc main() {}\n"), etcdVersion: "v3.6.8"}
	var out bytes.Buffer
	_, err := src.ensure(t.Context(), cache, &out)
	require.ErrorContains(t, err, "etcd v3.6.8")
	require.ErrorContains(t, err, etcdPackage)
	require.Contains(t, out.String(), "failed [1/2] etcd v3.6.8")
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(cache, "lock")}, left)
}

func TestEnsure_UnusableCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := source{}.ensure(t.Context(), filepath.Join(file, "cache"), t.Output())
	require.ErrorContains(t, err, CacheEnv)
}

func TestStep_BuildsWhateverTheCallersFlags(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor -race")
	t.Setenv("GOWORK", "/no/such/go.work")
	program := filepath.Join(t.TempDir(), "program")
	var out bytes.Buffer
	build := step{label: "tiny", pkg: ".", output: program}
	require.NoError(t, build.run(t.Context(), newModule(t, "package main\n\nfunc main() {}\n"), &out))
	require.FileExists(t, program)
	require.Regexp(t, `(?s)^kubetest: building tiny: 0s\n.*kubetest: built tiny: \d+s\n$`, out.String())
}

func TestStep_CompilerErrorInOneLine(t *testing.T) {
	build := step{label: "tiny", pkg: ".", output: filepath.Join(t.TempDir(), "program")}
	err := build.run(t.Context(), newModule(t, "package main\n\nfunc main() { oops() }\n"), t.Output())
	require.ErrorContains(t, err, "undefined: oops")
	require.NotContains(t, err.Error(), "\n")
}

func TestProgress_BeatsUntilFinished(t *testing.T) {
	var out bytes.Buffer
	p := startProgress(&out, "thing")
	p.stopped.Go(func() { p.beatEvery(time.Millisecond) })
	time.Sleep(50 * time.Millisecond)
	p.finish(nil)
	lines := bytes.Count(out.Bytes(), []byte("\n"))
	require.Greater(t, lines, 3)
}

func TestCacheFolder(t *testing.T) {
	t.Setenv(CacheEnv, "")
	require.Equal(t, filepath.Join("/repo", ".cache", "kube"), cacheFolder("/repo"))
	t.Setenv(CacheEnv, "/elsewhere")
	require.Equal(t, "/elsewhere", cacheFolder("/repo"))
	t.Setenv(CacheEnv, "other")
	require.Equal(t, filepath.Join("/repo", "other"), cacheFolder("/repo"))
}

func newModule(t *testing.T, program string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/tiny\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	return dir
}

func TestStep_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	build := step{label: "tiny", pkg: ".", output: filepath.Join(t.TempDir(), "program")}
	err := build.run(ctx, newModule(t, "package main\n\nfunc main() {}\n"), t.Output())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "run it again")
}

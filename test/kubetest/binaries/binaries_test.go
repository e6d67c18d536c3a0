package binaries

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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

func TestEnsure_FailedBuildLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(cache, "unfinished-killed"), 0o755))
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

func newModule(t *testing.T, program string) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/tiny\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	return dir
}

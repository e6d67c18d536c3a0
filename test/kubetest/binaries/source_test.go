package binaries

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

func TestReadSource_TheRealModule(t *testing.T) {
	root, err := buildcache.Root()
	require.NoError(t, err)
	src, err := readSource(t.Context(), filepath.Join(root, "test", "kube"))
	require.NoError(t, err)
	require.Regexp(t, `^kubernetes-v1\.[0-9.]+_etcd-v3\.[0-9.]+_go1\.[0-9a-z.]+_\w+-\w+_[0-9a-f]{12}$`, src.key())
}

func TestReadSource_KeyFollowsWhatTheBuildDependsOn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	key := func() string {
		src, err := readSource(t.Context(), dir)
		require.NoError(t, err)
		return src.key()
	}
	const mod = "module m\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.2.3\n\tgo.etcd.io/etcd/server/v3 v3.4.5 // indirect\n)\n"
	write("go.mod", mod)
	write("go.sum", "")
	first := key()
	require.Contains(t, first, "kubernetes-v1.2.3_etcd-v3.4.5_go1.")
	require.Equal(t, first, key())

	write("go.sum", "other\n")
	require.NotEqual(t, first, key())
	write("go.sum", "")
	write("go.mod", mod+"// other\n")
	require.NotEqual(t, first, key())
}

func TestReadSource_SaysWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := readSource(t.Context(), dir)
	require.ErrorContains(t, err, "restore test/kube")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), nil, 0o600))
	_, err = readSource(t.Context(), dir)
	require.ErrorContains(t, err, "no version of k8s.io/kubernetes")
}

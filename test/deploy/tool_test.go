package deploy

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

func TestTool_KeyNamesProgramVersionAndToolchain(t *testing.T) {
	root, err := buildcache.Root()
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, tool := range Tools() {
		module := filepath.Join(root, "test", "deploy", "tools", tool.module)
		key, err := tool.key(t.Context(), module)
		require.NoError(t, err)
		again, err := tool.key(t.Context(), module)
		require.NoError(t, err)
		require.Equal(t, key, again)
		require.Contains(t, key, tool.name+"_go1.")
		require.False(t, seen[key])
		seen[key] = true
	}
	plain := Promtool
	plain.tags = ""
	key, err := plain.key(t.Context(), filepath.Join(root, "test", "deploy", "tools"))
	require.NoError(t, err)
	require.False(t, seen[key], "built otherwise, it is another program")
}

func TestTool_FailedBuildLeavesNothingAndSaysWhy(t *testing.T) {
	cache := t.TempDir()
	t.Setenv(CacheEnv, cache)
	missing := Tool{name: "missing", module: ".", path: "example.com/missing"}
	_, err := missing.Ensure(t.Context(), t.Output())
	require.ErrorContains(t, err, "deploy: build missing: ")
	left, err := filepath.Glob(filepath.Join(cache, "*missing*"))
	require.NoError(t, err)
	require.Empty(t, left)

	nowhere := Tool{name: "nowhere", module: "nowhere", path: "example.com/nowhere"}
	_, err = nowhere.Ensure(t.Context(), t.Output())
	require.ErrorContains(t, err, "restore test/deploy/tools from git")
}

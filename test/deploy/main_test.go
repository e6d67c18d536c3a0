package deploy_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// The tests run in the folder that they are about.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../deploy"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(kubetest.M(m))
}

// pathOf returns where a program is, and builds it first when it is missing. It skips the test under -short.
func pathOf(t *testing.T, p buildcache.Program) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("needs %s: run without -short", p)
	}
	path, err := p.Ensure(t.Context(), t.Output())
	require.NoError(t, err)
	return path
}

// runProgram runs a program in dir and returns what it printed, on both streams.
func runProgram(t *testing.T, p buildcache.Program, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), pathOf(t, p), args...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	return string(said), err
}

package deploy_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nobody is the user of the images.
const nobody = 65532

// emptyRoot runs the program where there is nothing but itself and a configuration, as an ordinary user who
// may write nowhere.
func emptyRoot(t *testing.T, program string) {
	file, err := elf.Open(program)
	require.NoError(t, err)
	for _, p := range file.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "a static program needs no loader")
	}
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries)
	require.NoError(t, file.Close())

	if os.Geteuid() != 0 {
		t.Skip("needs root: chroot")
	}
	root := t.TempDir()
	for name, from := range map[string]string{"sbr": program, "sbr.yaml": "kubernetes/base/sidecar/sbr.yaml"} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, name), data, 0o755))
	}
	require.NoError(t, os.Chmod(root, 0o555))
	in := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/sbr", args...)
		cmd.Path, cmd.Dir, cmd.Env = "/sbr", "/", []string{}
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := in("version")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "sbr v"+version)
	out, err = in("config", "check", "-f", "/sbr.yaml")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "/sbr.yaml is valid")
	out, err = in("agent", "--config", "/nothing.yaml")
	require.Error(t, err)
	require.Contains(t, out, "/nothing.yaml", "one line, and no trace of a program that needs more")
}

package deploy_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unit is a unit file: section, key, values in order.
type unit map[string]map[string][]string

func readUnit(t *testing.T, path string) unit {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	u, section := unit{}, ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
			require.NotContains(t, u, section, "%s: %s twice", path, section)
			u[section] = map[string][]string{}
		default:
			key, value, found := strings.Cut(line, "=")
			require.True(t, found, "%s: %q", path, line)
			u[section][key] = append(u[section][key], value)
		}
	}
	require.NoError(t, lines.Err())
	return u
}

// What an operator relies on, whatever systemd thinks of the rest.
func TestSystemd_TheAgentComesBackExceptForABadConfiguration(t *testing.T) {
	u := readUnit(t, "systemd/sbr-agent.service")
	service := u["Service"]
	require.Equal(t, []string{"always"}, service["Restart"])
	require.Equal(t, []string{"2"}, service["RestartPreventExitStatus"], "70, downed, starts anew")
	require.Equal(t, []string{"0"}, u["Unit"]["StartLimitIntervalSec"], "and is never given up")
	require.Equal(t, []string{"sbr"}, service["StateDirectory"], "where the agent looks: $STATE_DIRECTORY")
	require.Equal(t, []string{"mixed"}, service["KillMode"])
	require.Contains(t, u["Unit"]["After"][0], "serf.service", "sbr stops first")
	require.Equal(t, []string{"serf.service"}, u["Unit"]["PartOf"])
	require.NotContains(t, u["Unit"], "BindsTo", "a Serf agent that crashes does not take its resolver along")
	require.Equal(t, []string{"notify"}, service["Type"], "what is bound to it starts once this member may work")
	require.Equal(t, []string{"infinity"}, service["TimeoutStartSec"], "which needs the others")
	require.Equal(t, []string{"15s"}, service["WatchdogSec"], "and ends when the agent is frozen")
	require.Equal(t, []string{"SIGKILL"}, service["WatchdogSignal"],
		"Go ends with 2 on SIGABRT, which would be no restart")
	require.Equal(t, u["Service"]["Group"], readUnit(t, "systemd/serf.service")["Service"]["SupplementaryGroups"],
		"it reads its keys")
	require.Equal(t, []string{"always"}, readUnit(t, "systemd/serf.service")["Service"]["Restart"],
		"a downed member's agent starts anew")
}

// root is one in which systemd-analyze finds everything that the units name.
func systemdRoot(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze: apt-get install systemd")
	}
	root := t.TempDir()
	units := filepath.Join(root, "etc", "systemd", "system")
	require.NoError(t, os.CopyFS(units, os.DirFS("systemd")))
	for _, name := range []string{"sysinit", "basic", "shutdown", "network-online", "multi-user"} {
		require.NoError(t, os.WriteFile(filepath.Join(units, name+".target"),
			[]byte("[Unit]\nDescription="+name+"\n"), 0o600))
	}
	bin := filepath.Join(root, "usr", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	for _, name := range []string{"sbr", "serf"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/true\n"), 0o755))
	}
	return root
}

// Systemd knows every key and value.
func TestSystemd_Verify(t *testing.T) {
	root := systemdRoot(t)
	units := "/etc/systemd/system/"
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no",
		"--recursive-errors=yes",
		"--root="+root, units+"sbr-agent.service", units+"serf.service").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, out)
}

// maxExposure is ten times the number that systemd-analyze prints: 0 is a closed box, 100 none. A unit
// without hardening has 96.
const maxExposure = "20"

func TestSystemd_IsHardened(t *testing.T) {
	systemdRoot(t)
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=yes", "--no-pager",
		"--threshold="+maxExposure,
		"systemd/sbr-agent.service").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

package deploy_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/serftest"
)

const podUID = "3f0c5a2e-8f5c-4a53-9f0e-6f2f6a7c1d10"

// freePort is free at this moment, for TCP on loopback.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// The stock agent understands the pod's arguments, name and keyring, and ends with status 0 when the preStop
// command lets it leave.
func TestKubernetes_StockAgentTakesTheArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the stock agent: run without -short")
	}
	binary, err := serftest.Ensure(t.Context(), serftest.Module, t.Output())
	require.NoError(t, err)
	keyring := filepath.Join(t.TempDir(), "keyring.json")
	require.NoError(t, os.WriteFile(keyring, []byte(`["5K9OtfP7efFrNKe5WCQvXvnaXJ5cWP0SvXiwe0kkjM4="]`), 0o400))
	spec := find(t, render(t, filepath.Join(kubernetesDir, "base/sidecar")), "StatefulSet").at("spec",
		"template", "spec").(object)
	container := spec["containers"].([]any)[0].(object)
	gossip, rpc := freePort(t), freePort(t)
	here := strings.NewReplacer(
		"$(POD_NAME)", "serf-0", "$(POD_UID)", podUID, "$(POD_IP)", "127.0.0.1", "0.0.0.0", "127.0.0.1", "/etc/serf/keyring.json", keyring,
		"=serf-gossip", "=127.0.0.1:"+gossip, ":7946", ":"+gossip, ":7373", ":"+rpc,
	)
	command := func(words any) *exec.Cmd {
		var args []string
		for _, word := range words.([]any) {
			args = append(args, here.Replace(word.(string)))
		}
		if args[0] == "/serf" {
			args = args[1:]
		}
		return exec.CommandContext(t.Context(), binary, args...)
	}
	agent := command(container["args"])
	var said strings.Builder
	agent.Stdout, agent.Stderr = &said, &said
	require.NoError(t, agent.Start())
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()

	require.Eventually(t, func() bool {
		out, err := exec.CommandContext(t.Context(), binary, "members", "-rpc-addr=127.0.0.1:"+rpc).CombinedOutput()
		return err == nil && strings.Contains(string(out), "serf-0."+podUID+" ") &&
			strings.Contains(string(out), "127.0.0.1:"+gossip)
	}, time.Minute, 50*time.Millisecond, "the agent does not answer under its name")
	out, err := exec.CommandContext(t.Context(), binary, "info", "-rpc-addr=127.0.0.1:"+rpc).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), "encrypted = true")

	leave := container["lifecycle"].(object)["preStop"].(object)["exec"].(object)["command"]
	out, err = command(leave).CombinedOutput()
	require.NoError(t, err, "%s", out)
	select {
	case err := <-ended:
		require.NoError(t, err, "%s", said.String())
	case <-time.After(time.Minute):
		require.Fail(t, "the agent goes on after it has left")
	}
}

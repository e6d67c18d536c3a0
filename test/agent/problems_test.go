package agent_test

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// fails runs an agent that cannot start, and returns what it says.
func fails(t *testing.T, yaml string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	l := new(logtest.Log)
	status, err := agent.Run(ctx, agent.Options{File: parse(t, yaml),
		Logger: slog.New(slog.NewTextHandler(l, nil))})
	require.Error(t, err, l.String())
	require.ErrorAs(t, err, new(agent.Problem), err.Error())
	require.Equal(t, 2, status)
	return err.Error()
}

// What is wrong in the configuration itself is one line that names the place and the way out, and status 2.
func TestRun_Problems(t *testing.T) {
	home(t)
	node := "system: s\nhttp: {listen: ''}\nserf: {node: n1, bind: '127.0.0.1:0'}\n"
	for _, c := range []struct{ name, yaml, want string }{
		{"no lease", node + "lease: {heartbeat-timeout: 60s}", "lease-implementation: is not set, and this is no pod: write kubernetes"},
		{"name that Serf refuses", "system: s\nhttp: {listen: ''}\nserf: {node: '" + strings.Repeat("x", 200) + "', bind: '127.0.0.1:0'}", "NodeName"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := fails(t, c.yaml)
			require.Contains(t, text, c.want)
			require.NotContains(t, text, "\n")
		})
	}
}

// Rule 21: nothing that passes ends a member for good. What lies outside of the configuration is said in the
// log, once, in readiness and in the status; once it is repaired the member starts, without a hand on it.
func TestRun_WaitsForWhatIsOutside(t *testing.T) {
	dir := home(t)
	busyTCP := func(t *testing.T) (string, func()) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return l.Addr().String(), func() { l.Close() }
	}
	write := func(name, text string) func() {
		return func() {
			path := filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
		}
	}
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	node := "serf: {node: n1, bind: '127.0.0.1:0'}\n"
	gossip, freeGossip := busyTCP(t)
	write("empty", "[]")()
	write("text", `["secret!"]`)()
	file := "split-brain-resolver: {lease-majority: {lease-implementation: file}}\nlease: {file: {path: '" +
		dir + "/leases/s.lease'}}"
	damaged := filepath.Join(dir, "s@n1.json")
	require.NoError(t, os.WriteFile(damaged, nil, 0o600))
	for _, c := range []struct {
		name, yaml, want string
		mend             func()
	}{
		{
			"damaged state file", node + "hooks: {pid-file: '" + dir + "/app.pid'}", "the file is damaged: remove it",
			func() { require.NoError(t, os.Remove(damaged)) },
		},
		{"gossip port in use", "serf: {node: n1, bind: '" + gossip + "'}", "is another Serf running on this address?", freeGossip},
		{"no such hook", node + "hooks: {on-down: ['" + dir + "/hook']}", "/hook\" does not exist", write("hook", "#!/bin/sh\n")},
		{"no keyring", "serf: {node: n1, bind: '127.0.0.1:0', keyring-file: '" + dir + "/keys'}", "serf.keyring-file: open ", write("keys", `["`+key+`"]`)},
		{"empty keyring", "serf: {node: n1, bind: '127.0.0.1:0', keyring-file: '" + dir + "/empty'}", "holds no key", write("empty", `["`+key+`"]`)},
		{"keyring without base64", "serf: {node: n1, bind: '127.0.0.1:0', keyring-file: '" + dir + "/text'}", "key 1 is not base64", write("text", `["`+key+`"]`)},
		{"no folder for the lease", node + file, "/leases", write("leases/here", "")},
		{"no folder for the snapshot", "serf: {node: n1, bind: '127.0.0.1:0', snapshot: '" + dir + "/snapshots/n1'}", "serf.snapshot: open ", write("snapshots/here", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, "system: s\nhttp: {listen: '127.0.0.1:0'}\n"+c.yaml)
			r.becomes("says what it waits for", func() bool {
				code, text := r.get("/healthz/ready")
				return code == http.StatusServiceUnavailable && strings.HasPrefix(text, "starting: ") &&
					strings.Contains(text, c.want)
			})
			code, _ := r.get("/healthz/live")
			require.Equal(t, http.StatusOK, code, "waiting is no reason to be started again")
			st := r.view()
			require.Equal(t, downing.StateStarting, st.State)
			require.Contains(t, st.StartingBecause, c.want)
			require.Equal(t, "file", st.Lease.Kind)
			c.mend()
			r.ready()
			// however often it tried
			require.Equal(t, 1, len(r.log.With("level=ERROR"))+len(r.log.With("waits and does not join")), "%s", r.log)
			require.Equal(t, strings.Contains(c.yaml, "pid-file"), len(r.log.With("hooks.pid-file is not there")) == 1)
			require.NotContains(t, r.log.String(), "secret!")
			r.leaves()
		})
	}
}

// An agent does not go on without its page: most likely another agent is here already.
func TestRun_WaitsForItsPort(t *testing.T) {
	home(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	time.AfterFunc(500*time.Millisecond, func() { l.Close() })
	r := start(t, "system: s\nserf: {node: n1, bind: '127.0.0.1:0'}\nhttp: {listen: '"+l.Addr().String()+"'}")
	r.ready()
	require.Len(t, r.log.With("http: cannot listen on "+l.Addr().String()), 1)
}

// A probe port in use, and a folder that cannot be made.
func TestRun_WaitsForPortAndFolderBesideAnAgent(t *testing.T) {
	dir := home(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state"), nil, 0o600))
	lease := "\nsplit-brain-resolver: {lease-majority: {lease-implementation: file}}\nlease: {file: {path: '" +
		dir + "/s.lease'}}"
	t.Setenv("STATE_DIRECTORY", filepath.Join(dir, "state"))
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	r := start(t, "system: s\nserf: {probe: '"+udp.LocalAddr().String()+
		"', rpc: '127.0.0.1:1'}\nhttp: {listen: '127.0.0.1:0'}"+lease)
	says := func(want string) {
		r.becomes("says "+want,
			func() bool { _, text := r.get("/healthz/ready"); return strings.Contains(text, want) })
	}
	says("set STATE_DIRECTORY to a folder that can be written")
	require.NoError(t, os.Remove(filepath.Join(dir, "state")))
	says("probe: cannot listen at UDP " + udp.LocalAddr().String())
	require.NoError(t, udp.Close())
	says("waiting for the Serf agent at 127.0.0.1:1: cannot connect: connection refused")
}

// A state file that cannot be written when the member begins (a full disk) is waited for, beside a stock
// agent and without one: the next try is no worse than the first.
func TestRun_WaitsForTheStateFile(t *testing.T) {
	for name, at := range map[string]func(t *testing.T) (place, serf string){
		"a node of its own": func(*testing.T) (string, string) { return "n1", "node: n1, bind: '127.0.0.1:0'" },
		"beside an agent": func(t *testing.T) (string, string) {
			if testing.Short() {
				t.Skip("builds a stock agent: run without -short")
			}
			rpc := serftest.Start(t, serftest.Options{Node: "n1"}).RPC()
			return strings.Replace(rpc, ":", "_", 1), "rpc: '" + rpc + "', probe: '127.0.0.1:0'"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := home(t)
			place, node := at(t)
			inTheWay := filepath.Join(dir, "s@"+place+".json.new")
			require.NoError(t, os.Mkdir(inTheWay, 0o700))
			r := start(t, "system: s\nhttp: {listen: '127.0.0.1:0'}\n"+
				"split-brain-resolver: {settle-after: 1s}\nserf: {"+node+"}")
			says := func(what string) {
				r.becomes("says "+what, func() bool {
					_, text := r.get("/healthz/ready")
					return strings.Contains(text, "the state file: ") && strings.Contains(text, what)
				})
			}
			says("is a directory")
			require.NoError(t, os.Remove(inTheWay))
			require.NoError(t, os.Symlink("absent/folder", inTheWay))
			says("no such file") // the second try
			require.NoError(t, os.Remove(inTheWay))
			r.ready()
		})
	}
}

// B10: an API server that refuses what a member needs is waited for: it may be starting, or an administrator
// may be mending the rights.
func TestRun_WaitsForRights(t *testing.T) {
	cluster := kubetest.Shared(t)
	dir := home(t)
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	ns := cluster.Namespace(t)
	kubeconfig, err := cluster.LeastPrivilegeKubeconfig(ctx, ns, "other-sbr")
	require.NoError(t, err)
	hook := "hooks: {on-suspend: [/bin/sh, -c, 'echo \"$SBR_REASON\" > " + dir +
		"/suspended'], on-resume: [touch, " + dir + "/resumed]}"
	r := start(t, "system: s\nserf: {node: n1, bind: '127.0.0.1:0'}\nhttp: {listen: '127.0.0.1:0'}\nsplit-brain-resolver: {settle-after: 1s}\n"+hook+
		"\nlease: {kubernetes: {namespace: "+ns+", kubeconfig: "+kubeconfig+"}}")
	r.becomes("says what is refused", func() bool {
		code, text := r.get("/healthz/ready")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "s-sbr cannot be used") &&
			strings.Contains(text, "forbidden")
	})
	st := r.view()
	require.Equal(t, downing.StateStarting, st.State)
	require.Equal(t, "kubernetes", st.Lease.Kind)
	require.Contains(t, st.Lease.Refused, "forbidden")
	require.Contains(t, st.StartingBecause, "forbidden")
	_, metrics := r.get("/metrics")
	require.Regexp(t, `(?m)^sbr_lease_refused\{.*\} 1$`, metrics)
	require.Regexp(t, `(?m)^sbr_state\{.*state="starting".*\} 1$`, metrics)
	r.becomes("suspended", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "suspended"))
		return err == nil && strings.Contains(string(text), "forbidden")
	})

	role := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns + "/roles/sbr-other-sbr"
	code, answer, err := cluster.Do(ctx, http.MethodPatch, role, map[string]any{"rules": []map[string]any{{
		"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "resourceNames": []string{"s-sbr"},
		"verbs": []string{"get", "watch", "patch", "create", "update"},
	}}})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, string(answer))
	r.ready()
	require.Len(t, r.log.With("waits and does not join"), 1, "once: %s", r.log)
	require.Empty(t, r.view().Lease.Refused)
	r.becomes("resumed", func() bool { _, err := os.Stat(filepath.Join(dir, "resumed")); return err == nil })
}

// A stock agent that wants another key is said, without the key, and tried again.
func TestRun_WaitsForTheRPCKey(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a stock agent: run without -short")
	}
	home(t)
	a := serftest.Start(t, serftest.Options{Node: "n1", RPCAuth: "sesame"})
	r := start(t, "system: s\nhttp: {listen: '127.0.0.1:0'}\nserf: {rpc: '"+a.RPC()+
		"', rpc-auth-key: wrong, probe: '127.0.0.1:0'}")
	r.becomes("says so", func() bool {
		_, text := r.get("/healthz/ready")
		return strings.Contains(text, "rpc-auth-key")
	})
	require.NotContains(t, r.log.String(), "sesame")
	require.NotContains(t, r.log.String(), "key=wrong")
}

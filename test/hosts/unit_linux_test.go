package hosts_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/buildcache"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
)

const (
	systemd = "/lib/systemd/systemd"
	// unitTimeout bounds what systemd is waited for: a watchdog of 15 s on a busy machine.
	unitTimeout = time.Minute
)

// bootScript boots systemd as the first process of namespaces of its own. Under $2 is what is laid over /usr
// and /etc; the cgroup $1 is the root of what it sees.
const bootScript = `mkdir "$1"
echo $$ > "$1/cgroup.procs"
exec unshare --pid --mount --cgroup --uts --ipc --fork --kill-child --mount-proc sh -euc '
	mount --make-rprivate /
	umount -l /sys/fs/cgroup
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mount -t overlay overlay -o "lowerdir=$0/usr:/usr" /usr
	mount -t overlay overlay -o "lowerdir=$0/etc:/etc" /etc
	for folder in /run /tmp /var; do mount -t tmpfs -o mode=755 tmpfs $folder; done
	mkdir -p -m 1777 /var/tmp /run/lock
	exec env -i container=lab SYSTEMD_LOG_TARGET=console \
		SYSTEMD_UNIT_PATH=/run/systemd/system:/etc/systemd/system \
		/lib/systemd/systemd --system --unit=lab.target' "$2"`

// machine is a host on which systemd runs, with the units of deploy/systemd.
type machine struct {
	t    *testing.T
	host *lab.Host
	root string // what is laid over / there
	boot *process.Process
}

func newMachine(t *testing.T, l *lab.Lab, name string) *machine {
	t.Helper()
	require.FileExists(t, systemd, "apt-get install systemd")
	m := &machine{t: t, host: l.Host(name), root: t.TempDir()}
	repository, err := buildcache.Root()
	require.NoError(t, err)
	const unit = "systemd/sbr-agent.service"
	m.copy(filepath.Join(repository, "deploy", unit), "etc/systemd/system/sbr-agent.service", 0o644)
	m.copy(sbrPath(t), "usr/bin/sbr", 0o755)
	for _, file := range []string{"passwd", "group", "shadow", "gshadow"} {
		m.copy("/etc/"+file, "etc/"+file, 0o600)
	}
	said, err := exec.CommandContext(t.Context(), "systemd-sysusers", "--root="+m.root,
		filepath.Join(repository, "deploy/package/sysusers.conf")).CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, target := range []string{"sysinit", "basic", "shutdown"} {
		m.unit(target+".target", "[Unit]\nDescription="+target+"\n")
	}
	return m
}

func (m *machine) write(path, content string, mode fs.FileMode) {
	m.t.Helper()
	path = filepath.Join(m.root, path)
	require.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(m.t, os.WriteFile(path, []byte(content), mode))
	require.NoError(m.t, os.Chmod(path, mode))
}

func (m *machine) copy(from, path string, mode fs.FileMode) {
	m.t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(m.t, err)
	m.write(path, string(content), mode)
}

func (m *machine) unit(name, content string) {
	m.t.Helper()
	m.write("etc/systemd/system/"+name, content, 0o644)
}

// start boots, and shuts down when the test ends.
func (m *machine) start() {
	m.t.Helper()
	mounts, err := exec.CommandContext(m.t.Context(), "findmnt", "-nft", "cgroup2", "-o", "TARGET").Output()
	require.NoError(m.t, err, "no cgroups of version 2 are mounted")
	cgroup := filepath.Join(strings.TrimSpace(string(mounts)), filepath.Base(m.host.File("systemd")))
	m.boot, err = m.host.Start(process.Command{
		Name: "systemd", Program: "sh", Args: []string{"-euc", bootScript, "sh", cgroup, m.root}, Env: os.Environ(),
	})
	require.NoError(m.t, err)
	m.t.Cleanup(func() {
		m.boot.Kill()
		require.Eventually(m.t, func() bool {
			_ = exec.Command("find", cgroup, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+").Run()
			_, err := os.Stat(cgroup)
			return os.IsNotExist(err)
		}, unitTimeout, 50*time.Millisecond, "the cgroup goes once all of its processes have ended")
	})
}

// run runs a command beside that systemd.
func (m *machine) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), unitTimeout)
	defer cancel()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.boot.Pid()))
	if err != nil {
		return "", err
	}
	first := strings.Fields(string(children))
	if len(first) != 1 {
		return "", fmt.Errorf("%d processes: %s", len(first), m.boot.LastLogLine())
	}
	said, err := m.host.Output(ctx, "nsenter", append([]string{"-t", first[0], "-m", "-p", "-C"}, args...)...)
	return strings.TrimSpace(said), err
}

// is one property of a unit, empty while it cannot be had.
func (m *machine) is(unit, property string) string {
	value, _ := m.run("systemctl", "show", "--value", "-p", property, unit)
	return value
}

// await waits until something is so.
func (m *machine) await(what string, is func() bool) {
	m.t.Helper()
	require.Eventually(m.t, is, unitTimeout, 50*time.Millisecond, "%s: %s", what, m.boot.Log())
}

func (m *machine) active(unit string) bool { return m.is(unit, "ActiveState") == "active" }

// What is bound to the agent's unit starts once the agent is ready, and ends with it: under the real systemd,
// with the unit as it is shipped, and the drop-in of the documentation.
func TestUnit_WhatIsBoundToTheAgentEndsWithIt(t *testing.T) {
	t.Parallel()
	m := newMachine(t, newHosts(t, "n1"), "n1")
	m.write("etc/sbr/sbr.yaml", `system: payments
split-brain-resolver:
  settle-after: 1s
  lease-majority:
    lease-implementation: file
lease:
  file:
    path: /var/lib/sbr/lease
serf:
  node: n1
  bind: `+m.host.At(7946)+"\n", 0o644)
	m.unit("payments.service", "[Service]\nExecStart=/bin/sleep infinity\n")
	m.unit("payments.service.d/sbr.conf", dropIn(t, "payments.service.d/sbr.conf"))
	m.unit("lab.target", "[Unit]\nWants=sbr-agent.service payments.service\n")
	m.start()

	agent, payments := "sbr-agent.service", "payments.service"
	m.await("both start", func() bool { return m.active(agent) && m.active(payments) })
	require.Less(t, m.time(agent, "ActiveEnter"), m.time(payments, "ExecMainStart"), "what is bound comes after")
	for _, tc := range []struct{ name, signal string }{{"killed", "KILL"}, {"frozen", "STOP"}} {
		before := m.is(agent, "MainPID")
		_, err := m.run("kill", "-"+tc.signal, before)
		require.NoError(t, err)
		since := m.now()
		m.await(tc.name+": the application ends", func() bool {
			return m.is(payments, "ActiveState") == "inactive"
		})
		m.await(tc.name+": the agent is started again", func() bool {
			return m.active(agent) && m.is(agent, "MainPID") != before
		})
		ended, again := m.time(payments, "InactiveEnter"), m.time(agent, "ActiveEnter")
		t.Logf("%s: the application had ended after %v, and the agent was ready again after %v",
			tc.name, ended-since, again-since)
		require.Less(t, ended, again, "it did not run without an agent that is ready")
		require.Equal(t, "success", m.is(payments, "Result"), "it was stopped in good order")
		if tc.signal == "STOP" {
			require.Greater(t, ended-since, 5*time.Second, "by the watchdog")
		}
		require.Equal(t, "inactive", m.is(payments, "ActiveState"), "until somebody starts it")
		_, err = m.run("systemctl", "start", payments)
		require.NoError(t, err)
	}

	// With Upholds= it comes back with the agent.
	_, err := m.run("sh", "-euc", `d=/run/systemd/system/sbr-agent.service.d
mkdir -p $d
printf '[Unit]\nUpholds=payments.service\n' > $d/payments.conf
systemctl daemon-reload`)
	require.NoError(t, err)
	before := m.is(payments, "MainPID")
	_, err = m.run("kill", "-KILL", m.is(agent, "MainPID"))
	require.NoError(t, err)
	m.await("the application runs again", func() bool {
		now := m.is(payments, "MainPID")
		return m.active(payments) && now != before && now != "0"
	})
	require.Less(t, m.time(agent, "ActiveEnter"), m.time(payments, "ExecMainStart"))
}

// time is when a unit came to a state last, on the clock of the machine.
func (m *machine) time(unit, state string) time.Duration {
	m.t.Helper()
	at, err := time.ParseDuration(m.is(unit, state+"TimestampMonotonic") + "us")
	require.NoError(m.t, err)
	return at
}

// now is the time on that clock.
func (m *machine) now() time.Duration {
	m.t.Helper()
	uptime, err := os.ReadFile("/proc/uptime")
	require.NoError(m.t, err)
	seconds, _, _ := strings.Cut(string(uptime), " ")
	at, err := time.ParseDuration(seconds + "s")
	require.NoError(m.t, err)
	return at
}

// dropIn is a file of the documentation, which names its path in its first line.
func dropIn(t *testing.T, name string) string {
	t.Helper()
	root, err := buildcache.Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "deployment.md"))
	require.NoError(t, err)
	path := regexp.QuoteMeta("# /etc/systemd/system/" + name)
	block := regexp.MustCompile("(?s)```ini\n(" + path + "\n.*?)```").FindSubmatch(page)
	require.NotNil(t, block, "docs/deployment.md has no %s", name)
	return string(block[1])
}

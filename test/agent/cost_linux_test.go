package agent_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// idleFor is how long the agent is watched once all members are there.
const idleFor = 30 * time.Second

// settleFor is how long the news of a hundred joins takes to die away.
const settleFor = 30 * time.Second

// BenchmarkIdle measures an agent in a cluster of 100 members in which nothing happens: share of a core,
// resident memory, and the time from its start until it is ready. The other 99 are Serf nodes in this
// process, with the tags of members. "beside" is an agent beside a stock agent.
func BenchmarkIdle(b *testing.B) {
	if testing.Short() {
		b.Skip("takes minutes: run without -short")
	}
	program := filepath.Join(b.TempDir(), "sbr")
	out, err := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/sbr").CombinedOutput()
	require.NoError(b, err, string(out))
	peers := hundred(b)
	b.Run("own-node", func(b *testing.B) {
		measureIdle(b, program, "serf: {node: me, bind: '127.0.0.1:0', join: ['"+peers+"']}")
	})
	b.Run("beside", func(b *testing.B) {
		a := serftest.Start(b, serftest.Options{Node: "me-too", Join: []string{peers}})
		measureIdle(b, program, "serf: {rpc: '"+a.RPC()+"', probe: '127.0.0.1:0'}")
	})
}

// hundred starts 99 members and returns the address of one.
func hundred(b *testing.B) (address string) {
	for i := range 99 {
		c := serf.DefaultConfig()
		c.MemberlistConfig = memberlist.DefaultLANConfig()
		c.MemberlistConfig.BindAddr, c.MemberlistConfig.BindPort = "127.0.0.1", 0
		c.Logger = log.New(io.Discard, "", 0)
		c.MemberlistConfig.Logger = c.Logger
		c.NodeName = fmt.Sprintf("m%02d", i)
		c.Tags = map[string]string{downing.TagUID: fmt.Sprint(i), downing.TagBorn: strconv.Itoa(i),
			downing.TagSeen: "0"}
		s, err := serf.Create(c)
		require.NoError(b, err)
		b.Cleanup(func() { _ = s.Shutdown() })
		if i == 0 {
			n := s.Memberlist().LocalNode()
			address = n.Address()
		} else {
			_, err = s.Join([]string{address}, true)
			require.NoError(b, err)
		}
	}
	return address
}

func measureIdle(b *testing.B, program, node string) {
	dir := b.TempDir()
	path := filepath.Join(dir, "sbr.yaml")
	port := freePort(b)
	yaml := "system: s\n" + node + "\nhttp: {listen: '127.0.0.1:" + port + "'}\n" +
		"split-brain-resolver: {lease-majority: {lease-implementation: file}}\nlease: {file: {path: '" + dir + "/s.lease'}}\n"
	require.NoError(b, os.WriteFile(path, []byte(yaml), 0o600))
	ctx, leave := context.WithCancel(b.Context())
	c := exec.CommandContext(ctx, program, "agent", "--config", path)
	// It leaves in good order: the next one would have to wait for the verdict on a member that has failed.
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute // then it is killed
	c.Env = append(os.Environ(), "STATE_DIRECTORY="+dir, "KUBECONFIG=", "KUBERNETES_SERVICE_HOST=")
	began := time.Now()
	require.NoError(b, c.Start())
	defer func() { leave(); _ = c.Wait() }()
	answers := func(path string, members int) bool {
		resp, err := http.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode == http.StatusOK && strings.Count(string(text), `"reachable": true`) >= members
	}
	require.Eventually(b, func() bool { return answers("/healthz/ready", 0) }, time.Minute, time.Millisecond)
	ready := time.Since(began)
	require.Eventually(b, func() bool { return answers("/status", 100) }, 2*time.Minute, 100*time.Millisecond,
		"a hundred members")
	time.Sleep(settleFor)
	for b.Loop() {
		before := cpu(b, c.Process.Pid)
		time.Sleep(idleFor)
		b.ReportMetric(100*(cpu(b, c.Process.Pid)-before).Seconds()/idleFor.Seconds(), "%core")
		b.ReportMetric(float64(resident(b, c.Process.Pid))/(1<<20), "MiB-resident")
	}
	b.ReportMetric(float64(ready.Milliseconds()), "ms-to-ready")
}

func freePort(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(b, err)
	return port
}

// cpu is the processor time that a process has taken. The kernel counts it in hundredths of a second.
func cpu(b *testing.B, pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	require.NoError(b, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func resident(b *testing.B, pid int) int {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(b, err)
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	require.NoError(b, err)
	return pages * os.Getpagesize()
}

package agent_test

import (
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"os"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/file"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Three nodes find each other, are ready, and leave in peace: nobody calls the one that left unreachable.
func TestRun_NodesMeetAndLeave(t *testing.T) {
	home(t)
	n1 := start(t, own("n1", nil, ""))
	n1.ready()
	n2 := start(t, own("n2", n1, ""))
	n3 := start(t, own("n3", n1, ""))
	n2.ready()
	n3.ready()
	for _, n := range []*running{n1, n2, n3} {
		n.becomes("three members", func() bool { return len(n.view().Members) == 3 })
		code, _ := n.get("/healthz/live")
		require.Equal(t, http.StatusOK, code)
	}
	require.Contains(t, n1.log.String(), "THE LEASE IS A FILE")
	code, metrics := n1.get("/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, metrics, "sbr_members")

	n3.leave()
	status, err := n3.ends()
	require.NoError(t, err)
	require.Zero(t, status)
	n1.becomes("two members", func() bool { return len(n1.view().Members) == 2 })
	require.Empty(t, n1.view().Unreachable)
}

// A node is not ready before it has found one of those that it shall join, nor before min-members are there.
func TestRun_NotReadyAlone(t *testing.T) {
	home(t)
	lonely := start(t, "system: payments\nserf: {node: n1, bind: '127.0.0.1:0', join: ['127.0.0.1:1'], profile: local}\nhttp: {listen: '127.0.0.1:0'}")
	lonely.becomes("says whom it misses", func() bool {
		code, text := lonely.get("/healthz/ready")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "joining: nobody answers")
	})
	few := start(t, own("n2", nil, "split-brain-resolver: {min-members: 2}"))
	few.becomes("says how many it misses", func() bool {
		code, text := few.get("/healthz/ready")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "1 of min-members 2 are here")
	})
	code, _ := few.get("/healthz/live")
	require.Equal(t, http.StatusOK, code, "waiting is no reason to be started again")
}

// decide writes a verdict into the lease file, as a member does that has won.
func decide(t *testing.T, dir string, survivors, down []string) {
	t.Helper()
	cfg := file.DefaultConfig()
	cfg.Path = filepath.Join(dir, "payments-sbr.lease")
	store, err := file.New(cfg)
	require.NoError(t, err)
	l, err := lease.New(store, survivors[0], lease.DefaultSettings(), lease.Options{})
	require.NoError(t, err)
	defer l.Close()
	ids := func(texts []string) (out []sbr.ID) {
		for _, s := range texts {
			out = append(out, sbr.ID(s))
		}
		return out
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	v := sbr.Verdict{Survivors: ids(survivors), Down: ids(down), DecidedBy: sbr.ID(survivors[0]), Reason: "a test says so"}
	v.Normalize()
	out := l.Acquire(ctx, lease.Proposal{Verdict: &v}, func(error) {})
	require.Equal(t, lease.Granted, out.Kind, out.String())
}

// A downed member is red at once, runs its hook with the facts, signals the process that it protects, remembers its incarnation, and ends
// with status 70. It comes back as a new member.
func TestRun_DownedByAVerdict(t *testing.T) {
	dir := home(t)
	app := exec.Command("sleep", "60")
	require.NoError(t, app.Start())
	pidFile := filepath.Join(dir, "app.pid")
	require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(app.Process.Pid)+"\n"), 0o600))
	facts, release := filepath.Join(dir, "facts"), filepath.Join(dir, "release")
	hooks := `
hooks:
  on-down: [/bin/sh, -c, 'cat > ` + facts + `; echo "$SBR_EVENT $SBR_MEMBER $SBR_REASON" >> ` + facts + `; while [ ! -e ` + release + ` ]; do sleep 0.05; done']
  pid-file: ` + pidFile + `
`
	n1 := start(t, own("n1", nil, ""))
	n1.ready()
	n2 := start(t, own("n2", n1, hooks))
	n2.ready()
	n2.becomes("two members", func() bool { return len(n2.view().Members) == 2 })
	old := n2.view().Incarnation
	decide(t, dir, []string{n1.view().Incarnation}, []string{old})

	n2.becomes("red", func() bool {
		live, why := n2.get("/healthz/live")
		ready, _ := n2.get("/healthz/ready")
		return live == http.StatusServiceUnavailable && ready == http.StatusServiceUnavailable && strings.Contains(why, "a test says so")
	})
	require.Equal(t, sbr.StateDown, n2.view().State)
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	status, err := n2.ends()
	require.NoError(t, err)
	require.Equal(t, downing.ExitDowned, status)
	text := read(t, facts)
	require.Contains(t, text, `"event":"down"`)
	require.Contains(t, text, `"incarnation":"`+old+`"`)
	require.Contains(t, text, "down n2 verdict 1 by n1")
	var ended *exec.ExitError
	require.ErrorAs(t, app.Wait(), &ended)
	require.Equal(t, "signal: terminated", ended.Error())
	require.Equal(t, old+"\n", read(t, dir, "payments.downed"))

	again := start(t, own("n2", n1, ""))
	again.ready()
	require.NotEqual(t, old, again.view().Incarnation)
	require.Equal(t, sbr.StateArming, again.view().State)
	n1.becomes("two members again", func() bool {
		return len(n1.view().Members) >= 2 && len(n1.view().Unreachable) == 0
	})
}

// A hook that hangs costs its time-out, not the end of the process.
func TestRun_HangingHook(t *testing.T) {
	dir := home(t)
	n1 := start(t, own("n1", nil, "hooks: {on-down: [sleep, '600'], on-suspend: [sleep, '600'], timeout: 500ms, grace: 20s}"))
	n1.ready()
	decide(t, dir, []string{"n9#u"}, []string{n1.view().Incarnation})
	began := time.Now()
	status, err := n1.ends()
	require.NoError(t, err)
	require.Equal(t, downing.ExitDowned, status)
	require.Less(t, time.Since(began), 15*time.Second)
	require.Contains(t, n1.log.String(), "on-down")
}

package agent_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/file"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// Three nodes find each other, are ready, and leave in peace: no node calls a node that left unreachable.
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

	n3.leaves()
	n1.becomes("two members", func() bool { return len(n1.view().Members) == 2 })
	require.Empty(t, n1.view().Unreachable)
}

// A node is not ready before it has found a node that it shall join, nor before min-members are there.
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

// A node ends at once although it joins a silent address, as a downed node in a partition does.
func TestRun_EndsWhileItJoins(t *testing.T) {
	home(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	n := start(t, fmt.Sprintf("system: payments\nserf: {node: n1, bind: '127.0.0.1:0', join: ['%s']}\n"+
		"http: {listen: '127.0.0.1:0'}", silent.Addr()))
	joining, err := silent.Accept()
	require.NoError(t, err)
	defer joining.Close() // what is left of the join ends
	n.leave()
	asked := time.Now()
	status, err := n.ends()
	require.NoError(t, err)
	require.Zero(t, status)
	require.Less(t, time.Since(asked), 8*time.Second, "it waits for no answer: that takes ten seconds")
}

// The gossip key was changed on one side of a cut: the nodes that wait on the other side are told why they
// find nobody, and not that all are gone.
func TestRun_AnotherGossipKey(t *testing.T) {
	dir := home(t)
	key := func(c byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{c}, 32)) }
	encrypted := func(yaml string, c byte) string {
		return strings.Replace(yaml, "profile:", "encrypt: '"+key(c)+"', profile:", 1)
	}
	n1 := start(t, encrypted(own("n1", nil, ""), 1))
	n1.ready()
	decide(t, dir, []string{n1.view().Incarnation}, []string{"n2#old"})
	const why = "answers, and has another gossip key: give all members the same keys"
	for name, yaml := range map[string]string{"n2": encrypted(own("n2", n1, ""), 2), "n3": own("n3", n1, "")} {
		n := start(t, yaml)
		n.becomes(name+" says so when it is asked", func() bool {
			_, text := n.get("/healthz/ready")
			return strings.Contains(text, why) && strings.Contains(n.view().SuspendedBecause, why)
		})
		require.Equal(t, 1, strings.Count(n.log.String(), why), "once")
	}
}

// decide writes a verdict into the lease file, as a member does that has won.
func decide(t *testing.T, dir string, survivors, down []string) {
	t.Helper()
	cfg := file.Config{}
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
	v := sbr.Verdict{Survivors: ids(survivors), Down: ids(down), DecidedBy: sbr.ID(survivors[0]),
		Reason: "a test says so"}
	v.Normalize()
	_, err = l.Acquire(ctx, lease.Proposal{Verdict: &v})
	require.NoError(t, err)
}

// A downed member is red at once, runs its hook with the facts, signals the process that it protects,
// remembers its incarnation, and ends with status 70. It comes back as a new member.
func TestRun_DownedByAVerdict(t *testing.T) {
	dir := home(t)
	app := exec.Command("sleep", "60")
	require.NoError(t, app.Start())
	pidFile := filepath.Join(dir, "app.pid")
	require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(app.Process.Pid)+"\n"), 0o600))
	facts, release := filepath.Join(dir, "facts"), filepath.Join(dir, "release")
	hooks := `
hooks:
  on-down: [/bin/sh, -c, 'cat > ` + facts + `; echo "$SBR_EVENT $SBR_MEMBER $SBR_REASON" >> ` + facts +
		`; while [ ! -e ` + release + ` ]; do sleep 0.05; done']
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
		return live == http.StatusServiceUnavailable && ready == http.StatusServiceUnavailable &&
			strings.Contains(why, "a test says so")
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
	incident := regexp.MustCompile(`"incident":"([0-9a-f]{32})"`).FindStringSubmatch(text)
	require.Len(t, incident, 2, text)
	for _, line := range []string{"sbr: down: verdict 1", "sbr: hook ended", "sbr: signal sent",
		"sbr: the agent ends"} {
		require.Regexp(t, regexp.QuoteMeta(line)+".*incident\"?[:=]\"?"+incident[1], n2.log.String())
	}
	require.Regexp(t, `the agent ends.*exit-status"?[:=]70`, n2.log.String())
	var ended *exec.ExitError
	require.ErrorAs(t, app.Wait(), &ended)
	require.Equal(t, "signal: terminated", ended.Error())
	require.Regexp(t, `^\{"incarnation":"`+old+`","over":true,"members":\[\{"id":"n1#`,
		read(t, dir, "payments@n2.json"), "whom to look for")

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

func tags(t *testing.T, a *serftest.Agent) map[string]string {
	t.Helper()
	c, err := a.Dial()
	require.NoError(t, err)
	defer c.Close()
	members, err := c.Members()
	require.NoError(t, err)
	require.Len(t, members, 1)
	return members[0].Tags
}

// Beside a stock agent: its tags say which incarnation it is. A restart in peace begins a new one, unless the
// tags are to be kept.
func TestRun_BesideAStockAgent(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, flavour serftest.Flavour) {
		dir := home(t)
		a := serftest.Start(t, serftest.Options{Flavour: flavour, Node: "n1",
			Tags: map[string]string{"role": "web"}})
		beside := "system: payments\nserf: {rpc: '" + a.RPC() +
			"', probe: '127.0.0.1:0', rpc-timeout: 5s}\nhttp: {listen: '127.0.0.1:0'}\n"
		keeping := "system: payments\nserf: {rpc: '" + a.RPC() +
			"', probe: '127.0.0.1:0', rpc-timeout: 5s, leave-on-terminate: off}\nhttp: {listen: '127.0.0.1:0'}\n"

		first := start(t, beside)
		first.ready()
		require.Equal(t, "n1#"+tags(t, a)[downing.TagUID], first.view().Incarnation)
		require.NotContains(t, first.log.String(), "level=ERROR")
		was := first.view().Incarnation
		first.leaves()
		require.Equal(t, map[string]string{"role": "web", downing.TagUID: ""}, tags(t, a),
			"what is the operator's stays, and an empty uid says that the resolver resigned")

		second := start(t, keeping)
		second.ready()
		require.NotEqual(t, was, second.view().Incarnation)
		was = second.view().Incarnation
		second.leave()
		_, _ = second.ends()

		third := start(t, beside)
		third.ready()
		require.Equal(t, was, third.view().Incarnation, "it goes on")

		decide(t, dir, []string{"n9#u"}, []string{was})
		status, err := third.ends()
		require.NoError(t, err)
		require.Equal(t, downing.ExitDowned, status)
		_, _ = a.Wait(t.Context()) // the stock agent has left, and ended itself
	})
}

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent"
	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	_ "github.com/serf-sbr/serf-sbr/lease/file"
	_ "github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.M(m).Run()) }

// bound is how long a test waits for what takes moments.
const bound = 30 * time.Second

// home gives the test a state directory of its own, and no Kubernetes.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("STATE_DIRECTORY", dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "")
	return dir
}

// parse reads a configuration. A configuration that says nothing of the lease keeps it in a file in the
// test's state directory.
func parse(t *testing.T, yaml string) *config.File {
	t.Helper()
	if !strings.Contains(yaml, "lease: ") {
		const rules, named = "split-brain-resolver: {",
			"split-brain-resolver: {lease-majority: {lease-implementation: file}, "
		if !strings.Contains(yaml, rules) {
			yaml += "\n" + rules + "}"
		}
		yaml = strings.Replace(yaml, rules, named, 1) + "\nlease: {file: {path: '" + os.Getenv("STATE_DIRECTORY") +
			"/payments-sbr.lease'}}"
	}
	f, err := config.Parse("sbr.yaml", []byte(yaml))
	require.NoError(t, err)
	return f
}

// running is an agent in this process.
type running struct {
	t     *testing.T
	log   *logtest.Log
	url   string
	leave context.CancelFunc
	done  chan struct{}

	status int
	err    error
}

// start runs an agent and waits until its page is there.
func start(t *testing.T, yaml string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, log: new(logtest.Log), leave: cancel, done: make(chan struct{})}
	listening := make(chan string, 1)
	o := agent.Options{
		File: parse(t, yaml), Logger: slog.New(slog.NewTextHandler(r.log, nil)),
		Listening: func(address string) { listening <- address },
		Exit:      func(status int) { t.Errorf("the process would have been ended with status %d", status) },
	}
	go func() {
		defer close(r.done)
		r.status, r.err = agent.Run(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	select {
	case address := <-listening:
		r.url = "http://" + address
	case <-r.done:
		t.Fatalf("ended with status %d: %v", r.status, r.err)
	case <-time.After(bound):
		t.Fatal("no page")
	}
	return r
}

// get returns the status and the text of a page; 0 when nobody answers.
func (r *running) get(path string) (int, string) {
	resp, err := http.Get(r.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func (r *running) view() (s downing.Status) {
	r.t.Helper()
	_, text := r.get("/status")
	_ = json.Unmarshal([]byte(text), &s) // nobody answers any more: the zero Status
	return s
}

func (r *running) becomes(what string, ok func() bool) {
	r.t.Helper()
	require.Eventually(r.t, ok, bound, 10*time.Millisecond, what)
}

func (r *running) ready() {
	r.t.Helper()
	r.becomes("ready", func() bool { code, _ := r.get("/healthz/ready"); return code == http.StatusOK })
}

// ends returns how it ended.
func (r *running) ends() (int, error) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(bound):
		r.t.Fatal("it does not end")
	}
	return r.status, r.err
}

// leaves has it leave, in peace.
func (r *running) leaves() {
	r.t.Helper()
	r.leave()
	status, err := r.ends()
	require.NoError(r.t, err)
	require.Zero(r.t, status)
}

// own is the configuration of a node of its own.
func own(name string, join *running, more string) string {
	peers := ""
	if join != nil {
		peers = join.view().Members[0].Address
		for _, m := range join.view().Members {
			if m.Name == join.view().Member {
				peers = m.Address
			}
		}
		peers = "join: ['" + peers + "'], "
	}
	return fmt.Sprintf("system: payments\nserf: {node: %s, bind: '127.0.0.1:0', %sprofile: local}\nhttp: {listen: '127.0.0.1:0'}\n%s", name, peers, more)
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	require.NoError(t, err)
	return string(data)
}

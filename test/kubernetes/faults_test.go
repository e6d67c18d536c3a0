package kubernetes_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/test/faults"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// TestFaultMatrix: A is a service account with the rights of the documentation; the others are
// administrators.
func TestFaultMatrix(t *testing.T) {
	w := &faultWorld{cluster: kubetest.New(t), users: map[string]string{}}
	faults.Matrix(t, &faults.Target{
		Name:    faults.Kubernetes,
		Address: strings.TrimPrefix(w.cluster.URL(), "https://"),
		Open:    w.open,
		Delete: func(ctx context.Context, name string) error {
			const group = "/apis/coordination.k8s.io/v1/namespaces/"
			return w.admin(ctx, http.MethodDelete, group+name+"/leases/"+testName, nil)
		},
		Rows: answerRows(),
		Wholes: map[string]faults.Whole{
			faults.Killed: {
				Begin: func() error { w.cluster.KillAPIServer(); return nil },
				End:   func() error { return w.cluster.StartAPIServer(t.Context()) },
			},
			faults.Stopped: {Begin: w.cluster.PauseEtcd, End: func() error {
				if !w.cluster.EtcdIsPaused() {
					return errors.New("etcd was stopped and runs: somebody else has continued it")
				}
				return errors.Join(w.cluster.ContinueEtcd(), w.cluster.WaitReady(t.Context()))
			}},
			faults.Forbidden: {
				Begin: func() error { return w.allow(t.Context(), true) },
				End:   func() error { return w.allow(t.Context(), false) },
			},
		},
	})
}

// faultWorld is a cluster with a namespace for each cell.
type faultWorld struct {
	cluster *kubetest.Cluster
	mu      sync.Mutex
	users   map[string]string // the kubeconfig of A by the names of the cells that run
}

func (w *faultWorld) open(t *faults.T, at, name string) lease.Store {
	cfg := testConfig()
	cfg.Namespace = name
	user, answers := w.cluster.AdminKubeconfig(), &answers{T: t}
	if "https://"+at != w.cluster.URL() {
		cfg.RequestTimeout = 800 * time.Millisecond
		var err error
		user, err = w.cluster.LeastPrivilegeKubeconfig(context.Background(), name, testName)
		require.NoError(t, err)
		w.use(name, user)
		t.Cleanup(func() { w.use(name, "") })
		t.Cleanup(answers.running.Wait)
	}
	access, err := clientcmd.BuildConfigFromFlags("", user)
	require.NoError(t, err)
	access.Host, access.WrapTransport = "https://"+at, answers.wrap
	s, err := kubernetes.NewForConfig(access, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { t.Cleaned(s.Close()) })
	return &answered{s, answers}
}

func (w *faultWorld) use(name, user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users[name] = user; user == "" {
		delete(w.users, name)
	}
}

func (w *faultWorld) admin(ctx context.Context, method, path string, body any) error {
	code, answer, err := w.cluster.Do(ctx, method, path, body)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", method, path, code, answer)
	}
	return err
}

// verbs are those of the requests, by the step that they are.
var verbs = map[string]string{
	"read": "get", "create": "create", "update": "patch", "heartbeat": "patch", "release": "patch", "watch": "watch",
}

// allow gives each cell's A all verbs of the documentation, or all but the verb of its step, and waits until
// the API server acts by it.
func (w *faultWorld) allow(ctx context.Context, allBut bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := make(chan error, len(w.users))
	for name, user := range w.users {
		step, _, _ := strings.Cut(name, "-")
		go func() { done <- w.allowOne(ctx, name, user, verbs[step], allBut) }()
	}
	var all error
	for range w.users {
		all = errors.Join(all, <-done)
	}
	return all
}

func (w *faultWorld) allowOne(ctx context.Context, namespace, user, verb string, allBut bool) error {
	allowed := []string{"get", "watch", "update", "patch", "create"}
	if allBut {
		allowed = without(allowed, verb)
	}
	rules := []object{{
		"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"},
		"resourceNames": []string{testName}, "verbs": allowed,
	}}
	role := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/roles/sbr-" + testName
	if err := w.admin(ctx, http.MethodPatch, role, object{"rules": rules}); err != nil {
		return err
	}
	cfg := testConfig()
	cfg.Kubeconfig, cfg.Namespace = user, namespace
	probe, err := kubernetes.New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = probe.Close() }()
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		err := probe.Preflight(ctx)
		if forbidden := err != nil && strings.Contains(err.Error(), "cannot "+verb+" "); forbidden == allBut {
			return nil
		}
	}
	return ctx.Err()
}

// answer is what A's client hears in place of the API server's answer.
type answer struct {
	status     int // 0: nothing
	retryAfter string
	foreign    bool          // a line of text, as a load balancer gives it
	executed   bool          // the API server sees the request
	delay      time.Duration // before it does; then only requests of the step's kind are struck
	meets      int           // how the API server answers a write then; 0: any
}

// answers are those between A's client and its connections.
type answers struct {
	*faults.T
	next    http.RoundTripper
	running sync.WaitGroup

	mu     sync.Mutex
	answer *answer
	step   string
}

// answered is A's store.
type answered struct {
	*kubernetes.Store
	answers *answers
}

func (a *answers) wrap(next http.RoundTripper) http.RoundTripper {
	a.next = next
	return a
}

func (a *answers) set(now *answer, step string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer, a.step = now, step
}

// to is the answer to a request, nil if the server gives it.
func (a *answers) to(r *http.Request) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answer == nil || a.answer.delay == 0 {
		return a.answer
	}
	verb := map[string]string{
		"get": http.MethodGet, "create": http.MethodPut, "patch": http.MethodPatch, "watch": kubetest.VerbWatch,
	}
	if kubetest.Verb(r) != verb[verbs[a.step]] {
		return nil
	}
	return a.answer
}

// RoundTrip implements http.RoundTripper.
func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	now := a.to(r)
	if now == nil {
		return a.next.RoundTrip(r)
	}
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	if now.executed {
		executed := make(chan struct{})
		a.running.Go(func() {
			defer close(executed)
			time.Sleep(now.delay)
			a.execute(r, body, now.meets)
		})
		if now.delay == 0 {
			<-executed
		}
	}
	if now.status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	kind, text := "application/json",
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Status","status":"Failure","code":%d}`, now.status)
	if now.foreign {
		kind, text = "text/plain", "no such page\n"
	}
	said := &http.Response{
		StatusCode: now.status, Request: r, ProtoMajor: 2,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(text)),
	}
	if now.retryAfter != "" {
		said.Header.Set("Retry-After", now.retryAfter)
	}
	return said, nil
}

// execute sends the request, whether or not its client still waits.
func (a *answers) execute(r *http.Request, body []byte, meets int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), waitFor)
	defer cancel()
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	status := 0
	resp, err := a.next.RoundTrip(r)
	if err == nil {
		status = resp.StatusCode
		_ = resp.Body.Close()
	}
	if meets != 0 && r.Method != http.MethodGet && status != meets {
		a.Errorf("%s %s: the API server answered %d, %v", r.Method, r.URL, status, err)
	}
}

// answerRows are the faults that a way through HTTP has, and what the API server may say.
func answerRows() (rows []faults.Row) {
	recovers, cutOff, unheard := faults.Recovers, faults.CutOff, faults.Unheard
	// A 403 says for certain that nothing was written. A read and a heartbeat are tried again.
	refused := [6]string{"granted; A 2", "unknown (refused); absent", "unknown (refused); free 1", "kept; A 2",
		"unknown (refused); A 2", "catches up; B 2"}
	refusedForGood := refused
	refusedForGood[0], refusedForGood[3], refusedForGood[5] = cutOff[0], cutOff[3], cutOff[5]
	late := [6]string{
		"unknown; free 1", "unknown; absent, then A 1", "unknown; free 1, then A 2", "lost; A 2",
		"unknown; A 2, then free 2", "catches up; B 2",
	}
	const lateBy = 3500 * time.Millisecond // longer than any call of A, and the opening of a watch, waits
	add := func(name string, stays bool, a answer, want [6]string) {
		rows = append(rows, faults.Row{
			Name: name, On: faults.Kubernetes, Stays: stays, Late: a.delay > 0, Want: want,
			Answer: func(s lease.Store, step string, on bool) {
				now := &a
				if !on {
					now = nil
				}
				s.(*answered).answers.set(now, step)
			},
		})
	}
	for _, r := range []struct {
		name          string
		answer        answer
		once, forGood [6]string
	}{
		{"401", answer{status: http.StatusUnauthorized}, recovers, cutOff},
		{"403", answer{status: http.StatusForbidden}, refused, refusedForGood},
		{"404 of a load balancer", answer{status: http.StatusNotFound, foreign: true}, recovers, cutOff},
		{"429 with Retry-After: 1", answer{status: http.StatusTooManyRequests, retryAfter: "1"}, recovers, cutOff},
		{"500", answer{status: http.StatusInternalServerError}, recovers, cutOff},
		{"503", answer{status: http.StatusServiceUnavailable}, recovers, cutOff},
		{"500 after the write", answer{status: http.StatusInternalServerError, executed: true}, recovers, unheard},
		{"the answer is lost, the connection lives", answer{executed: true}, recovers, unheard},
		{"the request is lost, the connection lives", answer{}, recovers, cutOff},
	} {
		add(r.name+", once", false, r.answer, r.once)
		add(r.name+", from then on", true, r.answer, r.forGood)
	}
	add("409 to a read or a watch, too, once", false, answer{status: http.StatusConflict}, recovers)
	add("executed after the client gave up, once", false, // another write of A's has settled it by then
		answer{executed: true, delay: lateBy, meets: http.StatusConflict}, recovers)
	add("executed after the client gave up, every one of its kind",
		true, answer{executed: true, delay: lateBy}, late)
	return rows
}

var update = flag.Bool("update", false, "write docs/faults.md")

const faultPageHead = `# Faults of a store

What may come of each fault at each request of a lease. Each cell is played against a real server: ` +
	"`go test -C test ./kubernetes ./etcd\n" +
	"./postgres ./mongodb -run TestFaultMatrix`" + `. All the time a guard looks whether two hold the lease (S3), and what the lease said is compared with
what an independent client reads right then (S4). This page is written from the tables that those tests compare with, by
` + "`go test -C test ./kubernetes -run TestFaultPage -update`" + `.

A is struck: its requests pass a proxy. Before an acquire the record is free under token 1, or absent where A is to create it; before a
heartbeat or a release A holds it under token 2; a watch begins with B holding, and B takes it again while the fault lasts. A cell is what A was
told, and what the record holds then: its holder, or free, and its token. "Refused" is an error that says for certain that nothing was written.

MongoDB's protocol is FerretDB's, which has no change streams: its watch is a poll. It has no users here, and its disk is
not filled. PostgreSQL's is that of the table alone, which root can mount: a server that has no space for its log ends.

| fault | store | read | create | update | heartbeat | release | watch |
|---|---|---|---|---|---|---|---|
`

// TestFaultPage: the page for people is what the tables say, those of all stores in one.
func TestFaultPage(t *testing.T) {
	text := faultPageHead + faults.Page(answerRows())
	page := filepath.Join("..", "..", "docs", "faults.md")
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	}
	present, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, text, string(present), "run this test with -update")
}

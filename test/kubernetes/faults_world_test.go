package kubernetes_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/test/faults"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/internal/logtest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// faultSettings are the times of all parties of the matrix: the defaults, shrunk.
var faultSettings = lease.Settings{HeartbeatTimeout: 8 * time.Second, HeartbeatInterval: time.Second, OperationTimeout: 2 * time.Second}

const (
	faultRequestTimeout = 800 * time.Millisecond
	// faultSlack is what a loaded machine may add to a bound.
	faultSlack = 15 * time.Second
	// cellTimeout ends a cell that hangs.
	cellTimeout = 2 * time.Minute
)

// cell is one fault at one step: a lease object of its own; party A, whose requests all go through a proxy; party B, without faults.
type cell struct {
	*faults.T
	ctx     context.Context
	cluster *kubetest.Cluster
	fault   *fault
	step    *step
	log     *logtest.Log

	namespace string
	rights    string
	proxy     *kubetest.Proxy
	behind    *kubernetes.Store // A's, through the proxy
	direct    *kubernetes.Store // B's and the observer's
	a, b      *faults.Party
	history   *faults.Sightings // of the object, as the observer's watch brings it
	hit       *strikes
	// spoiled: the machine was so slow that a request may have had its client give up, whatever the fault did.
	spoiled atomic.Bool
	got     result
}

// result is what became of the call, and what an independent client found in the object then.
type result struct{ outcome, object string }

func (r result) String() string { return r.outcome + "; " + r.object }

// build makes the namespace, the rights, the proxy and the parties. No lease object exists after it.
func (c *cell) build() {
	c.namespace = "cell-" + strings.ToLower(rand.Text())
	var err error
	c.rights, err = c.cluster.LeastPrivilegeKubeconfig(c.ctx, c.namespace, testName)
	require.NoError(c, err)
	c.proxy, err = kubetest.NewProxy(c.rights)
	require.NoError(c, err)
	c.Cleanup(func() { c.Cleaned(c.proxy.Close()) })
	c.behind = c.open(c.proxy.Kubeconfig(), faultRequestTimeout)
	c.direct = c.open(c.cluster.AdminKubeconfig(), 20*time.Second)
	c.a, c.b = c.newParty("A", "A", c.behind), c.newParty("B", "B", c.direct)
	c.hit = newStrikes()
	c.warm()
	c.history = faults.Follow(c.ctx, c.T, func(ctx context.Context, s *faults.Sightings) error {
		return lease.Follow(ctx, c.direct, lease.Pace{}, nil, func(seen lease.Snapshot) { s.Add(seen.Record) })
	})
}

func (c *cell) open(kubeconfig string, timeout time.Duration) *kubernetes.Store {
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = kubeconfig, c.namespace, testName
	cfg.RequestTimeout, cfg.Logger = timeout, c.logger()
	s, err := kubernetes.New(cfg)
	require.NoError(c, err)
	c.Cleanup(func() { c.Cleaned(s.Close()) })
	return s
}

// warm opens the connections: a fault is to strike a request, not a handshake. A's lease learns nothing by it.
func (c *cell) warm() {
	c.within(faultSlack, "the connections", func() bool {
		_, err := c.behind.Read(c.ctx)
		return err == nil
	})
	c.settled()
}

// within waits until done.
func (c *cell) within(bound time.Duration, what string, done func() bool) {
	deadline := time.Now().Add(bound)
	for !done() {
		require.NoError(c, c.ctx.Err(), "waiting for %s", what)
		if time.Now().After(deadline) {
			require.FailNow(c, "too late", "%s: not within %v", what, bound)
		}
		c.pause(20 * time.Millisecond)
	}
}

func (c *cell) pause(d time.Duration) {
	select {
	case <-c.ctx.Done():
	case <-time.After(d):
	}
}

// settled reads the object past A, its proxy and its lease.
func (c *cell) settled() lease.Snapshot {
	s, err := c.direct.Read(c.ctx)
	require.NoError(c, err, "the observer")
	return s
}

// object is what the object holds, in the words of the table.
func (c *cell) object() string { return faults.Describe(c.settled()) }

func (c *cell) newParty(name, mark string, store lease.Store) *faults.Party {
	return faults.NewParty(c.T, name, mark, store, faultSettings, c.logger())
}

func (c *cell) logger() *slog.Logger { return slog.New(slog.NewTextHandler(c.log, nil)) }

func (c *cell) leasesPath() string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + c.namespace + "/leases"
}

func (c *cell) objectPath() string { return c.leasesPath() + "/" + testName }

// admin changes something as an administrator does. It is called by the proxy's goroutines too, so it only reports.
func (c *cell) admin(method, path string, body any, want ...int) []byte {
	code, answer, err := c.cluster.Do(c.ctx, method, path, body)
	if err == nil && !slices.Contains(want, code) {
		err = fmt.Errorf("%d %s", code, answer)
	}
	if err != nil {
		c.Errorf("setting the scene: %s %s: %v", method, path, err)
	}
	return answer
}

// edit changes a label, and makes an object without a holder if there is none.
func (c *cell) edit() {
	labels := object{"metadata": object{"labels": object{"edited": randomText(8)}}}
	if code, _, err := c.cluster.Do(c.ctx, http.MethodPatch, c.objectPath(), labels); err == nil && code == http.StatusOK {
		return
	}
	bare := object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": object{"name": testName}, "spec": object{}}
	c.admin(http.MethodPost, c.leasesPath(), bare, http.StatusCreated)
}

// remove deletes the object, if there is one.
func (c *cell) remove() {
	c.admin(http.MethodDelete, c.objectPath(), nil, http.StatusOK, http.StatusNotFound)
}

// replaceHolder is what a hand does that frees a stuck lease in its own way.
func (c *cell) replaceHolder() {
	c.admin(http.MethodPatch, c.objectPath(), object{"spec": object{"holderIdentity": "operator"}}, http.StatusOK)
}

// formerLife is a process under A's name that gets the lease, whoever holds it, and dies.
func (c *cell) formerLife() {
	life := c.newParty("A", "former life", c.direct)
	out := linear.AnswerOf(life.Acquire(c.ctx, lease.Proposal{TakeOver: []string{"B"}}))
	if out.Kind != sbr.Granted {
		c.Errorf("setting the scene: %v", out)
	}
	life.Close()
}

// allow gives A's role all verbs of the documentation but one, and waits until the API server acts by it. Empty: all.
func (c *cell) allow(allBut string) {
	roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + c.namespace + "/roles"
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	require.NoError(c, json.Unmarshal(c.admin(http.MethodGet, roles, nil, http.StatusOK), &list))
	require.Len(c, list.Items, 1)
	verbs := slices.DeleteFunc([]string{"get", "watch", "update", "patch", "create"}, func(verb string) bool { return verb == allBut })
	rules := []object{{
		"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"}, "resourceNames": []string{testName}, "verbs": verbs,
	}}
	c.admin(http.MethodPatch, roles+"/"+list.Items[0].Metadata.Name, object{"rules": rules}, http.StatusOK)
	probe := c.open(c.rights, 20*time.Second)
	c.within(faultSlack, "the rights", func() bool {
		err := probe.Preflight(c.ctx)
		if allBut == "" {
			return err == nil
		}
		return err != nil && strings.Contains(err.Error(), "cannot "+allBut+" ")
	})
}

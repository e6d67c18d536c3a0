package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/serf-sbr/serf-sbr/lease"
)

// akkaNode does what the lease of Akka and Pekko does: GET, POST and PUT of {owner, time}, with nothing in
// the metadata but name and resourceVersion, and expiry by the reader's own wall clock. It is driven by the
// test: nothing happens behind its back.
type akkaNode struct {
	t        *testing.T
	world    realWorld
	http     *http.Client
	server   string
	owner    string
	clock    lease.Clock
	settings lease.Settings

	granted bool
	version string
	// cut: it does not reach the API server.
	cut bool
	// answered is when the last write was confirmed, beat when the next heartbeat is due.
	answered, beat time.Time
}

type akkaLease struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   akkaMetadata `json:"metadata"`
	Spec       akkaSpec     `json:"spec"`
}

type akkaMetadata struct {
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

type akkaSpec struct {
	Owner string `json:"owner"`
	Time  int64  `json:"time"`
}

// newAkkaNode has the rights that Akka's documentation asks for.
func newAkkaNode(t *testing.T, w realWorld, owner string, clock lease.Clock,
	settings lease.Settings) *akkaNode {
	t.Helper()
	const account = "akka"
	kubeconfig, err := w.cluster.AccountKubeconfig(t.Context(), w.namespace, account)
	require.NoError(t, err)
	metadata := object{"name": account}
	w.do(t, http.MethodPost, w.roles(), object{"metadata": metadata, "rules": []object{{
		"apiGroups": []string{w.api.Group()}, "resources": []string{"leases"}, "verbs": []string{"get", "create", "update", "list"},
	}}}, 201, 409)
	w.do(t, http.MethodPost, w.roles()[:len(w.roles())-len("roles")]+"rolebindings", object{
		"metadata": metadata,
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
		"subjects": []object{{"kind": "ServiceAccount", "name": account, "namespace": w.namespace}},
	}, 201, 409)
	c := restConfigOf(t, kubeconfig)
	client, err := rest.HTTPClientFor(c)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	n := &akkaNode{t: t, world: w, http: client, server: c.Host, owner: owner, clock: clock, settings: settings}
	require.Eventually(t, func() bool {
		code, _ := n.send(http.MethodGet, nil)
		return code == 200 || code == 404
	}, waitFor, 20*time.Millisecond)
	return n
}

// send returns the status code, and the lease if there is one in the answer.
func (n *akkaNode) send(method string, body *akkaLease) (int, akkaLease) {
	n.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(n.t, err)
	if body == nil {
		raw = nil
	}
	req, err := http.NewRequestWithContext(n.t.Context(), method, n.server+n.world.leases()+"/"+testName,
		bytes.NewReader(raw))
	require.NoError(n.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := n.http.Do(req)
	require.NoError(n.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(n.t, err)
	var l akkaLease
	if resp.StatusCode < 300 {
		require.NoError(n.t, json.Unmarshal(answer, &l))
		require.NotEmpty(n.t, l.Metadata.ResourceVersion)
	}
	return resp.StatusCode, l
}

func (n *akkaNode) body(owner, version string) *akkaLease {
	return &akkaLease{
		APIVersion: n.world.api.Group() + "/v1", Kind: "Lease", Metadata: akkaMetadata{testName, version},
		Spec: akkaSpec{owner, n.clock.Now().UnixMilli()},
	}
}

// read gets the lease, and creates it if there is none.
func (n *akkaNode) read() akkaLease {
	n.t.Helper()
	for range 5 {
		code, l := n.send(http.MethodGet, nil)
		if code == http.StatusNotFound {
			empty := n.body("", "")
			empty.Spec.Time = 0
			code, l = n.send(http.MethodPost, empty)
		}
		if code < 300 {
			return l
		}
		require.Contains(n.t, []int{404, 409}, code)
	}
	require.FailNow(n.t, "the lease can neither be read nor created")
	return akkaLease{}
}

// expired reports whether an owner may be replaced, by this node's clock; the comparison is strict.
func (n *akkaNode) expired(l akkaLease) bool {
	span := n.settings.HeartbeatTimeout - 2*n.settings.Interval()
	return n.clock.Now().UnixMilli() > l.Spec.Time+span.Milliseconds()
}

// acquire reports whether this node holds the lease now. (Theirs leaves the write out if the lease has its
// own name already, and counts itself as the holder only from the next heartbeat on.)
func (n *akkaNode) acquire() bool {
	n.t.Helper()
	if n.granted {
		return true
	}
	l := n.read()
	for range 5 {
		if l.Spec.Owner != "" && l.Spec.Owner != n.owner && !n.expired(l) {
			return false
		}
		if n.put(n.owner, l.Metadata.ResourceVersion) {
			n.granted = true
			return true
		}
		l = n.read()
	}
	return false
}

// put reports false for a conflict.
func (n *akkaNode) put(owner, version string) bool {
	n.t.Helper()
	start := n.clock.Now()
	code, l := n.send(http.MethodPut, n.body(owner, version))
	if code == http.StatusConflict {
		return false
	}
	require.Equal(n.t, http.StatusOK, code)
	n.version, n.answered, n.beat = l.Metadata.ResourceVersion, start, start.Add(n.settings.Interval())
	return true
}

// tick does what is due: a heartbeat. A conflict means that the lease is lost.
func (n *akkaNode) tick() {
	n.t.Helper()
	if n.granted && !n.cut && !n.clock.Now().Before(n.beat) {
		n.granted = n.put(n.owner, n.version)
	}
}

// release writes an empty owner; a conflict means that another owner had the lease already.
func (n *akkaNode) release() {
	n.t.Helper()
	if n.granted {
		n.granted = false
		n.put("", n.version)
	}
}

// crash forgets everything.
func (n *akkaNode) crash() { n.granted = false }

// check is the cached boolean, bounded as newer versions do it: 79 s after the last confirmed write by
// default.
func (n *akkaNode) check() bool {
	s := n.settings
	return n.granted && n.clock.Now().Sub(n.answered) < s.HeartbeatTimeout-3*s.Interval()-s.OperationTimeout
}

// behind is a clock that shows another time than the clock it follows.
type behind struct {
	lease.Clock
	by time.Duration
}

func (c behind) Now() time.Time { return c.Clock.Now().Add(-c.by) }

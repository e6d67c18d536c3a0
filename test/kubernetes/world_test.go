package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/kubefake"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// realWorld is a namespace of its own on a real API server, used with the rights that the documentation asks
// for and no others.
type realWorld struct {
	cluster    *kubetest.Cluster
	api        kubernetes.API
	namespace  string
	kubeconfig string
}

func newRealWorld(t *testing.T, cluster *kubetest.Cluster) realWorld {
	namespace := cluster.Namespace(t)
	kubeconfig, err := cluster.LeastPrivilegeKubeconfig(t.Context(), namespace, testName)
	require.NoError(t, err)
	return realWorld{cluster, kubernetes.Native, namespace, kubeconfig}
}

// newCustomWorld installs what the manifests say, with the right to create.
func newCustomWorld(t *testing.T, cluster *kubetest.Cluster, api kubernetes.API) realWorld {
	t.Helper()
	const account = "member"
	w := realWorld{cluster: cluster, api: api, namespace: cluster.Namespace(t)}
	var err error
	w.kubeconfig, err = cluster.AccountKubeconfig(t.Context(), w.namespace, account)
	require.NoError(t, err)
	o := manifest.DefaultOptions()
	o.Namespace, o.Name, o.ServiceAccount, o.API = w.namespace, testName, account, api
	o.PreMade, o.CRD = false, true
	w.install(t, o)
	s := w.store(t)
	require.Eventually(t, func() bool { return s.Preflight(t.Context()) == nil }, waitFor, 20*time.Millisecond)
	return w
}

// install makes what the manifests say; what is there already stays.
func (w realWorld) install(t *testing.T, o manifest.Options) {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, manifest.WriteJSON(&text, o))
	var list struct{ Items []object }
	require.NoError(t, json.Unmarshal(text.Bytes(), &list))
	collections := map[string]string{
		"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"Role":                     w.roles(),
		"RoleBinding":              "/apis/rbac.authorization.k8s.io/v1/namespaces/" + w.namespace + "/rolebindings",
		"Lease":                    w.leases(),
	}
	for _, item := range list.Items {
		path := collections[item["kind"].(string)]
		require.NotEmpty(t, path, item["kind"])
		w.do(t, http.MethodPost, path, item, 201, 409)
	}
}

func (w realWorld) roles() string {
	return "/apis/rbac.authorization.k8s.io/v1/namespaces/" + w.namespace + "/roles"
}

func (w realWorld) leases() string {
	return "/apis/" + w.api.Group() + "/v1/namespaces/" + w.namespace + "/leases"
}

func (w realWorld) do(t *testing.T, method, path string, body any, want ...int) object {
	t.Helper()
	code, answer, err := w.cluster.Do(t.Context(), method, path, body)
	require.NoError(t, err)
	require.Contains(t, want, code, "%s", answer)
	var out object
	require.NoError(t, json.Unmarshal(answer, &out))
	out["code"] = code
	return out
}

func (w realWorld) store(t *testing.T) *kubernetes.Store {
	return w.storeBy(t, w.kubeconfig)
}

func (w realWorld) storeBy(t *testing.T, kubeconfig string) *kubernetes.Store {
	return openStore(t, w.config(kubeconfig))
}

func (w realWorld) config(kubeconfig string) kubernetes.Config {
	cfg := testConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.API = kubeconfig, w.namespace, w.api
	return cfg
}

func (w realWorld) apply(t *testing.T, patch object) {
	t.Helper()
	path := w.leases() + "/" + testName
	if w.do(t, http.MethodPatch, path, patch, 200, 404)["code"] == 200 {
		return
	}
	patch = toJSON(patch)
	kubefake.Meta(patch)["name"] = testName
	patch["apiVersion"], patch["kind"] = w.api.Group()+"/v1", "Lease"
	w.do(t, http.MethodPost, w.leases(), patch, 201)
}

func (w realWorld) remove(t *testing.T) {
	t.Helper()
	w.do(t, http.MethodDelete, w.leases()+"/"+testName, nil, 200)
}

func (w realWorld) stored(t *testing.T) object {
	t.Helper()
	l := w.do(t, http.MethodGet, w.leases()+"/"+testName, nil, 200, 404)
	if l["code"] == 404 {
		return nil
	}
	return l
}

// generation is how often the server has seen the spec change.
func (w realWorld) generation(t *testing.T) uint64 {
	t.Helper()
	return uint64(kubefake.Meta(w.stored(t))["generation"].(float64))
}

// grant leaves the members these rights on the lease and no others. It takes a moment until it is in force.
func (w realWorld) grant(t *testing.T, verbs []string) {
	t.Helper()
	rules := []object{}
	if len(verbs) > 0 {
		rules = append(rules, object{
			"apiGroups": []string{w.api.Group()}, "resources": []string{"leases"}, "resourceNames": []string{testName}, "verbs": verbs,
		})
	}
	list := w.do(t, http.MethodGet, w.roles(), nil, 200)["items"].([]any)
	require.Len(t, list, 1)
	w.do(t, http.MethodPatch, w.roles()+"/"+kubefake.Meta(list[0].(object))["name"].(string),
		object{"rules": rules}, 200)
}

// rights are what the Role gives, the right to create included.
func (w realWorld) rights() []string {
	if w.api.Custom() {
		return []string{"get", "watch", "patch", "create"}
	}
	return []string{"get", "watch", "patch", "create", "update"}
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool { return v == one })
}

// plain hides the limit of a store: the conformance suite's leases are shorter than one shared with Akka may
// be.
type plain struct {
	lease.Store
	lease.Watcher
}

package deploy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// plurals are the kinds as they stand in a path.
var plurals = map[string]string{
	"ConfigMap": "configmaps", "Lease": "leases", "Namespace": "namespaces", "NetworkPolicy": "networkpolicies", "Pod": "pods",
	"PodDisruptionBudget": "poddisruptionbudgets", "PodMonitor": "podmonitors", "Role": "roles", "RoleBinding": "rolebindings", "Service": "services",
	"ServiceAccount": "serviceaccounts", "StatefulSet": "statefulsets",
}

// apiServer takes what kubectl sends, as administrator. Everything is a dry run.
type apiServer struct {
	http *http.Client
	url  string
}

func newAPIServer(t *testing.T, cluster *kubetest.Cluster) apiServer {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", cluster.AdminKubeconfig())
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(c)
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	return apiServer{client, c.Host}
}

// answer is what the server said to one object.
type answer struct {
	code     int
	message  string
	warnings []string
}

func (a answer) accepted() bool { return a.code == http.StatusOK || a.code == http.StatusCreated }

// apply is `kubectl apply --server-side --dry-run=server --validate=strict`.
func (s apiServer) apply(t *testing.T, o object) answer {
	t.Helper()
	return s.send(t, http.MethodPatch, o.path(t)+"/"+o.metadata("name")+"?dryRun=All&fieldValidation=Strict&fieldManager=test&force=true", "application/apply-patch+yaml", o)
}

// create is the same with `kubectl create`, which admits pods.
func (s apiServer) create(t *testing.T, o object) answer {
	t.Helper()
	return s.send(t, http.MethodPost, o.path(t)+"?dryRun=All&fieldValidation=Strict", "application/json", o)
}

func (s apiServer) send(t *testing.T, method, path, contentType string, o object) answer {
	t.Helper()
	body, err := json.Marshal(o)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	resp, err := s.http.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var status struct{ Message string }
	require.NoError(t, json.Unmarshal(said, &status), "%s", said)
	return answer{resp.StatusCode, status.Message, resp.Header.Values("Warning")}
}

func (o object) path(t *testing.T) string {
	t.Helper()
	version := o["apiVersion"].(string)
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	if o.kind() != "Namespace" {
		path += "/namespaces/" + o.metadata("namespace")
	}
	plural := plurals[o.kind()]
	require.NotEmpty(t, plural, "%s", o.kind())
	return path + "/" + plural
}

// pod is one as the StatefulSet would make it.
func (o object) pod(namespace string) object {
	pod := object{"apiVersion": "v1", "kind": "Pod", "spec": o.at("spec", "template", "spec")}
	pod["metadata"] = object{"name": o.metadata("name") + "-0", "namespace": namespace, "labels": o.at("spec", "template", "metadata", "labels")}
	return pod
}

// restricted is a namespace in which only pods of the restricted standard may be.
func restricted(t *testing.T, cluster *kubetest.Cluster) string {
	t.Helper()
	namespace := cluster.Namespace(t)
	labels := object{"metadata": object{"labels": object{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	}}}
	code, said, err := cluster.Do(t.Context(), http.MethodPatch, "/api/v1/namespaces/"+namespace, labels)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, "%s", said)
	return namespace
}

// Everything that can be applied is accepted by a real API server, strictly and without a warning, and its
// pods are admitted where only restricted ones are.
func TestKubernetes_ServerSideDryRun(t *testing.T) {
	cluster := kubetest.Shared(t)
	server := newAPIServer(t, cluster)
	safe := restricted(t, cluster)
	installPodMonitor(t, cluster)
	for _, layer := range append([]string{withComponents(t)}, layers...) {
		if !filepath.IsAbs(layer) {
			layer = filepath.Join(kubernetesDir, layer)
		}
		rendered := render(t, layer)
		require.NoError(t, cluster.CreateNamespace(t.Context(), find(t, rendered, "StatefulSet").metadata("namespace")))
		for _, o := range rendered {
			got := server.apply(t, o)
			require.True(t, got.accepted(), "%s: %s %s: %d %s", layer, o.kind(), o.metadata("name"), got.code, got.message)
			require.Empty(t, got.warnings, "%s: %s", layer, o.kind())
		}
		got := server.create(t, find(t, rendered, "StatefulSet").pod(safe))
		require.True(t, got.accepted(), "%s: %d %s", layer, got.code, got.message)
		require.Empty(t, got.warnings, "%s", layer)
	}
}

// withComponents is the production overlay with the components that it names and does not use.
func withComponents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(kubernetesDir)))
	path := filepath.Join(dir, "overlays", "production", "kustomization.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	used := strings.Replace(string(text), "# components: [", "components: [../../components/pod-monitor, ", 1)
	require.NotEqual(t, string(text), used)
	require.NoError(t, os.WriteFile(path, []byte(used), 0o600))
	layer := filepath.Dir(path)
	rendered := render(t, layer)
	require.Contains(t, fmt.Sprint(rendered), "RestartAllContainers")
	find(t, rendered, "PodMonitor")
	return layer
}

// installPodMonitor installs what the Prometheus operator defines, as far as it is used here: the server
// refuses every other field.
func installPodMonitor(t *testing.T, cluster *kubetest.Cluster) {
	t.Helper()
	of := func(kind string, more object) object { more["type"] = kind; return more }
	text := of("string", object{})
	endpoint := of("object", object{"properties": object{
		"port":     text,
		"interval": of("string", object{"pattern": `^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$`}),
	}})
	selector := of("object", object{"properties": object{
		"matchLabels": of("object", object{"additionalProperties": text}),
	}})
	spec := of("object", object{"required": []string{"selector"}, "properties": object{
		"selector": selector, "podMetricsEndpoints": of("array", object{"items": endpoint}),
	}})
	schema := of("object", object{"required": []string{"spec"}, "properties": object{"spec": spec}})
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	code, said, err := cluster.Do(t.Context(), http.MethodPost, definitions, object{
		"metadata": object{"name": "podmonitors.monitoring.coreos.com"},
		"spec": object{
			"group": "monitoring.coreos.com", "scope": "Namespaced",
			"names": object{"kind": "PodMonitor", "plural": "podmonitors", "singular": "podmonitor"},
			"versions": []object{{
				"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": schema},
			}},
		},
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, code, "%s", said)
	require.Eventually(t, func() bool { // until it is served
		code, said, err = cluster.Do(t.Context(), http.MethodGet, "/apis/monitoring.coreos.com/v1/podmonitors", nil)
		return err == nil && code == http.StatusOK
	}, 30*time.Second, 50*time.Millisecond, "%d %s", &code, &said)
}

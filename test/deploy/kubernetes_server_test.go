package deploy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// plurals are the kinds as they stand in a path.
var plurals = map[string]string{
	"ConfigMap": "configmaps", "Lease": "leases", "Namespace": "namespaces", "NetworkPolicy": "networkpolicies", "Pod": "pods",
	"PodDisruptionBudget": "poddisruptionbudgets", "PodMonitor": "podmonitors", "Role": "roles", "RoleBinding": "rolebindings", "Service": "services",
	"ServiceAccount": "serviceaccounts", "StatefulSet": "statefulsets",
}

// apply is `kubectl apply --server-side --dry-run=server --validate=strict`, without a warning.
func (o object) apply(t *testing.T, cluster *kubetest.Cluster, layer string) {
	t.Helper()
	path := "/" + o.metadata("name") + "?fieldManager=test&force=true&"
	o.send(t, cluster, layer, http.MethodPatch, path, "application/apply-patch+yaml")
}

// create is the same with `kubectl create`, which admits pods.
func (o object) create(t *testing.T, cluster *kubetest.Cluster, layer string) {
	t.Helper()
	o.send(t, cluster, layer, http.MethodPost, "?", "application/json")
}

func (o object) send(t *testing.T, cluster *kubetest.Cluster, layer, method, query, contentType string) {
	t.Helper()
	body, err := json.Marshal(o)
	require.NoError(t, err)
	path := o.path(t) + query + "dryRun=All&fieldValidation=Strict"
	resp, said, err := cluster.Send(t.Context(), method, path, contentType, body)
	require.NoError(t, err)
	require.Contains(t, []int{200, 201}, resp.StatusCode, "%s: %s %s: %s", layer, o.kind(),
		o.metadata("name"), said)
	require.Empty(t, resp.Header.Values("Warning"), "%s: %s", layer, o.kind())
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
	pod["metadata"] = object{"name": o.metadata("name") + "-0", "namespace": namespace,
		"labels": o.at("spec", "template", "metadata", "labels")}
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
	safe := restricted(t, cluster)
	installPodMonitor(t, cluster)
	for _, layer := range append([]string{withComponents(t)}, layers...) {
		if !filepath.IsAbs(layer) {
			layer = filepath.Join(kubernetesDir, layer)
		}
		rendered := render(t, layer)
		require.NoError(t, cluster.CreateNamespace(t.Context(),
			find(t, rendered, "StatefulSet").metadata("namespace")))
		for _, o := range rendered {
			o.apply(t, cluster, layer)
		}
		find(t, rendered, "StatefulSet").pod(safe).create(t, cluster, layer)
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

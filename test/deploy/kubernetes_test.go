package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
	"github.com/serf-sbr/serf-sbr/test/buildcache"
)

const kubernetesDir = "kubernetes"

// layers are the kustomizations that users may apply.
var layers = []string{"base/sidecar", "base/node", "overlays/production"}

// render is what `kubectl apply -k` would send, one object each.
func render(t *testing.T, dir string) (all []object) {
	t.Helper()
	out, err := runProgram(t, buildcache.Kustomize, ".", "build", dir)
	require.NoError(t, err, "%s", out)
	documents := yaml.NewDecoder(bytes.NewReader([]byte(out)))
	for {
		var o object
		if err := documents.Decode(&o); err != nil {
			require.ErrorContains(t, err, "EOF")
			require.NotEmpty(t, all)
			return all
		}
		all = append(all, o)
	}
}

// object is one, as it was rendered.
type object map[string]any

func (o object) kind() string { return o["kind"].(string) }

func (o object) metadata(key string) string {
	value, _ := o["metadata"].(object)[key].(string)
	return value
}

// at follows keys inward.
func (o object) at(keys ...string) any {
	var value any = o
	for _, key := range keys {
		value = value.(object)[key]
	}
	return value
}

func find(t *testing.T, all []object, kind string) object {
	t.Helper()
	i := slices.IndexFunc(all, func(o object) bool { return o.kind() == kind })
	require.GreaterOrEqual(t, i, 0, "no %s", kind)
	return all[i]
}

func rightsOf(t *testing.T, namespace string) string {
	t.Helper()
	o := manifest.DefaultOptions()
	o.System, o.Namespace, o.ServiceAccount = "serf", namespace, "serf"
	var text bytes.Buffer
	require.NoError(t, manifest.Write(&text, o))
	return text.String()
}

// The rights are those that `sbr manifests` prints, in every namespace.
func TestKubernetes_RightsAreThoseOfManifests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(kubernetesDir, "base", "common", "rights.yaml"))
	require.NoError(t, err)
	require.Equal(t, rightsOf(t, "serf"), string(text),
		"sbr manifests --system serf -n serf --service-account serf")
	for _, layer := range layers {
		rendered := render(t, filepath.Join(kubernetesDir, layer))
		namespace := find(t, rendered, "StatefulSet").metadata("namespace")
		documents := yaml.NewDecoder(bytes.NewReader([]byte(rightsOf(t, namespace))))
		for range 3 {
			var want object
			require.NoError(t, documents.Decode(&want))
			got := find(t, rendered, want.kind())
			delete(got["metadata"].(object), "labels")
			require.Equal(t, want, got, "%s", layer)
		}
		account := find(t, rendered, "ServiceAccount")
		require.Equal(t, account.metadata("name"),
			find(t, rendered, "StatefulSet").at("spec", "template", "spec", "serviceAccountName"))
	}
}

// Each sbr.yaml is valid, gives no warning, and asks for a majority of the replicas that it comes with.
func TestKubernetes_ConfigurationFits(t *testing.T) {
	for _, layer := range layers {
		rendered := render(t, filepath.Join(kubernetesDir, layer))
		set, files := find(t, rendered, "StatefulSet"), find(t, rendered, "ConfigMap")
		f, err := config.Parse("sbr.yaml", []byte(files.at("data", "sbr.yaml").(string)))
		require.NoError(t, err, "%s", layer)
		replicas := set.at("spec", "replicas").(int)
		require.Empty(t, f.Warnings(replicas), "%s", layer)
		require.Equal(t, replicas/2+1, f.SplitBrainResolver.MinMembers, "%s", layer)
		require.Equal(t, config.ImplementationKubernetes, f.SplitBrainResolver.LeaseMajority.LeaseImplementation)
		require.Equal(t, []any{f.LeaseName()},
			find(t, rendered, "Role").at("rules").([]any)[0].(object)["resourceNames"], "%s", layer)
		mounted := false
		for _, v := range set.at("spec", "template", "spec", "volumes").([]any) {
			if source, ok := v.(object)["configMap"].(object); ok {
				mounted = mounted || source["name"] == files.metadata("name")
			}
		}
		require.True(t, mounted, "%s: the pods mount the generated name %s", layer, files.metadata("name"))
	}
}

// The API server gets the token into the container of sbr and into no other.
func TestKubernetes_OnlySbrHasTheToken(t *testing.T) {
	for _, layer := range layers {
		spec := find(t, render(t, filepath.Join(kubernetesDir, layer)), "StatefulSet").at("spec", "template",
			"spec").(object)
		require.Equal(t, false, spec["automountServiceAccountToken"])
		with := map[string]bool{}
		for _, c := range containers(spec) {
			for _, m := range c["volumeMounts"].([]any) {
				with[c["name"].(string)] = with[c["name"].(string)] || m.(object)["name"] == "token"
			}
		}
		delete(with, "application")
		for name, has := range with {
			require.Equal(t, name == "sbr", has, "%s: %s", layer, name)
		}
	}
}

// containers are all of a pod; those without mounts get an empty list.
func containers(spec object) (all []object) {
	for _, list := range []string{"initContainers", "containers"} {
		some, _ := spec[list].([]any)
		for _, c := range some {
			c := c.(object)
			if c["volumeMounts"] == nil {
				c["volumeMounts"] = []any{}
			}
			all = append(all, c)
		}
	}
	return all
}

// What sbr measures says which pod and which node it comes from: the variables are set before the variable
// that is made of them.
func TestKubernetes_TelemetryNamesThePod(t *testing.T) {
	for _, layer := range layers {
		spec := find(t, render(t, filepath.Join(kubernetesDir, layer)), "StatefulSet").at("spec", "template",
			"spec").(object)
		var attributes string
		known := make(map[string]string)
		for _, c := range containers(spec) {
			if c["name"] != "sbr" {
				continue
			}
			for _, v := range c["env"].([]any) {
				v := v.(object)
				if v["name"] == "OTEL_RESOURCE_ATTRIBUTES" {
					template := strings.NewReplacer("(", "{", ")", "}").Replace(v["value"].(string))
					attributes = os.Expand(template, func(name string) string { return known[name] })
				}
				if v["valueFrom"] != nil {
					known[v["name"].(string)] = v.at("valueFrom", "fieldRef", "fieldPath").(string)
				}
			}
		}
		const want = "k8s.pod.name=metadata.name,k8s.namespace.name=metadata.namespace,k8s.node.name=spec.nodeName"
		require.Equal(t, want, attributes, layer)
	}
}

// A collector in the namespace that scrapes can be sent to, at the ports that OTLP has.
func TestKubernetes_PolicyLetsTelemetryOut(t *testing.T) {
	for _, layer := range layers {
		policy := find(t, render(t, filepath.Join(kubernetesDir, layer)), "NetworkPolicy")
		scrapes := policy.at("spec", "ingress").([]any)[1].(object)["from"]
		require.True(t, slices.ContainsFunc(policy.at("spec", "egress").([]any), func(rule any) bool {
			ports := []any{object{"port": 4317, "protocol": "TCP"}, object{"port": 4318, "protocol": "TCP"}}
			return reflect.DeepEqual(rule, object{"to": scrapes, "ports": ports})
		}), layer)
	}
}

// The component's PodMonitor finds the pods of either base, in their namespace, and the port of sbr.
func TestKubernetes_PodMonitorFindsThePods(t *testing.T) {
	for _, layer := range layers {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(kubernetesDir)))
		path := filepath.Join(dir, layer, "kustomization.yaml")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text = append(text, "components: [../../components/pod-monitor]\n"...)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		rendered := render(t, filepath.Dir(path))
		set, monitor := find(t, rendered, "StatefulSet"), find(t, rendered, "PodMonitor")
		require.Equal(t, set.metadata("namespace"), monitor.metadata("namespace"), layer)
		require.Equal(t, set.at("spec", "selector"), monitor.at("spec", "selector"), layer)
		endpoint := monitor.at("spec", "podMetricsEndpoints").([]any)[0].(object)
		isScraped := func(port any) bool { return port.(object)["name"] == endpoint["port"] }
		require.True(t, slices.ContainsFunc(containers(set.at("spec", "template", "spec").(object)),
			func(c object) bool {
				ports, _ := c["ports"].([]any)
				return c["name"] == "sbr" && slices.ContainsFunc(ports, isScraped)
			}), layer)
	}
}

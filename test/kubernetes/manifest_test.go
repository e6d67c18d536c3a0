package kubernetes_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/demo"
	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes/manifest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// variants are what people will print, by the name of the golden file.
var variants = map[string]func(*manifest.Options){
	"native":                      func(*manifest.Options) {},
	"native-beforehand":           func(o *manifest.Options) { o.Create = false },
	"akka":                        func(o *manifest.Options) { o.API, o.CRD = kubernetes.Akka, true },
	"akka-create":                 func(o *manifest.Options) { o.API, o.CRD, o.PreMade = kubernetes.Akka, true, false },
	"pekko-installed-by-somebody": func(o *manifest.Options) { o.API, o.Create = kubernetes.Pekko, false },
}

func options(variant, namespace string) manifest.Options {
	o := manifest.DefaultOptions()
	o.System, o.Namespace, o.ServiceAccount = "payments", namespace, "member"
	variants[variant](&o)
	return o
}

type document struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name, Namespace string }
	text       string
}

func documents(t *testing.T, o manifest.Options) (all []document) {
	t.Helper()
	var text strings.Builder
	require.NoError(t, manifest.Write(&text, o))
	for part := range strings.SplitSeq(strings.TrimPrefix(text.String(), "---\n"), "---\n") {
		d := document{text: part}
		require.NoError(t, yaml.Unmarshal([]byte(part), &d))
		all = append(all, d)
	}
	return all
}

func (d document) path() string {
	path := "/apis/" + d.APIVersion
	if d.Metadata.Namespace != "" {
		path += "/namespaces/" + d.Metadata.Namespace
	}
	return path + "/" + strings.ToLower(d.Kind) + "s/" + d.Metadata.Name
}

// apply sends a document as it was printed, as kubectl apply does; the server refuses unknown fields. A kind
// that was defined just now may take a moment.
func (d document) apply(t *testing.T, cluster *kubetest.Cluster, options string) {
	t.Helper()
	const strict = "?fieldValidation=Strict&fieldManager=kubectl&force=true"
	var resp *http.Response
	var said []byte
	require.Eventually(t, func() (there bool) {
		var err error
		path := d.path() + strict + options
		resp, said, err = cluster.Send(t.Context(), http.MethodPatch, path, "application/apply-patch+yaml",
			[]byte(d.text))
		return err == nil && resp.StatusCode != http.StatusNotFound
	}, waitFor, 50*time.Millisecond, "%s: %s", d.path(), &said)
	require.Contains(t, []int{200, 201}, resp.StatusCode, "%s: %s", d.path(), said)
}

// upstream is the CustomResourceDefinition that comes with Akka and Pekko: no defaults, no format.
func upstream(t *testing.T, cluster *kubetest.Cluster, group string) {
	t.Helper()
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	resp, said, err := cluster.Send(t.Context(), http.MethodPost, definitions, "application/json",
		[]byte(strings.ReplaceAll(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "leases.GROUP"},
		"spec": {"group": "GROUP", "scope": "Namespaced",
			"names": {"kind": "Lease", "listKind": "LeaseList", "singular": "lease", "plural": "leases"},
			"versions": [{"name": "v1", "storage": true, "served": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
				"spec": {"type": "object", "properties": {"owner": {"type": "string"}, "version": {"type": "string"}, "time": {"type": "integer"}}}}}}}]}}`,
			"GROUP", group)))
	require.NoError(t, err)
	require.Contains(t, []int{201, 409}, resp.StatusCode, "%s", said)
}

// TestReal_WhatIsPrintedIsEnough applies each variant to a real API server, first in a dry run, and then lets
// exactly that service account pass the preflight, hold the lease and release it.
func TestReal_WhatIsPrintedIsEnough(t *testing.T) {
	cluster := kubetest.Shared(t)
	for name := range variants {
		t.Run(name, func(t *testing.T) {
			o := options(name, cluster.Namespace(t))
			if o.API.Custom() && !o.CRD {
				upstream(t, cluster, o.API.Group())
			}
			for _, d := range documents(t, o) {
				d.apply(t, cluster, "&dryRun=All")
				d.apply(t, cluster, "")
			}
			s := member(t, cluster, o)
			var err error
			require.Eventually(t, func() bool { err = s.Preflight(t.Context()); return err == nil }, waitFor,
				20*time.Millisecond, "%v", &err)
			l, err := lease.New(s, "a", lease.DefaultSettings(), lease.Options{})
			require.NoError(t, err)
			defer l.Close()
			out := linear.AnswerOf(l.Acquire(t.Context(), lease.Proposal{}))
			require.Equal(t, sbr.Granted, out.Kind, "%v", out)
			if o.CRD || !o.API.Custom() {
				appliedAgain(t, cluster, o, l)
			}
			require.NoError(t, l.Release(t.Context()))
			onlyThisLease(t, cluster, o)
		})
	}
}

func member(t *testing.T, cluster *kubetest.Cluster, o manifest.Options) *kubernetes.Store {
	t.Helper()
	kubeconfig, err := cluster.AccountKubeconfig(t.Context(), o.Namespace, o.ServiceAccount)
	require.NoError(t, err)
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.API, cfg.RequestTimeout = kubeconfig, o.Namespace, o.API, 20*time.Second
	cfg.Name, err = kubernetes.LeaseName(o.System, o.Name)
	require.NoError(t, err)
	return openStore(t, cfg)
}

// appliedAgain does so in both ways that kubectl has, while the lease is held.
func appliedAgain(t *testing.T, cluster *kubetest.Cluster, o manifest.Options, l *lease.Lease) {
	t.Helper()
	for _, d := range documents(t, o) {
		d.apply(t, cluster, "")
		var merge any
		require.NoError(t, yaml.Unmarshal([]byte(d.text), &merge))
		code, said, err := cluster.Do(t.Context(), http.MethodPatch, d.path(), merge)
		require.NoError(t, err)
		require.Equal(t, 200, code, "%s", said)
	}
	r, err := l.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "a", r.Holder)
	require.NotEmpty(t, r.Nonce)
	require.True(t, l.Check())
}

// onlyThisLease asks for another lease.
func onlyThisLease(t *testing.T, cluster *kubetest.Cluster, o manifest.Options) {
	t.Helper()
	o.Name = "another"
	s := member(t, cluster, o)
	_, err := s.Read(t.Context())
	require.ErrorContains(t, err, "cannot get")
	_, err = s.Write(t.Context(), lease.Record{Holder: "a"}, "")
	require.ErrorIs(t, err, lease.ErrRefused)
}

// The demonstration can keep its lease in a real kube-apiserver, with credentials for nothing but that lease.
// Its Events tell what happened.
func TestDemo_RealAPIServer(t *testing.T) {
	cluster := kubetest.Shared(t)
	opt := demo.DefaultOptions()
	opt.Namespace = cluster.Namespace(t)
	var err error
	opt.Kubeconfig, err = cluster.LeastPrivilegeKubeconfig(t.Context(), opt.Namespace, "demo-sbr")
	require.NoError(t, err)
	opt.StableAfter = 2 * time.Second
	w := realWorld{cluster: cluster, api: kubernetes.Native, namespace: opt.Namespace}
	path := w.leases() + "/demo-sbr"
	// as sbr manifests does
	w.do(t, http.MethodPost, w.leases(), object{"metadata": object{"name": "demo-sbr"}}, 201)
	res, err := demo.Run(t.Context(), opt, nil)
	require.NoError(t, err)
	require.True(t, res.Passed)
	require.NotEmpty(t, res.Survivors)
	require.Equal(t, uint64(1), res.Verdict.Token)

	told := make(map[string]int)
	for _, e := range described(t, cluster, w.do(t, http.MethodGet, path, nil, 200)) {
		told[e[0]]++
		t.Log(e)
	}
	down := len(res.Verdict.Down)
	require.Equal(t, map[string]int{"Suspended": len(res.Survivors) + down, "Verdict": 1, "Downed": down}, told)
}

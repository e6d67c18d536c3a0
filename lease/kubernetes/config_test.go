package kubernetes_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func TestConfig_Validate(t *testing.T) {
	require.NoError(t, testConfig().Validate())
	wrong := kubernetes.Config{Name: "Payments_SBR", Namespace: "Team A"}
	err := wrong.Validate()
	require.ErrorContains(t, err, `"Payments_SBR" cannot be the name of a lease`)
	require.ErrorContains(t, err, `(for example "payments-sbr")`)
	require.ErrorContains(t, err, `"Team A" cannot be a namespace`)
	require.ErrorContains(t, err, "request timeout")
	require.Len(t, strings.Split(err.Error(), "\n"), 3)

	_, err = kubernetes.New(kubernetes.DefaultConfig())
	require.ErrorContains(t, err, "name of the lease is empty")
	_, err = kubernetes.NewForConfig(nil, kubernetes.DefaultConfig())
	require.ErrorContains(t, err, "name of the lease is empty")
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: one, context: {cluster: c, user: u, namespace: from-one}}
- {name: two, context: {cluster: c, user: u, namespace: from-two}}
- {name: none, context: {cluster: c, user: u}}
`

func TestNew_Namespace(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	for _, c := range []struct{ context, namespace, want string }{
		{"", "", "from-one/payments-sbr"},
		{"two", "", "from-two/payments-sbr"},
		{"none", "", "default/payments-sbr"},
		{"", "set", "set/payments-sbr"},
	} {
		cfg := testConfig()
		cfg.Kubeconfig, cfg.Context, cfg.Namespace = path, c.context, c.namespace
		s, err := kubernetes.New(cfg)
		require.NoError(t, err)
		require.Equal(t, c.want, s.String())

		cfg.Kubeconfig = ""
		t.Setenv("KUBECONFIG", path)
		s, err = kubernetes.New(cfg)
		require.NoError(t, err)
		require.Equal(t, c.want, s.String())
	}
}

func TestNew_NoCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	absent := filepath.Join(t.TempDir(), "absent")
	t.Setenv("KUBECONFIG", absent)
	_, err := kubernetes.New(testConfig())
	require.EqualError(t, err, "kubernetes: this is no pod, and there is no kubeconfig "+absent+
		": set lease.kubernetes.kubeconfig or KUBECONFIG")

	cfg := testConfig()
	cfg.Kubeconfig = filepath.Join(t.TempDir(), "absent")
	_, err = kubernetes.New(cfg)
	require.ErrorContains(t, err, "absent")

	cfg.Kubeconfig = filepath.Join(t.TempDir(), "junk")
	require.NoError(t, os.WriteFile(cfg.Kubeconfig, []byte("junk"), 0o600))
	_, err = kubernetes.New(cfg)
	require.EqualError(t, err, `kubernetes: error loading config file "`+cfg.Kubeconfig+`": it is no kubeconfig`)

	cfg.Kubeconfig = ""
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err = kubernetes.New(cfg)
	require.ErrorContains(t, err, "service account of the pod")
}

func TestName(t *testing.T) {
	require.Equal(t, "payments-sbr", kubernetes.Name("payments"))
	require.Equal(t, "team-1-payments-sbr", kubernetes.Name("Team_1.Payments"))
	require.Equal(t, "sbr", kubernetes.Name(""))
	require.Equal(t, "sbr", kubernetes.Name("支払い"))
	long := kubernetes.Name(strings.Repeat("x", 80))
	require.Len(t, long, 63)
	require.NotEqual(t, long, kubernetes.Name(strings.Repeat("x", 81)))
}

func TestLeaseName(t *testing.T) {
	for in, want := range map[string]string{
		"my.lease_name":          "my-lease-name",
		"-my-lease-":             "my-lease",
		"my@lease!name":          "myleasename",
		"Ünïcödé":                "unicode",
		"ﬁle①":                   "file1",
		strings.Repeat("a", 63):  strings.Repeat("a", 63),
		strings.Repeat("a", 100): strings.Repeat("a", 54) + "-falfs6ei",
		strings.Repeat("A", 100): strings.Repeat("a", 54) + "-3awgvijt",
		strings.Repeat("a", 50) + "-----" + strings.Repeat("b", 50): strings.Repeat("a", 50) + "-HASH",
	} {
		got, err := kubernetes.LeaseName("", in)
		require.NoError(t, err, in)
		if cut, hashed := strings.CutSuffix(want, "HASH"); hashed {
			require.Regexp(t, "^"+cut+"[a-z2-7]{8}$", got, in)
			continue
		}
		require.Equal(t, want, got, in)
	}
	for _, name := range []string{"---", "日本", "._"} {
		_, err := kubernetes.LeaseName("", name)
		require.ErrorContains(t, err, "at least one letter", name)
	}
}

func FuzzLeaseName(f *testing.F) {
	f.Add("my.lease_name")
	f.Add(strings.Repeat("é", 70))
	f.Fuzz(func(t *testing.T, name string) {
		got, err := kubernetes.LeaseName("", name)
		if err != nil {
			return
		}
		require.Regexp(t, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", got)
		require.LessOrEqual(t, len(got), 63)
		again, err := kubernetes.LeaseName("", got)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func TestFactory(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	t.Setenv("KUBECONFIG", path)
	var log bytes.Buffer
	open := kubernetes.Factory(slog.New(slog.NewTextHandler(&log, nil)))

	var set yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte("{namespace: team-b, context: two}"), &set))
	for want, spec := range map[string]lease.Spec{
		"from-one/payments-sbr": {System: "payments"},
		"from-one/my-lease":     {System: "payments", Name: "My_Lease"},
		"team-b/payments-sbr":   {System: "payments", Decode: set.Decode},
	} {
		s, err := open(t.Context(), spec)
		require.NoError(t, err)
		require.Equal(t, want, s.(*kubernetes.Store).String())
	}
	require.NoError(t, yaml.Unmarshal([]byte("{api: pekko, context: two}"), &set))
	s, err := open(t.Context(), lease.Spec{System: "payments", Decode: set.Decode})
	require.NoError(t, err)
	require.Equal(t, kubernetes.Pekko, s.(*kubernetes.Store).API())
	require.NoError(t, yaml.Unmarshal([]byte("{api: etcd}"), &set))
	_, err = open(t.Context(), lease.Spec{System: "payments", Decode: set.Decode})
	require.ErrorContains(t, err, `"etcd" is no API: use native, akka or pekko`)
	require.Contains(t, log.String(), "lease-name=My_Lease lease=from-one/my-lease")

	_, err = open(t.Context(), lease.Spec{Name: "__"})
	require.ErrorContains(t, err, "lease-name")
	_, err = open(t.Context(), lease.Spec{Decode: func(any) error { return errors.New("line 3") }})
	require.ErrorContains(t, err, "line 3")
}

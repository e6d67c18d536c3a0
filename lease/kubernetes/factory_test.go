package kubernetes_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

func TestFactory(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	t.Setenv("KUBECONFIG", path)
	var log bytes.Buffer
	registry := lease.NewRegistry()
	registry.Register("kubernetes", kubernetes.Factory(slog.New(slog.NewTextHandler(&log, nil))))

	var set yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte("{namespace: team-b, context: two}"), &set))
	for want, spec := range map[string]lease.Spec{
		"from-one/payments-sbr": {System: "payments"},
		"from-one/my-lease":     {System: "payments", Name: "My_Lease"},
		"team-b/payments-sbr":   {System: "payments", Decode: set.Decode},
	} {
		s, err := registry.Open(t.Context(), "kubernetes", spec)
		require.NoError(t, err)
		require.Equal(t, want, s.(*kubernetes.Store).String())
	}
	require.NoError(t, yaml.Unmarshal([]byte("{api: pekko, context: two}"), &set))
	s, err := registry.Open(t.Context(), "kubernetes", lease.Spec{System: "payments", Decode: set.Decode})
	require.NoError(t, err)
	require.Equal(t, kubernetes.Pekko, s.(*kubernetes.Store).API())
	require.NoError(t, yaml.Unmarshal([]byte("{api: etcd}"), &set))
	_, err = registry.Open(t.Context(), "kubernetes", lease.Spec{System: "payments", Decode: set.Decode})
	require.ErrorContains(t, err, `"etcd" is no API: use native, akka or pekko`)
	require.Contains(t, log.String(), "lease-name=My_Lease lease=from-one/my-lease")

	_, err = registry.Open(t.Context(), "kubernetes", lease.Spec{Name: "__"})
	require.ErrorContains(t, err, "lease-name")
	_, err = registry.Open(t.Context(), "kubernetes", lease.Spec{Decode: func(any) error { return errors.New("line 3") }})
	require.ErrorContains(t, err, "line 3")
}

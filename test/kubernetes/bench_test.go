package kubernetes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

func BenchmarkReal(b *testing.B) {
	cluster := kubetest.Shared(b)
	s := openStore(b, realWorld{namespace: cluster.Namespace(b)}.config(cluster.AdminKubeconfig()))
	present, err := s.Write(b.Context(), record("a", 1), "")
	require.NoError(b, err)
	b.Run("Read", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Read(b.Context())
			require.NoError(b, err)
		}
	})
	b.Run("Write", func(b *testing.B) {
		for b.Loop() {
			present, err = s.Write(b.Context(), record("a", 2), present)
			require.NoError(b, err)
		}
	})
	b.Run("WriteLarge", func(b *testing.B) {
		large := record("a", 3)
		large.Verdict.Reason = randomText(140 << 10)
		for b.Loop() {
			present, err = s.Write(b.Context(), large, present)
			require.NoError(b, err)
		}
	})
}

package agent

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
	_ "github.com/serf-sbr/serf-sbr/lease/file"
	_ "github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

// Whoever asks in the very first moment hears that the member is starting: it is in no cluster yet.
func TestHealth_NotReadyBeforeTheStart(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	f, err := config.Parse("sbr.yaml", []byte("system: s\nlease: {kubernetes: {namespace: shop}}\nserf: {rpc: '127.0.0.1:1', probe: '127.0.0.1:0'}\nhttp: {listen: ''}"))
	require.NoError(t, err)
	a := &agent{file: f, log: slog.New(slog.DiscardHandler)}
	require.NoError(t, a.configure(&Options{Exit: func(int) {}}))
	require.NoError(t, a.open(context.Background()))
	defer a.close()
	h := source{a}.Health()
	require.True(t, h.Live.OK)
	require.False(t, h.Ready.OK)
	require.Equal(t, "starting: waiting for the Serf node and the lease", h.Ready.Reason)
}

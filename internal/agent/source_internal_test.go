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

// From the first moment on the health says that the member is starting, and what it waits for: it is in no
// cluster yet.
func TestHealth_NotReadyBeforeTheStart(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"beside an agent":   {"serf: {rpc: '127.0.0.1:1', probe: '127.0.0.1:0'}", "waiting for the Serf agent at 127.0.0.1:1"},
		"a node of its own": {"serf: {node: n1, bind: '127.0.0.1:0'}", "waiting for the lease s-sbr"},
		"no lease": {
			"serf: {node: n1, bind: '127.0.0.1:0'}\nsplit-brain-resolver: {active-strategy: keep-majority}",
			"entering the cluster",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("STATE_DIRECTORY", t.TempDir())
			t.Setenv("KUBECONFIG", "")
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			yaml := "system: s\nlease: {kubernetes: {namespace: shop}}\nhttp: {listen: ''}\n" + c.yaml
			f, err := config.Parse("sbr.yaml", []byte(yaml))
			require.NoError(t, err)
			a := &agent{file: f, log: slog.New(slog.DiscardHandler)}
			require.NoError(t, a.configure(&Options{Exit: func(int) {}}))
			require.NoError(t, a.open(context.Background()))
			defer a.close()
			h := source{a}.Health()
			require.True(t, h.Live.OK)
			require.False(t, h.Ready.OK)
			require.Equal(t, "starting: "+c.want, h.Ready.Reason)
		})
	}
}

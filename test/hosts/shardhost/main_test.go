package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{
		"--config", "sbr.yaml", "--node", "n1", "--bind", "10.0.0.1:7946", "--join", "10.0.0.2:7946,10.0.0.3:7946", "--ledger", "http://l", "--leases",
	}, new(bytes.Buffer))
	require.NoError(t, err)
	require.Equal(t, options{
		config: "sbr.yaml", node: "n1", bind: "10.0.0.1:7946", listen: "127.0.0.1:7380", join: []string{"10.0.0.2:7946", "10.0.0.3:7946"},
		ledger: "http://l", kind: "work", shards: 8, leases: true, every: 10 * time.Millisecond,
	}, o)
}

func TestRun_SaysAllThatIsMissing(t *testing.T) {
	var messages bytes.Buffer
	require.Equal(t, exitBad, run([]string{"--shards", "0"}, nil, &messages))
	for _, want := range []string{"--config", "--node", "--bind", "--ledger", "--shards"} {
		require.Contains(t, messages.String(), want)
	}
	require.Equal(t, exitBad, run([]string{"--nonsense"}, nil, &messages))
}

func TestRun_WithoutAConfiguration(t *testing.T) {
	var messages bytes.Buffer
	missing := filepath.Join(t.TempDir(), "sbr.yaml")
	require.Equal(t, exitFailed, run([]string{"--config", missing, "--node", "n", "--bind", "127.0.0.1:0", "--ledger", "http://l"}, make(chan os.Signal), &messages))
	require.Contains(t, messages.String(), missing)
}

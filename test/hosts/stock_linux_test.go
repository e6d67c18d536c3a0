package hosts_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

// Without a resolver both sides of a cut stay, each convinced that the other is dead: that is what all this
// is for, and it shows that the lab cuts what Serf sees.
func TestStockAgents_BothSidesStay(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	l, err := lab.New(t.Context(), lab.Options{Hosts: five})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	serf, err := serftest.Ensure(t.Context(), serftest.Module, os.Stderr)
	require.NoError(t, err)
	for _, name := range five {
		h := l.Host(name)
		o := serftest.Options{Node: name, Bind: h.At(7946), RPC: "127.0.0.1:7373", RetryJoin: []string{l.Host("n1").At(7946)}, Profile: "local"}
		args, err := o.CommandLine(l.Dir())
		require.NoError(t, err)
		_, err = h.Start(process.Command{Name: "serf", Program: serf, Args: args})
		require.NoError(t, err)
	}
	alive := func(name string) string {
		said, _ := l.Host(name).Output(t.Context(), serf, "members", "-status=alive")
		var names []string
		for line := range strings.Lines(said) {
			names = append(names, strings.Fields(line)[0])
		}
		return strings.Join(names, " ")
	}
	see := func(want map[string]string) func() bool {
		return func() bool {
			for name, others := range want {
				if len(strings.Fields(alive(name))) != len(strings.Fields(others)) {
					return false
				}
			}
			return true
		}
	}
	require.Eventually(t, see(map[string]string{"n1": "n1 n2 n3 n4 n5", "n5": "n1 n2 n3 n4 n5"}), time.Minute, 100*time.Millisecond)
	require.NoError(t, l.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
	require.Eventually(t, see(map[string]string{"n1": "n1 n2 n3", "n3": "n1 n2 n3", "n4": "n4 n5", "n5": "n4 n5"}), 2*time.Minute, 100*time.Millisecond)
	require.NoError(t, l.Heal())
	require.Eventually(t, see(map[string]string{"n1": "n1 n2 n3 n4 n5", "n5": "n1 n2 n3 n4 n5"}), 2*time.Minute, 100*time.Millisecond)
}

package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

func tags(t *testing.T, a *serftest.Agent) map[string]string {
	t.Helper()
	c, err := a.Dial()
	require.NoError(t, err)
	defer c.Close()
	members, err := c.Members()
	require.NoError(t, err)
	require.Len(t, members, 1)
	return members[0].Tags
}

// Beside a stock agent: its tags say which incarnation it is. A restart in peace begins a new one, unless the
// tags are to be kept.
func TestRun_BesideAStockAgent(t *testing.T) {
	serftest.EachFlavour(t, func(t *testing.T, flavour serftest.Flavour) {
		dir := home(t)
		a := serftest.Start(t, serftest.Options{Flavour: flavour, Node: "n1", Tags: map[string]string{"role": "web"}})
		beside := "system: payments\nserf: {rpc: '" + a.RPC() + "', probe: '127.0.0.1:0', rpc-timeout: 5s}\nhttp: {listen: '127.0.0.1:0'}\n"
		keeping := "system: payments\nserf: {rpc: '" + a.RPC() + "', probe: '127.0.0.1:0', rpc-timeout: 5s, leave-on-terminate: off}\nhttp: {listen: '127.0.0.1:0'}\n"

		first := start(t, beside)
		first.ready()
		require.Equal(t, "n1#"+tags(t, a)[downing.TagUID], first.view().Incarnation)
		require.NotContains(t, first.log.String(), "level=ERROR")
		was := first.view().Incarnation
		first.leaves()
		require.Equal(t, map[string]string{"role": "web", downing.TagUID: ""}, tags(t, a), "what is the operator's stays, and an empty uid says that the resolver resigned")

		second := start(t, keeping)
		second.ready()
		require.NotEqual(t, was, second.view().Incarnation)
		was = second.view().Incarnation
		second.leave()
		_, _ = second.ends()

		third := start(t, beside)
		third.ready()
		require.Equal(t, was, third.view().Incarnation, "it goes on")

		decide(t, dir, []string{"n9#u"}, []string{was})
		status, err := third.ends()
		require.NoError(t, err)
		require.Equal(t, downing.ExitDowned, status)
		_, _ = a.Wait(t.Context()) // the stock agent has left, and ended itself
	})
}

package downing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
)

// The agent restarts and forgets its tags for a moment: its member has not gone, so no side looks smaller or
// whole meanwhile.
func TestBeside_AgentRestart_IsNoDeparture(t *testing.T) {
	beside(t, nil, func(t *testing.T, b *besides) {
		b.bootAll(3)
		id := b.provider("n3").Status().Incarnation
		a := b.agents["n3"]
		a.halt()
		a.setSilent(true) // the RPC client connects later
		a.boot(nil, "n1")
		counted := func() bool {
			return slices.ContainsFunc(b.provider("n1").Status().Members, func(m downing.MemberStatus) bool { return m.Incarnation == id })
		}
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			require.True(t, counted(), "n1 does not count it any more")
		}
		a.setSilent(false)
		b.Whole(3)
		require.True(t, counted())
		require.Len(t, b.Up(), 3)
		require.Empty(t, b.Store.History())
	})
}

// reboot restarts an agent under the same name, without the tags that were set at run time, and lets it
// answer a second later.
func (b *besides) reboot(name string, join ...string) {
	a := b.agents[name]
	a.halt()
	a.setSilent(true)
	a.boot(nil, join...)
	time.Sleep(time.Second)
	a.setSilent(false)
}

// An agent that restarts and is told to join nobody knows nobody. Its member sees no cluster of one, and
// brings it back to the others, with its tags, also where nobody probes anybody.
func TestBeside_AgentRestartsAlone(t *testing.T) {
	for name, config := range map[string]func(string, *downing.Config){
		"with probes": nil, "without": func(_ string, c *downing.Config) { c.Probe.Neighbours = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, config, func(t *testing.T, b *besides) {
				b.bootAll(3)
				b.reboot("n3")
				time.Sleep(time.Second)
				require.Len(t, b.provider("n3").Status().Members, 3)
				time.Sleep(5 * time.Second)
				node, err := b.agents["n3"].answering()
				require.NoError(t, err)
				require.Len(t, node.Members(), 3)
				require.NotEmpty(t, node.LocalMember().Tags[downing.TagUID])
				b.Whole(3)
				require.Len(t, b.Up(), 3)
				require.Empty(t, b.Store.History())
			})
		})
	}
}

// An agent restarts in the middle of a partition: still exactly one side survives, and nobody alone is a
// side.
func TestBeside_AgentRestartsDuringAPartition(t *testing.T) {
	long(t)
	groups := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
	for name, tc := range map[string]struct {
		after time.Duration
		node  string
		join  []string
	}{
		"of the larger side, and joins it":   {5 * time.Second, "n3", []string{"n1"}},
		"of the larger side, and is alone":   {5 * time.Second, "n3", nil},
		"the leader's, late":                 {15 * time.Second, "n1", []string{"n2"}},
		"of the smaller side, and joins it":  {5 * time.Second, "n5", []string{"n4"}},
		"of the smaller side, and is alone":  {10 * time.Second, "n5", nil},
		"right with the cut, larger":         {0, "n2", []string{"n3"}},
		"right with the cut, smaller, alone": {0, "n4", nil},
	} {
		t.Run(name, func(t *testing.T) {
			beside(t, nil, func(t *testing.T, b *besides) {
				b.bootAll(5)
				require.NoError(t, b.Net.Partition(groups...))
				time.Sleep(tc.after)
				b.reboot(tc.node, tc.join...)
				b.Eventually(3*time.Minute, "more than one side is up", func() bool {
					return len(b.Up()) > 0 && len(b.Up()) < 4 && (subset(b.Up(), groups[0]) || subset(b.Up(), groups[1]))
				})
				time.Sleep(5 * time.Minute)
				b.Net.Heal()
				time.Sleep(time.Minute)
				up := b.Up()
				require.NotEmpty(t, up)
				require.True(t, subset(up, groups[0]) || subset(up, groups[1]), up)
				t.Log("up:", up)
			})
		})
	}
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

package simulator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

func format(t *testing.T, s simulator.Source) string {
	t.Helper()
	sc, err := s.Build(1)
	require.NoError(t, err)
	return string(scenario.Format(sc))
}

// What is set is a part of a file; nemeses come on top, in the order of their times.
func TestBuild_IsTheFile(t *testing.T) {
	part := `
name: everything
cluster:
  system: payments
  nodes: [{name: db1, roles: [db, old], zone: a}, {name: db2, roles: [db], zone: b}]
  settings: {db2: {stable-after: 9s}}
`
	s := simulator.New("x").Set(part).
		At(10*sec, simulator.Partition(simulator.Side("a"), simulator.Side("b"))).
		Set("cluster: {split-brain-resolver: {min-members: 2}}\nsteps: [{at: 7s, heal: true}]").
		At(5*sec, simulator.Crash("db2"), simulator.StoreDown(sec, "a")).
		Set("run-for: 180s\nexpect: {survivors: [], lease-holder: none}")
	require.Equal(t, strings.TrimLeft(strings.Replace(part, "  settings: ",
		"  split-brain-resolver: {min-members: 2}\n  settings: ", 1)+`steps:
  - {at: 5s, crash: db2}
  - {at: 5s, lease-store: down, nodes: [a], for: 1s}
  - {at: 7s, heal: true}
  - {at: 10s, partition: [[a], [b]]}
run-for: 180s
expect:
  survivors: []
  lease-holder: none
`, "\n"), format(t, s))
	require.Equal(t, "name: x\ncluster: {nodes: 5}\nrun-for: 300s\n", format(t, simulator.New("x")))
	require.Equal(t, "name: x\ncluster: {nodes: 2, detection: serf-wan}\nsteps:\n  - {at: 10s, pause: n1, for: 40s}\nrun-for: 350s\n",
		format(t, simulator.New("x").Set("cluster: {nodes: 2, detection: serf-wan}").At(10*sec,
			simulator.Pause("n1", 40*sec))), "the run ends well after the last step")
}

// The file that production runs with can be played as it is.
func TestBuild_ConfigIsSbrYaml(t *testing.T) {
	full, err := os.ReadFile(filepath.Join("..", "internal", "config", "testdata", "full.yaml"))
	require.NoError(t, err)
	require.Contains(t, format(t, simulator.New("x").Config(string(full))), "system: payments")

	s := simulator.New("x").Config(`
system: shop
split-brain-resolver: {stable-after: 9s}
lease: {heartbeat-timeout: 60s}
serf: {profile: wan}
http: {listen: ""}`).Set("cluster: {split-brain-resolver: {min-members: 2}}")
	require.Equal(t, strings.TrimLeft(`
name: x
cluster:
  system: shop
  nodes: 5
  split-brain-resolver: {stable-after: 9s, min-members: 2}
  lease: {heartbeat-timeout: 60s}
  detection: serf-wan
run-for: 300s
`, "\n"), format(t, s))
}

func TestBuild_NamesEveryMistakeAtOnce(t *testing.T) {
	_, err := simulator.New("wrong").
		Config("split-brain-resolver: {stable-aftr: 1s}").Config("system: x\ndowning-provider: none").Config(
		"system: x\nserf: {profile: lam}").
		Set("cluster: {nods: 3, lease: {heartbeat-timeout: 5}}").Set(
		"expect: {survivors: [n7]}\nrun-for: 60s\nsteps: [{crash: n1}]").
		At(-sec, simulator.Crash("n1")).
		At(sec, simulator.Crash("n11"), simulator.After(-sec, simulator.Heal()), simulator.Pause("n1", 0),
			simulator.StoreDown(-sec)).
		Build(1)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		"Config:1: split-brain-resolver.stable-aftr: unknown key; the nearest known key is stable-after",
		"Config: downing-provider: is \"none\": the simulator plays split-brain-resolver only",
		"Config: serf.profile: \"lam\" is unknown; the nearest is lan",
		"Set:1: cluster.nods: unknown key; the nearest known key is nodes",
		"Set:1: cluster.lease.heartbeat-timeout: expected a duration such as 20s, found the number 5: a unit is missing",
		"a nemesis waits for -1s: it must not be negative",
		"at -1s: steps[0].at: is -1s: that is before the start",
		"steps[1]: has no `at`: it must say when",
		`at 1s: steps[2].crash: no member is called "n11"; the nearest name is n1`,
		"at 1s: steps[4].for: is not set, or 0s: it must be more than 0s",
		"at 1s: steps[5].for: is -1s: it must not be negative",
		`expect.survivors[0]: no member is called "n7"`,
	} {
		require.Greater(t, len(lines), i, err)
		require.True(t, strings.HasPrefix(lines[i], `scenario "wrong": `+want), "%s\nis not\n%s", lines[i], want)
	}
	require.Len(t, lines, 12, err)
}

package simulator_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// Each method says what one key of a file says.
func TestBuild_IsTheFile(t *testing.T) {
	s := simulator.New("everything").System("payments").Members("db1", "db2", "web1", "web2").
		Role("db", "db1", "db2").Role("web", "web1", "web2").Role("old", "db1").Zone("a", "db1", "web1").Zone("b", "db2", "web2").
		Strategy("lease-majority").StableAfter(7*sec).MinorityDelay(6*sec).WhenLeaseUnknown("suspend").
		Resolver("down-all-when-unstable: off\nlease-majority: {role: db}").Lease("{heartbeat-timeout: 60s, file: {path: x}}").
		Detect(4*sec, sec, 2*sec).Network(time.Millisecond, 2*time.Millisecond).
		At(10*sec, simulator.Partition(simulator.Side("a"), simulator.Side("b"))).
		At(5*sec, simulator.Crash("db2"), simulator.StoreDown(sec, "a")).
		RunFor(3*time.Minute).
		ExpectSurvivors("db1", "web1").ExpectSurvivorsOneOf(simulator.Side("db1", "web1"), simulator.Side()).ExpectSurvivorCount(2).
		ExpectDown().ExpectLeaseHolder("none").ExpectResolvedWithin(time.Minute).ExpectDecision("db1", "down-all").ExpectDecision("db2", "none")
	require.Equal(t, strings.TrimLeft(`
name: everything
cluster:
  system: payments
  nodes:
    - {name: db1, roles: [db, old], zone: a}
    - {name: db2, roles: [db], zone: b}
    - {name: web1, roles: [web], zone: a}
    - {name: web2, roles: [web], zone: b}
  split-brain-resolver:
    stable-after: 7s
    down-all-when-unstable: off
    lease-majority: {acquire-lease-delay-for-minority: 6s, role: db, when-lease-unknown: suspend}
  lease: {heartbeat-timeout: 60s, file: {path: x}}
  detection: {after: 4s, spread: 1s, heal: 2s}
  network: {jitter: 2ms}
steps:
  - {at: 5s, crash: db2}
  - {at: 5s, lease-store: down, nodes: [a], for: 1s}
  - {at: 10s, partition: [[a], [b]]}
run-for: 180s
expect:
  survivors: [db1, web1]
  survivors-one-of: [[db1, web1], []]
  survivor-count: 2
  down: []
  lease-holder: none
  resolved-within: 60s
  decisions: {db1: down-all, db2: none}
`, "\n"), format(t, s))
	require.Equal(t, "name: x\ncluster: {nodes: 5}\nrun-for: 300s\n", format(t, simulator.New("x")))
	require.Equal(t, "name: x\ncluster: {nodes: 2, detection: serf-wan}\nsteps:\n  - {at: 10s, pause: n1, for: 40s}\nrun-for: 350s\n",
		format(t, simulator.New("x").Nodes(2).DetectAs("serf-wan").At(10*sec, simulator.Pause("n1", 40*sec))), "the run ends well after the last step")
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
http: {listen: ""}`).Resolver("min-members: 2")
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
		Config("split-brain-resolver: {stable-aftr: 1s}").Config("system: x\ndowning-provider: none").Config("system: x\nserf: {profile: lam}").
		Resolver("lease-majority: {rol: x}\nmin-members: many").Lease("heartbeat-timeout: 5").
		Role("db", "n9").Zone("a", "n1").Zone("b", "n1").
		At(-sec, simulator.Crash("n1")).
		At(sec, simulator.Crash("n11"), simulator.After(-sec, simulator.Heal()), simulator.Pause("n1", 0), simulator.StoreDown(-sec)).
		RunFor(time.Minute).ExpectSurvivors("n7").Build(1)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{
		"Config:1: split-brain-resolver.stable-aftr: unknown key; the nearest known key is stable-after",
		"Config: downing-provider: is \"none\": the simulator plays split-brain-resolver only",
		"Config: serf.profile: \"lam\" is unknown; the nearest is lan",
		"Resolver:1: lease-majority.rol: unknown key; the nearest known key is role",
		"Resolver:2: min-members: expected a whole number, found",
		"Lease:1: heartbeat-timeout: expected a duration such as 20s, found the number 5: a unit is missing",
		`role "db": no member is called "n9"`,
		`zone "b": n1 is already in zone "a"`,
		"a nemesis waits for -1s: it must not be negative",
		"at -1s: steps[0].at: is -1s: that is before the start",
		`at 1s: steps[1].crash: no member is called "n11"; the nearest name is n1`,
		"at 1s: steps[3].for: is not set, or 0s: it must be more than 0s",
		"at 1s: steps[4].for: is -1s: it must not be negative",
		`expect.survivors[0]: no member is called "n7"`,
	} {
		require.Greater(t, len(lines), i, err)
		require.True(t, strings.HasPrefix(lines[i], `scenario "wrong": `+want), "%s\nis not\n%s", lines[i], want)
	}
	require.Len(t, lines, 14, err)
}

func TestBuild_SaysWhatNoClusterIs(t *testing.T) {
	for want, s := range map[string]*simulator.Scenario{
		"cluster.nodes: are 0":                     simulator.New("x").Nodes(0),
		"cluster.nodes: are 1000000000":            simulator.New("x").Nodes(1_000_000_000),
		"cluster.nodes: are -1":                    simulator.New("x").Nodes(-1).At(sec, simulator.PartitionRandomly(), simulator.LoneNode()),
		`"a" is already the name of`:               simulator.New("x").Members("a", "a"),
		"active-strategy: \"keep\" is unknown":     simulator.New("x").Strategy("keep"),
		"has nothing to count from":                simulator.New("x").ExpectResolvedWithin(sec),
		"expect.decisions.n1: \"x\" is unknown":    simulator.New("x").ExpectDecision("n1", "x"),
		"is 301h0m0s: the run ends at 1h0m0s":      simulator.New("x").RunFor(time.Hour).At(301*time.Hour, simulator.Heal()),
		"cluster.detection: \"lan\" is unknown":    simulator.New("x").DetectAs("lan"),
		"has 0 actions":                            simulator.New("x").At(sec, func(p *simulator.Plan) { p.Do(scenario.Step{}) }),
		"partition[1]: is an empty group":          simulator.New("x").At(sec, simulator.Partition(simulator.Side("n1"), simulator.Side())),
		"when-lease-unknown: \"panic\" is unknown": simulator.New("x").WhenLeaseUnknown("panic"),
	} {
		_, err := s.Build(1)
		if want == "has 0 actions" {
			want = "does nothing: it needs one of"
		}
		require.ErrorContains(t, err, want)
	}
}

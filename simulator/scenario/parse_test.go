package scenario

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// contract is the example of the contract, every action once.
//
//go:embed testdata/contract.yaml
var contract string

func TestParse_Contract(t *testing.T) {
	s, err := Parse("x.yaml", []byte(contract))
	require.NoError(t, err)
	require.Equal(t, "three-two split", s.Name)
	require.EqualValues(t, 15*time.Second, s.Cluster.SplitBrainResolver.StableAfter)
	require.Len(t, s.Steps, 14)
	require.Equal(t, 10*time.Second, s.Steps[0].At.From)
	require.Equal(t, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}, *s.Steps[0].Partition)
	require.Equal(t, 800*time.Millisecond, *s.Steps[11].LeaseStore.Change.Slow)
	require.Equal(t, []string{"n1", "n2", "n3"}, *s.Expect.Survivors)
	require.Empty(t, s.Cluster.Detection.Profile)
}

func TestParse_Defaults(t *testing.T) {
	s, err := Parse("dir/lone wolf.yaml", []byte("run-for: 1m\nexpect: {survivors: []}"))
	require.NoError(t, err)
	require.Equal(t, "lone wolf", s.Name, "named after its file")
	require.Equal(t, 5, s.Cluster.Nodes.Count)
	require.Equal(t, "serf-lan", s.Cluster.Detection.Profile)
	require.NotNil(t, s.Expect.Survivors, "an empty list is not the same as none")
	require.Nil(t, s.Expect.Down)
}

func TestParse_NamesEachProblemWithItsPlace(t *testing.T) {
	step := func(s string) string { return "run-for: 60s\nsteps:\n  - {" + s + "}" }
	zones := func(s string) string {
		return "cluster: {nodes: [{name: a, zone: east}, {name: b, zone: west}]}\n" + step(s)
	}
	settings := func(s string) string { return "run-for: 60s\ncluster: {settings: " + s + "}" }
	for _, tc := range []struct{ name, in, want string }{
		{"truncated", "name: x\ncluster: {nodes: [", "x.yaml: not YAML or JSON"},
		{"empty", "", "x.yaml: the input is empty"},
		{"unknown key", "run-for: 1m\nclustr: {}", "x.yaml:2: clustr: unknown key; the nearest known key is cluster"},
		{"unknown key in a step", step("at: 1s, partion: [[n1]]"), "x.yaml:3: steps[0].partion: unknown key; the nearest known key is partition"},
		{"unknown key of the resolver", "run-for: 1m\ncluster:\n  split-brain-resolver:\n    stable-aftr: 1s",
			"x.yaml:4: cluster.split-brain-resolver.stable-aftr: unknown key; the nearest known key is stable-after"},
		{"invalid setting", "run-for: 1m\ncluster: {split-brain-resolver: {active-strategy: keep-majorty}}",
			`x.yaml:2: cluster.split-brain-resolver.active-strategy: "keep-majorty" is unknown; the nearest is keep-majority`},
		{"settings that contradict", "run-for: 1m\ncluster: {lease: {heartbeat-timeout: 10s, heartbeat-interval: 9s}}",
			"x.yaml:2: cluster.lease.heartbeat-interval: is 9s: it must be less than half of heartbeat-timeout (10s)"},
		{"heartbeats without end", "run-for: 1m\ncluster: {lease: {heartbeat-interval: 1ns}}",
			"x.yaml:2: cluster.lease.heartbeat-interval: is 1ns: the simulator plays nothing below 10ms"},
		{"no run-for", "name: x", "x.yaml: run-for: is not set, or 0s"},
		{"negative duration", "run-for: -1s", "x.yaml:1: run-for: is -1s: it must not be negative"},
		{"no duration", "run-for: NaN", `x.yaml:1: run-for: expected a duration such as 20s, found`},
		{"no number", "run-for: 1m\ncluster: {network: {loss: .nan}}", "x.yaml:2: cluster.network.loss: expected a number, found"},
		{"loss", "run-for: 1m\ncluster: {network: {loss: 1.5}}", "x.yaml:2: cluster.network.loss: is 1.5: it must be a number from 0 to 1"},
		{"reap-after", "run-for: 1m\ncluster: {reap-after: 0s}", "x.yaml:2: cluster.reap-after: is not set, or 0s"},
		{"settings of a stranger", settings("{n9: {stable-after: 3s}}"), `x.yaml:2: cluster.settings.n9: no member is called "n9"; the nearest name is n1`},
		{"settings that are those of all", settings("{n4: {stable-after: 20s}}"), "x.yaml:2: cluster.settings.n4: says nothing that differs"},
		{"settings that say nothing", settings("{n4: {}}"), "x.yaml:2: cluster.settings.n4: says nothing that differs"},
		{"a setting that does not exist", settings("{n4: {stabel-after: 3s}}"), "x.yaml:2: cluster.settings.n4.stabel-after: unknown key; the nearest known key is stable-after"},
		{"a bad setting of a member", settings("{n4: {stable-after: -1s}}"), "x.yaml:2: cluster.settings.n4.stable-after: is -1s: it must not be negative"},
		{"a bad strategy of a member", settings("{n4: {active-strategy: static-quorum}}"), "x.yaml:2: cluster.settings.n4.static-quorum.quorum-size: is 0: it must be at least 1"},
		{"own probes of a member", settings("{n4: {probe: {tries: 9}}}"), "x.yaml:2: cluster.settings.n4.probe: differs: a run has one failure detector"},
		{"a lease of a member's own", settings("{n4: {lease-majority: {lease-name: x}}}"), "x.yaml:2: cluster.settings.n4.lease-majority: is about another lease"},
		{"settings and singletons", settings("{n4: {stable-after: 3s}}, singletons: [{name: x}]"), "x.yaml:2: cluster.settings: and singletons or shards do not go together"},
		{"more members than can be played", "run-for: 1m\ncluster: {nodes: 1001}", "x.yaml:2: cluster.nodes: are 1001: it must be 1 to 1000: each is a real one"},
		{"no nodes", "run-for: 1m\ncluster: {nodes: 0}", "x.yaml:2: cluster.nodes: are 0: it must be 1 to 1000"},
		{"too many nodes", "run-for: 1m\ncluster: {nodes: 1000000000}", "x.yaml:2: cluster.nodes: are 1000000000"},
		{"nodes", "run-for: 1m\ncluster: {nodes: {a: 1}}", "x.yaml:2: cluster.nodes: expected a number, or a list of nodes {name, roles, zone}, found"},
		{"a name twice", "run-for: 1m\ncluster: {nodes: [{name: a}, {name: a}]}", `x.yaml:2: cluster.nodes[1].name: "a" is already the name of cluster.nodes[0]`},
		{"a node called none", "run-for: 1m\ncluster: {nodes: [{name: none}]}", `x.yaml:2: cluster.nodes[0].name: is "none", which stands for nobody`},
		{"a zone called like a node", "run-for: 1m\ncluster: {nodes: [{name: a, zone: b}, {name: b}]}", `x.yaml:2: cluster.nodes[0].zone: "b" is the name of a member`},
		{"detection", "run-for: 1m\ncluster: {detection: serf-lam}", `x.yaml:2: cluster.detection: "serf-lam" is unknown; the nearest is serf-lan`},
		{"no time", step("crash: n1"), "x.yaml:3: steps[0]: has no `at`"},
		{"in the past", step("at: -1s, crash: n1"), "x.yaml:3: steps[0].at: is -1s: that is before the start"},
		{"after the end", step("at: 61s, crash: n1"), "x.yaml:3: steps[0].at: is 1m1s: the run ends at 1m0s (run-for)"},
		{"two actions", step("at: 1s, crash: n1, heal: true"), "x.yaml:3: steps[0]: has 2 actions (crash, heal): write a step for each"},
		{"no action", step("at: 1s"), "x.yaml:3: steps[0]: does nothing: it needs one of partition, cut"},
		{"unknown member", step("at: 1s, crash: n11"), `x.yaml:3: steps[0].crash: no member is called "n11"; the nearest name is n1`},
		{"a cut between zones", zones("at: 1s, cut: [east, west]"),
			"x.yaml:4: steps[0].cut: east is a zone, and this cuts one link: write link: [east, west], loss: 1"},
		{"a cut one way to a zone", zones("at: 1s, cut-one-way: [a, west]"),
			"x.yaml:4: steps[0].cut-one-way: west is a zone, and this cuts one link: write link-one-way: [a, west], loss: 1"},
		{"a zone crashes", zones("at: 1s, crash: east"),
			"x.yaml:4: steps[0].crash: east is a zone, and here stands one member, such as a"},
		{"in two groups", step("at: 1s, partition: [[n1, n2], [n2]]"), "x.yaml:3: steps[0].partition[1][0]: n2 is already in steps[0].partition[0]"},
		{"in a group twice", step("at: 1s, partition: [[n1, n1]]"), "x.yaml:3: steps[0].partition[0][1]: n1 is already in steps[0].partition[0]"},
		{"no groups", step("at: 1s, partition: []"), "x.yaml:3: steps[0].partition: is empty"},
		{"empty group", step("at: 1s, partition: [[n1], []]"), "x.yaml:3: steps[0].partition[1]: is an empty group"},
		{"half a link", step("at: 1s, cut: [n1]"), "x.yaml:3: steps[0].cut: names 1 members: it must be two"},
		{"a link to itself", step("at: 1s, cut-one-way: [n1, n1]"), "x.yaml:3: steps[0].cut-one-way: names n1 twice"},
		{"who joins was there", step("at: 1s, join: n5"), "x.yaml:3: steps[0].join: n5 is a member from the start; restart brings it back"},
		{"half a lossy link", step("at: 1s, link-one-way: [n1], loss: 1"), "x.yaml:3: steps[0].link-one-way: names 1 ends"},
		{"loss of no link", step("at: 1s, crash: n1, loss: 1"), "x.yaml:3: steps[0]: has `loss` or `latency`, which belong to link"},
		{"force-leave of nobody", step("at: 1s, force-leave: []"), "x.yaml:3: steps[0].force-leave: is empty"},
		{"force-leave on a stranger", step("at: 1s, force-leave: [n2], on: [n7]"), `x.yaml:3: steps[0].on[0]: no member is called "n7"`},
		{"down by nobody", step("at: 1s, down: n1"), "x.yaml:3: steps[0]: downs n1 without `by`: it must say which member the operator asks"},
		{"down by itself", step("at: 1s, down: n1, by: n1"), "x.yaml:3: steps[0].by: n1 cannot be asked to down itself: ask another member"},
		{"down by a stranger", step("at: 1s, down: n1, by: n9"), `x.yaml:3: steps[0].by: no member is called "n9"; the nearest name is n1`},
		{"by of no down", step("at: 1s, crash: n1, by: n2"), "x.yaml:3: steps[0].by: belongs to down only"},
		{"on of no force-leave", step("at: 1s, leave: n1, on: [n2]"), "x.yaml:3: steps[0].on: belongs to force-leave only"},
		{"a crash under another name", step("at: 1s, crash: n1, as: n9"), "x.yaml:3: steps[0]: has `as` or `state`, which belong to restart only"},
		{"another name that is the old one", step("at: 1s, restart: n1, as: n1"), "x.yaml:3: steps[0].as: n1 is what it is called already"},
		{"state", step("at: 1s, restart: n1, state: kept"), `x.yaml:3: steps[0].state: is "kept": it must be lost`},
		{"rights", step("at: 1s, rights: some"), `x.yaml:3: steps[0].rights: is "some": it must be none`},
		{"who is refused what was deleted", step("at: 1s, lease-store: forget, nodes: [n1]"), "x.yaml:3: steps[0].nodes: belongs to rights and to a fault"},
		{"restored for a while", step("at: 1s, lease-store: {restore: 0s}, for: 3s"), "x.yaml:3: steps[0].for: belongs to pause, rights"},
		{"restored from the future", step("at: 1s, lease-store: {restore: 2s}"), "x.yaml:3: steps[0].lease-store.restore: is 2s: the store cannot become"},
		{"slow and restored", step("at: 1s, lease-store: {restore: 0s, slow: 1s}"), "x.yaml:3: steps[0].lease-store: must be down"},
		{"pause without end", step("at: 1s, pause: n1"), "x.yaml:3: steps[0]: pauses without `for`"},
		{"for", step("at: 1s, crash: n1, for: 3s"), "x.yaml:3: steps[0].for: belongs to pause, rights and a fault of the way to the lease store only"},
		{"nodes", step("at: 1s, crash: n1, nodes: [n1]"), "x.yaml:3: steps[0].nodes: belongs to rights and to a fault of the way to the lease store only"},
		{"store", step("at: 1s, lease-store: dwn"), `x.yaml:3: steps[0].lease-store: "dwn" is unknown; known are down, lose-requests`},
		{"slow", step("at: 1s, lease-store: {slow: 0s}"), "x.yaml:3: steps[0].lease-store.slow: is not set, or 0s"},
		{"clock", step("at: 1s, clock: {node: n1}"), "x.yaml:3: steps[0].clock: does nothing: it needs skew or rate"},
		{"rate", step("at: 1s, clock: {node: n1, rate: 0}"), "x.yaml:3: steps[0].clock.rate: is 0: it must be a number from 0.01 to 100"},
		{"heal: false", step("at: 1s, heal: false"), "x.yaml:3: steps[0].heal: is false"},
		{"expected member", "run-for: 1m\nexpect: {survivors: [m1]}", `x.yaml:2: expect.survivors[0]: no member is called "m1"; the nearest name is n1`},
		{"expected twice", "run-for: 1m\nexpect: {down: [n1, n1]}", "x.yaml:2: expect.down[1]: n1 is named twice"},
		{"count", "run-for: 1m\nexpect: {survivor-count: 6}", "x.yaml:2: expect.survivor-count: is 6: it must be 0 to 5"},
		{"holder", "run-for: 1m\nexpect: {lease-holder: nobody}", `x.yaml:2: expect.lease-holder: no member is called "nobody"`},
		{"nothing to resolve", "run-for: 1m\nexpect: {resolved-within: 1s}", "x.yaml:2: expect.resolved-within: has nothing to count from"},
		{"decision", "run-for: 1m\nexpect: {decisions: {n1: down-all-of-it}}", `x.yaml:2: expect.decisions.n1: "down-all-of-it" is unknown`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(tc.in))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "\n", "one problem, one line")
		})
	}
}

func TestParse_AllProblemsAtOnce(t *testing.T) {
	_, err := Parse("x.yaml",
		[]byte("steps:\n  - {at: 1s, crash: n9}\n  - {at: -1s, heal: true}\nrun-for: 1m\nexpect: {down: [n8]}"))
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 3)
	for i, line := range []string{"x.yaml:2:", "x.yaml:3:", "x.yaml:5:"} {
		require.True(t, strings.HasPrefix(lines[i], line), lines[i])
	}
}

func TestParse_BoundsItsInput(t *testing.T) {
	_, err := Parse("x.yaml", []byte("name: "+strings.Repeat("x", MaxBytes)))
	require.ErrorContains(t, err, "larger than 1048576 bytes")
	_, err = Parse("x.yaml", []byte("run-for: 1m\nsteps:\n"+
		strings.Repeat("- {at: 1s, heal: true}\n", maxSteps+1)))
	require.ErrorContains(t, err, "x.yaml:3: steps: are 10001: at most 10000 are played")
	_, err = Parse("x.yaml", []byte("run-for: 1m\nsteps:\n"+strings.Repeat("- {}\n", 100_000)))
	require.ErrorContains(t, err, "too many values")
}

func TestValidate_RefusesWhatNoFileCanSay(t *testing.T) {
	s := Default()
	require.ErrorContains(t, s.Validate(), "run-for")
	s.RunFor = time.Minute
	require.NoError(t, s.Validate())
	s.Cluster.Network.Loss = math.NaN()
	require.ErrorContains(t, s.Validate(), "cluster.network.loss")
	r := Run(&s, 1)
	require.False(t, r.Passed, "Run does not play what does not validate")
	require.Contains(t, fmt.Sprint(r.Failures), "cluster.network.loss")
	require.Error(t, new(Scenario).Validate())
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(contract))
	files, err := filepath.Glob(filepath.Join("..", "scenarios", "*.yaml"))
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("x.yaml", data)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "x.yaml") && !strings.HasPrefix(line, "and ") {
					t.Fatalf("a line without a place: %q", line)
				}
			}
			return
		}
		require.NoError(t, s.Validate())
		if s.Names().Start > 8 || len(s.Steps) > 20 || s.RunFor > 5*time.Minute {
			return
		}
		a, b := Judge(s, 1), Judge(s, 1)
		require.Equal(t, a, b)
	})
}

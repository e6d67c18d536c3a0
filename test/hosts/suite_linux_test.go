package hosts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const (
	// speed is how much faster the files are played: their steps and the resolver's settings. Serf has times
	// of its own, but where the resolver's probes run it is these that notice.
	speed = 4
	// maxPlay bounds the time that one file takes.
	maxPlay  = 2 * time.Minute
	maxHosts = 7
	// maxLatency is up to where the delay of a message does not matter.
	maxLatency = 25 * time.Millisecond
)

// sample are the files that make e2e plays; the simulator and test/serf play all.
var sample = []string{
	"bridge", "crash-and-cut", "downed-comes-back", "join-winning-side", "leave-during-split", "one-member-with-store", "paused-through",
	"restart-same-name", "store-down-suspend", "strategy-keep-majority", "three-two",
}

// unplayable says why a file is not played on hosts; empty: it is.
func unplayable(s *scenario.Scenario) string {
	if n := len(s.Members()); n > maxHosts {
		return fmt.Sprintf("%d nodes; hosts are played up to %d", n, maxHosts)
	}
	if d := s.RunFor / speed; d > maxPlay {
		return fmt.Sprintf("it takes %v at %d times the speed; hosts are played up to %v", d, speed, maxPlay)
	}
	c := &s.Cluster
	switch {
	case c.ReapAfter != scenario.Default().Cluster.ReapAfter:
		return "hosts run Serf with its own reconnect time-out"
	case c.Network.Latency > maxLatency || c.Network.Jitter > maxLatency:
		return fmt.Sprintf("its messages take up to %v; those of hosts take no time to speak of",
			c.Network.Latency+c.Network.Jitter)
	case c.SplitBrainResolver.Probe.Neighbours == 0:
		return "no own probes: Serf's detector cannot be made faster"
	case len(c.Settings) > 0:
		return "hosts all have one configuration"
	case c.Detection.Profile == "serf-wan":
		return "Serf's detector takes up to a minute there, and cannot be made faster"
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		switch {
		case st.Clock != nil:
			return "hosts share one clock"
		case st.Link != nil, st.LinkOneWay != nil, st.ForceLeave != nil, st.As != nil, st.State != nil,
			st.Rights != nil:
			return "the soak does that on hosts, and not the files"
		case st.LeaseStore != nil && st.LeaseStore.Kind != "down":
			return "hosts can only be cut off from the store: what it answers is not theirs to change"
		}
	}
	return ""
}

// leftOut says which parts of a file are left out when it is played on hosts, with the reason.
func leftOut(s *scenario.Scenario) (parts []string) {
	if n := len(s.Cluster.Singletons); n > 0 {
		parts = append(parts,
			fmt.Sprintf("singletons: %d; TestSingleton_… and the soak run programs of their own on hosts", n))
	}
	if n := len(s.Cluster.Shards); n > 0 {
		parts = append(parts, fmt.Sprintf("shards: of %d types; TestShards_… and the soak run shards on hosts", n))
	}
	return parts
}

// promisesOnly are files whose expectations do not hold on hosts, where only the promises are checked then,
// with the reason.
var promisesOnly = map[string]string{
	"heal-just-before": "the heal is timed to the file's detection times",
	"holder-crashes":   "the crash is timed to the file's detection times",
	"asymmetric":       "five members that miss the same one are enough to call that one unreachable; the model knows only pairs that miss each other",
	"one-way-sides":    "rumours of the smaller side still reach the larger one, and either may win",
}

// library parses the scenario files, by name.
func library(t *testing.T) map[string]*scenario.Scenario {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "simulator", "scenarios", "*.yaml"))
	require.NoError(t, err)
	all := make(map[string]*scenario.Scenario)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := scenario.Parse(file, data)
		require.NoError(t, err)
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = s
	}
	require.NotEmpty(t, all)
	return all
}

// The scenario files of the simulator come to the same on real hosts.
func TestScenarios(t *testing.T) {
	needsRoot(t)
	all := library(t)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if os.Getenv(e2eEnv) != everything && !slices.Contains(sample, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if why := unplayable(all[name]); why != "" {
				t.Skip(why)
			}
			// Each file in one mode: what differs between them is what the tests above are about.
			playTwoOfThree(t, name, all[name], allModes[i%len(allModes)])
		})
	}
}

// playTwoOfThree plays a file; if its expectations are not met, twice more, and then both must. Which side
// comes first, and how long it takes, is up to chance. Promises are not: they hold in every play.
func playTwoOfThree(t *testing.T, name string, s *scenario.Scenario, m mode) {
	if why := promisesOnly[name]; why != "" {
		promises := *s
		promises.Expect = scenario.Expect{}
		require.Empty(t, play(t, &promises, m))
		t.Logf("the promises hold; what the file expects does not count here: %s", why)
		return
	}
	failures := play(t, s, m)
	if len(failures) == 0 {
		return
	}
	t.Logf("in one play: %v", failures)
	for range 2 {
		require.Empty(t, play(t, s, m), "the second time that the expectations are not met")
	}
}

// Every file is played or has a reason not to be, and the sample is played.
func TestScenarios_NoneIsLeftOutInSilence(t *testing.T) {
	all := library(t)
	played := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		why := unplayable(all[name])
		if why == "" {
			played++
			for _, part := range leftOut(all[name]) {
				t.Logf("played in part: %-32s without %s", name, part)
			}
			continue
		}
		t.Logf("not played: %-36s %s", name, why)
		require.NotContains(t, sample, name)
		require.NotContains(t, promisesOnly, name)
	}
	t.Logf("%d of %d files are played", played, len(all))
	require.Greater(t, played, len(all)/3)
	for _, name := range append(slices.Collect(maps.Keys(promisesOnly)), sample...) {
		require.Contains(t, all, name)
	}
}

// Each file that is played becomes a configuration that sbr takes, with its times shortened.
func TestScenarios_SettingsAreValid(t *testing.T) {
	for name, s := range library(t) {
		if unplayable(s) != "" {
			continue
		}
		settings := settingsOf(t, s)
		raw, err := yaml.Marshal(map[string]any{
			"system": "hosts", "split-brain-resolver": settings.Resolver, "lease": settings.Lease, "serf": settings.Serf,
		})
		require.NoError(t, err)
		f, err := config.Parse(name, raw)
		require.NoError(t, err)
		want, got := &s.Cluster.SplitBrainResolver, &f.SplitBrainResolver
		require.Equal(t, want.ActiveStrategy, got.ActiveStrategy, name)
		require.Equal(t, want.StableAfter/speed, got.StableAfter, name)
		require.Equal(t, want.Probe.Interval/speed, got.Probe.Interval, name)
		require.Equal(t, want.Probe.Tries, got.Probe.Tries, name)
		require.Equal(t, want.LeaseMajority.AcquireLeaseDelayForMinority/speed,
			got.LeaseMajority.AcquireLeaseDelayForMinority, name)
	}
}

// topology is what the steps of a scenario have done to the network: a partition replaces the last one,
// single links stay cut until a heal.
type topology struct {
	group map[string]int // nodes of different groups cannot reach each other
	cut   map[[2]string]bool
}

func newTopology() *topology {
	return &topology{group: make(map[string]int), cut: make(map[[2]string]bool)}
}

// partition cuts the network into groups; nodes that are not named form one more.
func (t *topology) partition(groups [][]string) {
	clear(t.group)
	for g, nodes := range groups {
		for _, name := range nodes {
			t.group[name] = g + 1
		}
	}
}

func (t *topology) cutOneWay(from, to string) { t.cut[[2]string{from, to}] = true }

func (t *topology) heal() {
	clear(t.group)
	clear(t.cut)
}

// open is what lab.SetLinks asks; store is the host of the lease store, which no partition concerns.
func (t *topology) open(store string) func(from, to string) bool {
	return func(from, to string) bool {
		return from == store || to == store || t.group[from] == t.group[to] && !t.cut[[2]string{from, to}]
	}
}

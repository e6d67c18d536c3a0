package simulator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// Every seed gives a scenario that validates, the same each time, and that is the same after it was a file.
func TestRandom_IsAFile(t *testing.T) {
	const seeds = 1000
	different := make(map[string]bool)
	for seed := range uint64(seeds) {
		s := simulator.Random(seed)
		require.NoError(t, s.Validate())
		text := scenario.Format(s)
		require.Equal(t, string(text), string(scenario.Format(simulator.Random(seed))))
		first, body, _ := strings.Cut(string(text), "\n")
		require.Equal(t, fmt.Sprintf("name: random %d", seed), first)
		different[body] = true
		if seed%20 == 0 {
			again, err := scenario.Parse("x.yaml", text)
			require.NoError(t, err)
			require.Equal(t, scenario.Judge(s, seed), scenario.Judge(again, seed))
		}
	}
	require.Len(t, different, seeds, "each seed is another one")
}

// Everything that a file can say is said now and then.
func TestRandom_SaysEverything(t *testing.T) {
	const seeds = 1000
	seen := make(map[string]int)
	for seed := range uint64(seeds) {
		said := make(map[string]bool)
		for _, what := range contents(simulator.Random(seed)) {
			said[what] = true
		}
		for what := range said {
			seen[what]++
		}
	}
	for what, least := range map[string]int{
		"2 members": 50, "3 members": 50, "5 members": 30, "9 members": 5,
		"partition": 500, "two partitions": 400, "cut": 100, "cut-one-way": 20, "heal": 500, "no heal at the end": 100,
		"crash": 100, "restart": 200, "leave": 50, "join": 50, "pause": 50, "clock": 100,
		"store down": 50, "store lose-requests": 50, "store lose-responses": 50, "store conflict": 50, "store slow": 50,
		"store for all": 30, "store for some": 200, "store to the end": 20, "quiet before the first cut": 50,
		"zones": 100, "a zone in a step": 20, "roles": 100, "suspend": 100, "no watch": 100, "no probes": 50, "few probes": 50, "profile": 100,
		"force-leave": 300, "force-leave on one": 100, "reap-after": 200, "as": 50, "state": 50, "rights": 40, "link": 40, "down": 300,
		"unstable off": 100, "unstable on": 100, "unstable for": 50, "min-members": 50,
		"singletons": 500, "two singletons": 300, "singleton with a lease": 300, "singleton without a lease": 300, "singleton with a role": 30,
		"singleton that ends by itself": 200,
		"shards":                        350, "one shard": 20, "eight shards": 20, "shards with leases": 150, "shards without leases": 150, "shards with a role": 20,
		"shards that end by themselves": 80, "shards reopened": 50,
	} {
		require.GreaterOrEqual(t, seen[what], least, "%s in %d of %d", what, seen[what], seeds)
	}
}

// contents lists what a scenario says, in words.
func contents(s *scenario.Scenario) (all []string) {
	add := func(on bool, what string) {
		if on {
			all = append(all, what)
		}
	}
	rules, zones := &s.Cluster.SplitBrainResolver, make(map[string]bool)
	members := s.Cluster.Nodes.Count + len(s.Cluster.Nodes.List)
	all = append(all, fmt.Sprint(members, " members"))
	for _, n := range s.Cluster.Nodes.List {
		zones[n.Zone] = true
		add(n.Zone != "", "zones")
		add(len(n.Roles) > 0, "roles")
	}
	add(rules.LeaseMajority.WhenLeaseUnknown == "suspend", "suspend")
	add(!bool(rules.LeaseMajority.Watch), "no watch")
	add(rules.Probe.Neighbours == 0, "no probes")
	add(rules.Probe.Neighbours > 0 && rules.Probe.Neighbours < 3, "few probes")
	add(s.Cluster.Detection.Profile != "", "profile")
	add(rules.DownAllWhenUnstable.String() == "off", "unstable off")
	add(rules.DownAllWhenUnstable.String() == "on", "unstable on")
	add(rules.DownAllWhenUnstable.For > 0, "unstable for")
	add(rules.MinMembers > 1, "min-members")
	add(s.Cluster.ReapAfter < time.Hour, "reap-after")
	add(len(s.Cluster.Singletons) > 0, "singletons")
	add(len(s.Cluster.Singletons) > 1, "two singletons")
	for _, x := range s.Cluster.Singletons {
		add(bool(x.UseLease), "singleton with a lease")
		add(!bool(x.UseLease), "singleton without a lease")
		add(x.Role != "", "singleton with a role")
		add(x.EndsAfter > 0, "singleton that ends by itself")
	}
	for _, x := range s.Cluster.Shards {
		add(true, "shards")
		add(x.Count == 1, "one shard")
		add(x.Count == 8, "eight shards")
		add(bool(x.UseLease), "shards with leases")
		add(!bool(x.UseLease), "shards without leases")
		add(x.Role != "", "shards with a role")
		add(x.EndsAfter > 0, "shards that end by themselves")
		add(x.ReopenedAfter > 0, "shards reopened")
	}
	partitions, healed := 0, false
	for i := range s.Steps {
		st := &s.Steps[i]
		add(st.ForceLeave != nil, "force-leave")
		add(st.On != nil, "force-leave on one")
		add(st.Down != nil, "down")
		add(st.As != nil, "as")
		add(st.State != nil, "state")
		add(st.Rights != nil, "rights")
		add(st.Link != nil, "link")
		add(st.Crash != nil, "crash")
		add(st.Restart != nil, "restart")
		add(st.Leave != nil, "leave")
		add(st.Join != nil, "join")
		add(st.Pause != nil, "pause")
		add(st.Clock != nil, "clock")
		add(st.Cut != nil, "cut")
		add(st.CutOneWay != nil, "cut-one-way")
		if st.Heal != nil {
			all, healed = append(all, "heal"), true
		}
		if st.Partition != nil {
			partitions++
			healed = false
			all = append(all, "partition")
			add(zones[(*st.Partition)[0][0]], "a zone in a step")
		}
		if st.LeaseStore != nil {
			if restore := st.LeaseStore.Change.Restore != nil; restore || st.LeaseStore.Kind == "forget" {
				add(restore, "restore")
				add(!restore, "forget")
				continue
			}
			kind := st.LeaseStore.Kind
			if kind == "" {
				kind = "slow"
			}
			all = append(all, "store "+kind)
			add(st.Nodes == nil, "store for all")
			add(st.Nodes != nil, "store for some")
			add(st.For == nil, "store to the end")
			add(partitions == 0, "quiet before the first cut")
		}
	}
	add(partitions > 1, "two partitions")
	add(partitions > 0 && !healed, "no heal at the end")
	return all
}

// Most runs come to a decision, many leave somebody, and when they end nothing more would happen.
func TestRandom_ThingsHappen(t *testing.T) {
	const seeds = 300
	var decided, left, again int
	var virtual time.Duration
	for seed := range uint64(seeds) {
		s := simulator.Random(seed)
		r := scenario.Judge(s, seed)
		virtual += s.RunFor
		longer := *s
		longer.RunFor += 20 * time.Minute
		l := scenario.Judge(&longer, seed)
		require.Equal(t, r.Survivors, l.Survivors, "seed %d", seed)
		require.Equal(t, r.Down, l.Down, "seed %d", seed)
		if len(r.Down) > 0 {
			decided++
			if len(r.Survivors) > 0 {
				left++
			}
		}
		if len(s.Steps) > 8 {
			again++
		}
	}
	require.Greater(t, decided, seeds/2)
	require.Greater(t, left, seeds/3)
	require.Greater(t, again, seeds/4)
	require.Less(t, virtual, seeds*30*time.Minute)
}

func BenchmarkRandom(b *testing.B) {
	for seed := uint64(1); b.Loop(); seed++ {
		simulator.Random(seed)
	}
}

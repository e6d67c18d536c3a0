package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
)

// A member's own rules are those of all but for what they say, wherever in the file they stand.
func TestSettings_DifferFromThoseOfAll(t *testing.T) {
	const own, all = "  settings: {n4: {down-all-when-unstable: off, lease-majority: {watch: off}}}\n",
		"  split-brain-resolver: {stable-after: 7s}\n"
	for _, text := range []string{own + all, all + own} {
		s := parse(t, "run-for: 1m\ncluster:\n"+text)
		require.EqualValues(t, 7*time.Second, s.Cluster.Rules("n4").StableAfter)
		require.False(t, bool(s.Cluster.Rules("n4").LeaseMajority.Watch))
		require.Equal(t, "off", s.Cluster.Rules("n4").DownAllWhenUnstable.String())
		require.Same(t, &s.Cluster.SplitBrainResolver, s.Cluster.Rules("n3"))
		require.True(t, bool(s.Cluster.Rules("n3").LeaseMajority.Watch))
	}
}

// Under another strategy, or the settings of an sbr.yaml, what differs at a member still does, and nothing
// else.
func TestSettings_StayUnderAVariant(t *testing.T) {
	s := parse(t, "run-for: 1m\ncluster: {settings: {n4: {stable-after: 7s}, n5: {active-strategy: down-all}}}")
	v, err := s.WithStrategy("static-quorum")
	require.NoError(t, err)
	require.Equal(t, "static-quorum", v.Cluster.Rules("n4").ActiveStrategy)
	require.Equal(t, 3, v.Cluster.Rules("n4").StaticQuorum.QuorumSize)
	require.EqualValues(t, 7*time.Second, v.Cluster.Rules("n4").StableAfter)
	require.Equal(t, "down-all", v.Cluster.Rules("n5").ActiveStrategy)
	require.Equal(t, "lease-majority", s.Cluster.Rules("n4").ActiveStrategy, "the scenario stays as it was")
	f := config.Default()
	f.SplitBrainResolver.StableAfter, f.SplitBrainResolver.MinMembers = strictyaml.AutoDuration(9*time.Second), 2
	v, err = s.WithConfig("x", &f)
	require.NoError(t, err)
	require.EqualValues(t, 7*time.Second, v.Cluster.Rules("n4").StableAfter)
	require.Equal(t, 2, v.Cluster.Rules("n4").MinMembers)
	require.EqualValues(t, 9*time.Second, v.Cluster.Rules("n5").StableAfter)
}

// A member decides by its own rules, also a member that joins, and each member says whose configuration
// differs.
func TestSettings_AreThoseOfTheirMember(t *testing.T) {
	s := parse(t, `
cluster:
  nodes: 2
  split-brain-resolver: {stable-after: 5s, probe: {neighbours: 0}}
  detection: {after: 1s, spread: 0s, heal: 1s}
  settings: {n2: {stable-after: 40s}, n3: {stable-after: 10s}}
steps:
  - {at: 10s, join: n3}
  - {at: 60s, partition: [[n1], [n2], [n3]]}
  - {at: 60s, lease-store: down}
run-for: 61s
`)
	differs := make(map[string]int)
	for _, e := range Run(s, 1).Events {
		if e.Kind == "differs" {
			differs[e.Node]++
		}
	}
	require.Equal(t, map[string]int{"n1": 2, "n2": 2, "n3": 2}, differs,
		"everybody has another one than the two others")
	s.RunFor = 3 * time.Minute
	decided := make(map[string]string)
	for _, e := range Run(s, 1).Events {
		if e.Kind == "decision" && decided[e.Node] == "" {
			decided[e.Node] = e.At
		}
	}
	require.Equal(t, map[string]string{"n1": "1m6s", "n2": "1m41s", "n3": "1m11s"}, decided)
}

// Where all have the same there is nothing to say, and a run is what it was.
func TestSettings_NobodyDiffers(t *testing.T) {
	for _, e := range Run(parse(t, ranged), 1).Events {
		require.NotEqual(t, "differs", e.Kind)
	}
}

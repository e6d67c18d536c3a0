package shrink_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/simulator/internal/shrink"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

func parse(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	return s
}

// large is forty steps of all kinds over seven members, with settings and expectations.
func large(t testing.TB) *scenario.Scenario {
	t.Helper()
	var b strings.Builder
	b.WriteString(`
name: large
cluster:
  system: payments
  nodes: 7
  split-brain-resolver: {stable-after: 17.3s, min-members: 2, lease-majority: {role: web, release-after: 33s}}
  lease: {heartbeat-timeout: 97s, kubernetes: {namespace: x}}
  detection: {after: 3s, spread: 2s, heal: 1s}
  network: {latency: 3.21ms, jitter: 12.34ms}
run-for: 700s
expect: {survivor-count: 3, survivors: [n1, n2, n3], down: [n7], decisions: {n5: down-all}}
steps:
`)
	for i := range 40 {
		at := time.Duration(i)*7*time.Second + 123*time.Millisecond
		a, c := fmt.Sprintf("n%d", i%7+1), fmt.Sprintf("n%d", (i+1)%7+1)
		step := []string{
			fmt.Sprintf("partition: [[%s, %s], [n4]]", a, c), "crash: " + a, "restart: " + a,
			fmt.Sprintf("cut-one-way: [%s, %s]", a, c),
			fmt.Sprintf("lease-store: lose-responses, nodes: [%s, %s, n4], for: 4.4s", a, c),
			fmt.Sprintf("pause: %s, for: 3.3s", a),
			fmt.Sprintf("clock: {node: %s, skew: 3s, rate: 1.5}", a), "heal: true",
		}[i%8]
		if strings.Contains(step, "n4, n4") || strings.Contains(step, "[n4, n5], [n4]") ||
			strings.Contains(step, "n4], [n4") || strings.Contains(step, "[n4, n5, n4]") {
			step = "heal: true"
		}
		fmt.Fprintf(&b, "  - {at: %v, %s}\n", at, step)
	}
	return parse(t, b.String())
}

func names(s *scenario.Scenario) (names []string) {
	for i := range s.Cluster.Nodes.Count {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	for _, n := range s.Cluster.Nodes.List {
		names = append(names, n.Name)
	}
	return names
}

func holds(s *scenario.Scenario, members ...string) bool {
	return !slices.ContainsFunc(members, func(m string) bool { return !slices.Contains(names(s), m) })
}

// A failure that needs two of forty steps and three of seven members shrinks to exactly those, and everything
// else becomes plain.
func TestShrink_ToExactlyWhatIsNeeded(t *testing.T) {
	s := large(t)
	require.Len(t, s.Steps, 40)
	before := string(scenario.Format(s))
	tries := 0
	fails := func(c *scenario.Scenario) bool {
		tries++
		var restarted, rated bool
		for i := range c.Steps {
			st := &c.Steps[i]
			restarted = restarted || st.Restart != nil && *st.Restart == "n3" && st.At.From > 9*time.Second
			rated = rated || restarted && st.Clock != nil && st.Clock.Node == "n7" && st.Clock.Rate != nil
		}
		return restarted && rated && holds(c, "n3", "n5", "n7")
	}
	require.True(t, fails(s))
	small := shrink.Shrink(s, fails, shrink.Options{})
	require.Equal(t, strings.TrimSpace(`
name: large
cluster: {nodes: [{name: n3}, {name: n5}, {name: n7}]}
steps:
  - {at: 10s, restart: n3}
  - {at: 10s, clock: {node: n7, rate: 1.5}}
run-for: 20s
`), strings.TrimSpace(string(scenario.Format(small))))
	require.Equal(t, before, string(scenario.Format(s)), "what went in is not touched")
	t.Logf("%d tries", tries)
	require.Less(t, tries, 300)
}

// Each kind of thing that is needed stays; what belongs to it goes if it can.
func TestShrink_KeepsWhatIsNeeded(t *testing.T) {
	any := func(c *scenario.Scenario, f func(*scenario.Step) bool) bool {
		return slices.ContainsFunc(c.Steps, func(st scenario.Step) bool { return f(&st) })
	}
	for _, tc := range []struct {
		name  string
		fails func(c *scenario.Scenario) bool
		want  []string
	}{
		{"nothing", func(*scenario.Scenario) bool { return true }, []string{"cluster: {nodes: 1}\nrun-for: 10s\n"}},
		{"a setting", func(c *scenario.Scenario) bool {
			return c.Cluster.SplitBrainResolver.StableAfter < strictyaml.AutoDuration(19*time.Second)
		},
			[]string{"split-brain-resolver: {stable-after: 15s}", "nodes: 1"}},
		{"two settings", func(c *scenario.Scenario) bool {
			return c.Cluster.Network.Jitter > 11*time.Millisecond &&
				c.Cluster.SplitBrainResolver.LeaseMajority.Role == "web"
		}, []string{"{lease-majority: {role: web}}", "network: {jitter: 12ms}"}},
		{"a setting behind a pointer", func(c *scenario.Scenario) bool {
			return c.Cluster.Lease.HeartbeatTimeout != nil &&
				time.Duration(*c.Cluster.Lease.HeartbeatTimeout) > 91*time.Second
		}, []string{"lease: {heartbeat-timeout: 100s}"}},
		{"detection", func(c *scenario.Scenario) bool {
			return c.Cluster.Detection.Profile == "" && c.Cluster.Detection.Times.After < 4*time.Second
		},
			[]string{"detection: {after: 3s, spread: 2s, heal: 1s}"}},
		{"an expectation", func(c *scenario.Scenario) bool { return c.Expect.Down != nil && slices.Contains(*c.Expect.Down, "n7") },
			[]string{"cluster: {nodes: [{name: n7}]}", "expect:\n  down: [n7]\n"}},
		{"a count", func(c *scenario.Scenario) bool { return c.Expect.SurvivorCount != nil && *c.Expect.SurvivorCount == 3 },
			[]string{"nodes: 3}", "survivor-count: 3"}},
		{"a group", func(c *scenario.Scenario) bool {
			return any(c, func(st *scenario.Step) bool { return st.Partition != nil })
		},
			[]string{"nodes: 1}", "- {at: 0s, partition: [[n1]]}"}},
		{"a link", func(c *scenario.Scenario) bool {
			return any(c, func(st *scenario.Step) bool { return st.Cut != nil || st.CutOneWay != nil })
		}, []string{"nodes: [{name: n4}, {name: n5}]", "cut: [n4, n5]"}},
		{"a pause", func(c *scenario.Scenario) bool {
			return any(c, func(st *scenario.Step) bool { return st.Pause != nil })
		},
			[]string{"for: 3s}"}},
		{"a fault of the store", func(c *scenario.Scenario) bool {
			return any(c, func(st *scenario.Step) bool { return st.LeaseStore != nil && st.Nodes != nil && len(*st.Nodes) > 1 })
		}, []string{"lease-store: down, nodes: [n"}},
		{"a kind of fault", func(c *scenario.Scenario) bool {
			return any(c, func(st *scenario.Step) bool {
				return st.LeaseStore != nil && st.LeaseStore.Kind == "lose-responses" && st.For != nil
			})
		}, []string{"lease-store: lose-responses, nodes: [n", "for: 4s}"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := large(t)
			require.True(t, tc.fails(s), "the test is about a failure")
			small := shrink.Shrink(s, tc.fails, shrink.Options{})
			require.True(t, tc.fails(small))
			require.NoError(t, small.Validate())
			for _, want := range tc.want {
				require.Contains(t, string(scenario.Format(small)), want)
			}
		})
	}
}

func TestShrink_MembersGoWithTheirZonesAndJoins(t *testing.T) {
	s := parse(t, `
name: zones
cluster: {nodes: [{name: a1, zone: a, roles: [web]}, {name: a2, zone: a, roles: [db]}, {name: b1, zone: b}, {name: c1, zone: c}]}
steps:
  - {at: 10s, join: late}
  - {at: 20s, partition: [[a, late], [b], [c]]}
  - {at: 30s, lease-store: down, nodes: [b, c]}
  - {at: 40s, crash: late}
run-for: 100s
expect: {survivors-one-of: [[a1, a2], [b1]], lease-holder: b1}`)
	cut := func(c *scenario.Scenario) bool {
		i := slices.IndexFunc(c.Steps, func(st scenario.Step) bool { return st.Partition != nil })
		return i >= 0 && len(*c.Steps[i].Partition) >= 2 && holds(c, "a2")
	}
	small := shrink.Shrink(s, cut, shrink.Options{})
	require.Equal(t, "name: zones\ncluster: {nodes: [{name: a2, zone: a}, {name: b1, zone: b}]}\nsteps:\n  - {at: 10s, partition: [[a], [b]]}\nrun-for: 20s\n",
		string(scenario.Format(small)))
}

// A step that cannot be left out alone goes with the member that it names, whatever it does to it.
func TestShrink_MembersGoWithTheirSteps(t *testing.T) {
	for _, step := range []string{"crash: %s", "restart: %s", "leave: %s", "pause: %s, for: 1s",
		"clock: {node: %s, skew: 1s}", "lease-store: down, nodes: [%s]",
		"partition: [[%s]]", "cut: [n1, %s]", "cut-one-way: [%s, n1]"} {
		text := "name: all\nrun-for: 100s\nsteps:\n"
		for _, name := range []string{"n2", "n3", "n4", "n5"} {
			text += "  - {at: 10s, " + fmt.Sprintf(step, name) + "}\n"
		}
		small := shrink.Shrink(parse(t, text),
			func(c *scenario.Scenario) bool { return len(c.Steps) == len(names(c))-1 }, shrink.Options{})
		require.Len(t, names(small), 1, step)
	}
}

// The result was seen to fail, fails was asked no more often than allowed, and only about scenarios that
// validate.
func TestShrink_BoundedAndTrueToItsWord(t *testing.T) {
	for tries := 1; tries < 90; tries += 7 {
		rng := rand.New(rand.NewPCG(uint64(tries), 0))
		s := large(t)
		calls, failed := 0, make(map[*scenario.Scenario]bool)
		small := shrink.Shrink(s, func(c *scenario.Scenario) bool {
			calls++
			require.NoError(t, c.Validate())
			if c == s || rng.IntN(3) == 0 {
				failed[c] = true
			}
			return failed[c]
		}, shrink.Options{Tries: tries})
		require.True(t, failed[small], "what comes back was seen to fail")
		require.LessOrEqual(t, calls, tries)

		calls = 0
		shrink.Shrink(s, func(c *scenario.Scenario) bool { calls++; return c == s }, shrink.Options{Tries: tries})
		require.Equal(t, tries, calls, "there is more to try than that")
	}
}

func TestShrink_WhatDoesNotFailComesBack(t *testing.T) {
	s := large(t)
	require.Same(t, s, shrink.Shrink(s, func(*scenario.Scenario) bool { return false }, shrink.Options{}))
	broken := scenario.Default()
	require.Same(t, &broken, shrink.Shrink(&broken, func(*scenario.Scenario) bool { panic("not asked") },
		shrink.Options{}))
}

func TestShrink_Deterministic(t *testing.T) {
	run := func() (asked []string) {
		shrink.Shrink(large(t), func(c *scenario.Scenario) bool {
			asked = append(asked, string(scenario.Format(c)))
			return len(c.Steps) > 3 && len(c.Steps)%2 == 0
		}, shrink.Options{Tries: 200})
		return asked
	}
	require.Equal(t, run(), run())
}

// Thousands of steps are no reason to hang.
func TestShrink_ManyStepsManyMembers(t *testing.T) {
	s := scenario.Default()
	s.Name, s.RunFor, s.Cluster.Nodes.Count = "many", 10000*time.Second, 60
	for i := range 3000 {
		name := fmt.Sprintf("n%d", i%60+1)
		s.Steps = append(s.Steps, scenario.Step{At: scenario.Exactly(time.Duration(i) * time.Second), Crash: &name})
	}
	fails := func(c *scenario.Scenario) bool {
		return slices.ContainsFunc(c.Steps,
			func(st scenario.Step) bool { return st.Crash != nil && *st.Crash == "n17" })
	}
	small := shrink.Shrink(&s, fails, shrink.Options{})
	require.Equal(t, "name: many\ncluster: {nodes: [{name: n17}]}\nsteps:\n  - {at: 10s, crash: n17}\nrun-for: 20s\n", string(scenario.Format(small)))
}

// What operators and platforms do becomes plain as well: fewer members, everywhere, under the old name, with
// the state.
func TestShrink_Deeds(t *testing.T) {
	for _, tc := range []struct {
		name, step, want string
		needed           func(st *scenario.Step) bool
	}{
		{"force-leave", "force-leave: [n3, n4, n5], on: [n1, n2]", "{at: 10s, force-leave: [n4]}",
			func(st *scenario.Step) bool { return st.ForceLeave != nil && slices.Contains(*st.ForceLeave, "n4") }},
		{"force-leave on one", "force-leave: [n3, n4, n5], on: [n1, n2]", "{at: 10s, force-leave: [n3], on: [n2]}",
			func(st *scenario.Step) bool { return st.On != nil && slices.Contains(*st.On, "n2") }},
		{"a restart", "restart: n3, as: n9", "{at: 10s, restart: n3}", func(st *scenario.Step) bool { return st.Restart != nil }},
		{"another name", "restart: n3, as: n9", "{at: 10s, restart: n3, as: n9}", func(st *scenario.Step) bool { return st.As != nil }},
		{"no state", "restart: n3, state: lost", "{at: 10s, restart: n3, state: lost}", func(st *scenario.Step) bool { return st.State != nil }},
		{"rights", "rights: none, nodes: [n3, n4], for: 7s", "{at: 10s, rights: none, nodes: [n3]}",
			func(st *scenario.Step) bool { return st.Rights != nil && st.Nodes != nil }},
		{"a store", "rights: none, nodes: [n3, n4], for: 7s", "{at: 10s, lease-store: down, nodes: [n3]}",
			func(st *scenario.Step) bool {
				return st.LeaseStore != nil && st.Nodes != nil || st.Rights != nil && st.Nodes != nil
			}},
		{"a restore", "lease-store: {restore: 3.21s}", "{at: 10s, lease-store: {restore: 3s}}",
			func(st *scenario.Step) bool { return st.LeaseStore != nil && st.LeaseStore.Change.Restore != nil }},
		{"a store that forgets", "lease-store: {restore: 3.21s}", "{at: 10s, lease-store: forget}", func(st *scenario.Step) bool {
			return st.LeaseStore != nil && (st.LeaseStore.Change.Restore != nil || st.LeaseStore.Kind == "forget")
		}},
		{"an operator's word", "down: n3, by: n1", "{at: 10s, down: n3, by: n1}",
			func(st *scenario.Step) bool { return st.Down != nil }},
		{"a link", "link-one-way: [n3, n4], loss: 1", "{at: 10s, link-one-way: [n3, n4], loss: 1}",
			func(st *scenario.Step) bool { return st.LinkOneWay != nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, "run-for: 60s\nsteps:\n  - {at: 9.87s, "+tc.step+"}\n  - {at: 20s, crash: n2}\n")
			fails := func(c *scenario.Scenario) bool {
				return slices.ContainsFunc(c.Steps, func(st scenario.Step) bool { return tc.needed(&st) })
			}
			small := shrink.Shrink(s, fails, shrink.Options{})
			require.NoError(t, small.Validate())
			require.Len(t, small.Steps, 1)
			require.Contains(t, string(scenario.Format(small)), strings.Replace(tc.want, "at: 10s, ", "", 1)[1:])
		})
	}
}

// Of what differs at single members only what the failure needs stays, and it goes with its member.
func TestShrink_SettingsOfMembers(t *testing.T) {
	s := parse(t, `
name: settings
cluster:
  settings: {n2: {stable-after: 7s}, n4: {stable-after: 31.7s, min-members: 2, lease-majority: {watch: off}}}
steps: [{at: 10s, crash: n1}]
run-for: 60s
`)
	small := shrink.Shrink(s, func(c *scenario.Scenario) bool {
		own := c.Cluster.Settings["n4"]
		return own != nil && own.StableAfter > c.Cluster.SplitBrainResolver.StableAfter
	}, shrink.Options{})
	require.NoError(t, small.Validate())
	require.Equal(t, "name: settings\ncluster: {nodes: [{name: n4}], settings: {n4: {stable-after: 30s}}}\nrun-for: 10s\n", string(scenario.Format(small)))
}

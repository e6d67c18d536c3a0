package shrink_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/shrink"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// noisy is a split that all sides survive, because nobody is ready to decide for an hour, and much that has
// nothing to do with it.
const noisy = `
name: noisy
cluster:
  nodes: 7
  split-brain-resolver: {stable-after: 11.7s, settle-after: 1h, keep-majority: {role: web}}
  network: {latency: 2.5ms, jitter: 3ms}
steps:
  - {at: 7.3s, clock: {node: n6, skew: 3h}}
  - {at: 9s, lease-store: {slow: 300ms}, nodes: [n1, n2]}
  - {at: 13.37s, partition: [[n1, n2, n3], [n4, n5], [n6, n7]]}
  - {at: 20s, crash: n7}
  - {at: 21.2s, pause: n3, for: 4.1s}
  - {at: 120s, lease-store: conflict, for: 10s}
run-for: 400s
expect: {survivors: [n1, n2, n3]}
`

func TestSame_ShrinksARealRun(t *testing.T) {
	s := parse(t, noisy)
	r := scenario.Judge(s, 3)
	require.Contains(t, strings.Join(r.Failures, "\n"), "S1 broken at")
	small := shrink.Shrink(s, shrink.Same(s, 3), shrink.Options{})
	require.Contains(t, strings.Join(scenario.Judge(small, 3).Failures, "\n"), "S1 broken at")
	require.Equal(t, "name: noisy\ncluster: {nodes: [{name: n4}, {name: n6}], split-brain-resolver: {settle-after: 1h}}\nsteps:\n  - {at: 10s, partition: [[n4], [n6]]}\nrun-for: 190s\n",
		string(scenario.Format(small)))
	small.RunFor += 10 * time.Minute
	require.False(t, scenario.Judge(small, 3).Passed, "it does not fail only because it ends too early")
}

// What is expected is kept, word for word: with fewer steps it would be missed as well, but for another
// reason.
func TestSame_AnExpectationKeepsItsReason(t *testing.T) {
	s := parse(t, `
name: expect
cluster: {nodes: 5, split-brain-resolver: {active-strategy: down-all}}
steps:
  - {at: 5s, clock: {node: n1, skew: 1h}}
  - {at: 10s, partition: [[n1, n2, n3], [n4, n5]]}
run-for: 300s
expect: {survivors: [n1, n2, n3]}`)
	r := scenario.Judge(s, 1)
	require.Equal(t, []string{"survivors: expected [n1 n2 n3], found []"}, r.Failures)
	small := shrink.Shrink(s, shrink.Same(s, 1), shrink.Options{})
	require.Equal(t, r.Failures, scenario.Judge(small, 1).Failures)
	require.Len(t, small.Steps, 1, "without the cut all would be up, which fails, but differently")
}

func TestSame_IsAboutTheSameFailure(t *testing.T) {
	split := func(rest string) *scenario.Scenario {
		return parse(t, "name: x\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]\n"+rest)
	}
	early := split("run-for: 20s")
	require.True(t, shrink.Same(early, 1)(early), "a run that ends too early fails as it does")
	require.False(t, shrink.Same(early, 1)(split("run-for: 15s")),
		"but one that ends still earlier shows nothing")
	require.False(t, shrink.Same(early, 1)(split("run-for: 300s")), "and this one passes")

	slow := split("run-for: 300s\nexpect: {resolved-within: 1s}")
	require.True(t, shrink.Same(slow, 1)(split("run-for: 300s\ncluster: {network: {latency: 9ms}}\nexpect: {resolved-within: 1s}")), "it may take another time")
	require.False(t, shrink.Same(slow, 1)(split("run-for: 300s\nexpect: {survivor-count: 1}")))

	good := split("run-for: 300s")
	require.False(t, shrink.Same(good, 1)(good), "what passes does not fail")
	require.False(t, shrink.Same(good, 1)(slow))
}

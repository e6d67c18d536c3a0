package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	return s
}

// split is three against two; what follows is put below it.
func split(t *testing.T, rest string) *Scenario {
	t.Helper()
	return parse(t, "name: split\nrun-for: 180s\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]\n"+rest)
}

func TestRun_ResultIsTheContract(t *testing.T) {
	r := Run(split(t, "expect: {survivors: [n1, n2, n3]}"), 7)
	require.True(t, r.Passed, r.Failures)
	data, err := json.Marshal(r)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, "split", got["scenario"])
	require.EqualValues(t, 7, got["seed"])
	require.Equal(t, []any{}, got["failures"])
	require.Equal(t, []any{"n1", "n2", "n3"}, got["survivors"])
	require.Equal(t, []any{"n4", "n5"}, got["down"])
	require.Equal(t, "", got["lease-holder"])
	require.Regexp(t, `^\d+(\.\d+)?s$`, got["resolved-after"])
	require.Regexp(t, `^[0-9a-f]{16}$`, got["trace-hash"])
	require.Equal(t, map[string]any{"n1": "acquire-lease-and-down-unreachable"}, got["decisions"])
	require.Regexp(t, `^\d+\.\d+ms$`, got["double-active"])
	require.Equal(t, "0s", got["nobody-active"])
	require.Contains(t, got, "history")
	require.Len(t, got, 14)
	first := got["events"].([]any)[0].(map[string]any)
	require.Equal(t, map[string]any{"at": "0s", "node": "n1", "kind": "start", "detail": "has read token 0"},
		first)
	require.Empty(t, Judge(split(t, ""), 7).Events)
}

// Each expectation must be able to fail.
func TestRun_SaysWhatIsNotMet(t *testing.T) {
	for _, tc := range []struct{ expect, want string }{
		{"survivors: [n1, n2]", "survivors: expected [n1 n2], found [n1 n2 n3]"},
		{"survivors: []", "survivors: expected [], found [n1 n2 n3]"},
		{"survivors-one-of: [[n4, n5], []]", "survivors: expected one of [n4 n5] | [], found [n1 n2 n3]"},
		{"survivor-count: 2", "survivors: expected 2, found 3: [n1 n2 n3]"},
		{"down: [n4]", "down: expected [n4], found [n4 n5]"},
		{"lease-holder: n1", "lease-holder: expected n1, found none"},
		{"resolved-within: 1s", "resolved-within: expected 1s, it took "},
		{"decisions: {n1: down-all}", "decisions: n1: expected down-all, found acquire-lease-and-down-unreachable"},
		{"decisions: {n2: down-all}", "decisions: n2: expected down-all, found no decision"},
	} {
		t.Run(tc.expect, func(t *testing.T) {
			r := Judge(split(t, "expect: {"+tc.expect+"}"), 1)
			require.False(t, r.Passed)
			require.Len(t, r.Failures, 1)
			require.Contains(t, r.Failures[0], tc.want)
		})
	}
}

// What only worsens a link disturbs too, if nothing worse does.
func TestDisturbed_CountsFromTheWorstKindOfStep(t *testing.T) {
	for _, tc := range []struct {
		name, steps string
		want        time.Duration
		ok          bool
	}{
		{"nothing", "[]", 0, false},
		{"a healed link", "[{at: 1s, link: [n1, n2], loss: 0, latency: 0s}]", 0, false},
		{"a lossy link", "[{at: 1s, link: [n1, n2], loss: 0.4}, {at: 9s, link: [n1, n2], loss: 0, latency: 0s}]", time.Second, true},
		{"a slow way", "[{at: 2s, link-one-way: [n1, n2], latency: 3s}]", 2 * time.Second, true},
		{"a crash", "[{at: 3s, crash: n5}, {at: 4s, link: [n1, n2], loss: 0.4}]", 3 * time.Second, true},
		{"a cut", "[{at: 5s, link: [n1, n2], loss: 1}, {at: 6s, crash: n5}]", 5 * time.Second, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at, ok := parse(t, "run-for: 20s\nsteps: "+tc.steps).Disturbed()
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.want, at)
		})
	}
}

// Two sides that are up at the end break S1, although the file expects nothing.
func TestRun_SafetyIsCheckedWithoutExpectations(t *testing.T) {
	r := Judge(parse(t, "run-for: 20s\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]"), 1)
	require.False(t, r.Passed)
	require.Contains(t, r.Failures[0],
		"S1 broken at 20.000s: n1#1 and n4#1 are both up and cannot reach each other")
	require.Empty(t, r.ResolvedAfter, "two sides that are up are no resolution")
}

func TestRun_UnresolvedAtTheEnd(t *testing.T) {
	s := parse(t, "run-for: 20s\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]\nexpect: {resolved-within: 60s}")
	r := Judge(s, 1)
	require.Contains(t, strings.Join(r.Failures, "\n"),
		"resolved-within: expected 1m0s, not resolved at the end of the run")
}

func TestRun_CrashedAndLeftAreInNeitherList(t *testing.T) {
	r := Judge(parse(t, "run-for: 120s\nsteps:\n  - {at: 10s, crash: n1}\n  - {at: 10s, leave: n2}"), 1)
	require.True(t, r.Passed, r.Failures)
	require.Equal(t, []string{"n3", "n4", "n5"}, r.Survivors)
	require.Empty(t, r.Down)
	require.NotEmpty(t, r.ResolvedAfter)
}

func TestRun_HolderIsNamedWhileItHoldsTheLease(t *testing.T) {
	s := split(t, "expect: {lease-holder: n1}")
	r := Judge(s, 1)
	require.Equal(t, "", r.LeaseHolder)
	s.RunFor = s.RunFor / 3
	require.Equal(t, "n1", Judge(s, 1).LeaseHolder)
}

// A later fault of a node outlives the end of an earlier one.
func TestRun_StoreFaultsOverlap(t *testing.T) {
	down := func(r Result) int { return len(r.Down) }
	s := split(t, "")
	at := func(text string) *Scenario {
		return parse(t, "run-for: 180s\nsteps:\n  - {at: 10s, partition: [[n1, n2, n3], [n4, n5]]}\n"+text)
	}
	require.Equal(t, 2, down(Judge(s, 1)))
	require.Equal(t, 2, down(Judge(at("  - {at: 5s, lease-store: down, for: 10s}"), 1)),
		"the store was back in time")
	require.Equal(t, 5, down(Judge(at("  - {at: 5s, lease-store: down, for: 10s}\n  - {at: 6s, lease-store: down}"), 1)))
}

// A clock that runs slow makes its member decide late: the rate is the member's own.
func TestRun_ClockRateTakesEffectAtOnce(t *testing.T) {
	base := "run-for: 300s\ncluster: {nodes: 2, detection: {after: 4s, spread: 0s, heal: 1s}}\nsteps:\n  - {at: 10s, partition: [[n1], [n2]]}\n"
	right := Judge(parse(t, base), 1)
	slow := Judge(parse(t, base+"  - {at: 20s, clock: {node: n1, rate: 0.5}}"), 1)
	require.Equal(t, []string{"n1"}, right.Survivors, "of two halves the lowest address asks first")
	require.Equal(t, []string{"n2"}, slow.Survivors, "n1 takes twice as long to find its view stable")
}

// A skewed wall clock makes a member that starts by it older than it is.
func TestRun_SkewDecidesWhoIsOldest(t *testing.T) {
	text := func(skew string) string {
		return fmt.Sprintf(`
run-for: 240s
cluster: {split-brain-resolver: {active-strategy: keep-oldest, keep-oldest: {down-if-alone: off}}}
steps:
  - {at: 5s, clock: {node: n5, skew: %s}}
  - {at: 6s, leave: n5}
  - {at: 20s, restart: n5}
  - {at: 60s, partition: [[n5], [n1, n2, n3, n4]]}`, skew)
	}
	require.Equal(t, []string{"n1", "n2", "n3", "n4"}, Judge(parse(t, text("0s")), 1).Survivors)
	require.Equal(t, []string{"n5"}, Judge(parse(t, text("-1h")), 1).Survivors)
}

func BenchmarkJudge(b *testing.B) {
	s, err := Parse("x.yaml", []byte("run-for: 180s\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]"))
	require.NoError(b, err)
	ready, err := Prepare(s)
	require.NoError(b, err)
	for seed := uint64(1); b.Loop(); seed++ {
		ready.Judge(seed)
	}
}

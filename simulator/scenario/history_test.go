package scenario

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Recording changes nothing: every scenario of the library plays the same run with and without. What the
// history says at its end is what the result says.
func TestRun_HistoryOfTheLibrary(t *testing.T) {
	for name, s := range library(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(3)
			if s.Cluster.Nodes.Count > 200 {
				if seeds = 1; testing.Short() {
					t.Skip("a large cluster takes seconds: run without -short")
				}
			}
			for seed := uint64(1); seed <= seeds; seed++ {
				r := Run(s, seed)
				require.False(t, r.History.Truncated)
				require.Equal(t, s.RunFor.String(), r.History.Until)
				agrees(t, &r)
				plain := r
				plain.Events, plain.History, plain.DoubleActive, plain.NobodyActive, plain.Measures = []Event{}, nil,
					"", "", Measures{}
				judged := Judge(s, seed)
				judged.Measures = Measures{}
				require.Equal(t, judged, plain)
			}
		})
	}
}

// agrees holds the end of a history to the result.
func agrees(t *testing.T, r *Result) {
	t.Helper()
	h := r.History
	states, holder, last := make(map[string]string), "", time.Duration(0)
	for _, c := range h.Changes {
		at, err := time.ParseDuration(c.At)
		require.NoError(t, err)
		require.GreaterOrEqual(t, at, last, "in order")
		if last = at; c.State != "" {
			states[*c.Node] = c.State
		}
		if c.Holder != nil {
			holder = *c.Holder
		}
	}
	survivors, down := []string{}, []string{}
	for _, m := range h.Members {
		name, _, _ := strings.Cut(m, " (")
		switch states[m] {
		case "arming", "up", "suspended", "waiting for the lease", "paused":
			survivors = append(survivors, name)
		case "down":
			down = append(down, name)
		}
	}
	require.Equal(t, r.Survivors, survivors)
	require.Equal(t, r.Down, down)
	require.Equal(t, r.LeaseHolder, holder)
	double := time.Duration(0)
	for _, span := range h.DoubleActive {
		from, err := time.ParseDuration(span[0])
		require.NoError(t, err)
		to, err := time.ParseDuration(span[1])
		require.NoError(t, err)
		double += to - from
	}
	require.Equal(t, r.DoubleActive, double.String())
}

// A scenario that does not validate has no history, and says why.
func TestRun_InvalidHasNoHistory(t *testing.T) {
	r := Run(&Scenario{}, 1)
	require.Nil(t, r.History)
	require.False(t, r.Passed)
	require.NotEmpty(t, r.Failures)
}

// Of a large cluster only the views of a few nodes of each kind are recorded, so that its history fits into
// memory. Events are all there.
func TestRun_LargeClusterWatchesAFewOfEachKind(t *testing.T) {
	s := parse(t, `
run-for: 60s
cluster: {nodes: 70}
steps:
  - {at: 10s, partition: [[n1, n2, n3, n4, n5, n6, n7]]}
  - {at: 12s, pause: n40, for: 1s}
`)
	r := Run(s, 1)
	require.Equal(t, []string{"n1", "n2", "n7", "n8", "n9", "n40", "n70"}, r.History.Watched)
	seen, said := make(map[string]bool), make(map[string]bool)
	for _, c := range r.History.Changes {
		if c.Sees != nil {
			seen[*c.Node] = true
		}
	}
	for _, e := range r.Events {
		if e.Kind == "detects" {
			said[e.Node] = true
		}
	}
	require.Len(t, seen, len(r.History.Watched))
	require.Len(t, said, 70)
	require.Nil(t, Run(split(t, ""), 1).History.Watched, "everybody in a small one")
}

// The words of each change, for programs.
func TestRun_HistoryInWords(t *testing.T) {
	r := Run(parse(t, `
run-for: 100s
cluster: {nodes: 3}
steps:
  - {at: 10s, cut-one-way: [n1, n3]}
  - {at: 11s, lease-store: {slow: 800ms}, nodes: [n2], for: 5s}
  - {at: 20s, heal: true}
  - {at: 30s, partition: [[n1, n2], [n3]]}
  - {at: 80s, restart: n3, as: n9}
`), 1)
	var lines []string
	for _, c := range r.History.Changes {
		line, err := json.Marshal(c)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	for _, want := range []string{
		`{"at":"0s","node":"n1","state":"arming"}`,
		`{"at":"10s","network":{"cut":[["n1","n9"]]}}`,
		`{"at":"11s","node":"n2","store":"slow by 800ms"}`,
		`{"at":"16s","node":"n2","store":""}`,
		`{"at":"20s","network":{}}`,
		`{"at":"30s","network":{"groups":[["n1","n2"],["n9"]]}}`,
		`{"at":"1m20s","node":"n9","state":"starting"}`,
	} {
		require.Contains(t, lines, want)
	}
	require.True(t, slices.ContainsFunc(r.History.Changes, func(c Change) bool {
		return c.As == "failed" && *c.Node == "n1" && *c.Sees == "n9"
	}))
	require.True(t, slices.ContainsFunc(r.History.Changes,
		func(c Change) bool { return c.Holder != nil && *c.Holder == "n1" }))
	require.Equal(t, map[string]string{"n3": "n9"}, r.History.Formerly)
}

// The middle and the tail by the nearest rank; the histogram has every value.
func TestSpreadOf(t *testing.T) {
	var all []float64
	for i := range 100 {
		all = append(all, float64(100-i))
	}
	s := SpreadOf(all, 4)
	require.Equal(t, Spread{Runs: 100, Min: 1, Quantiles: Quantiles{P50: 50, P90: 90, P99: 99, Max: 100},
		Histogram: []int{25, 25, 25, 25}}, s)
	require.Equal(t, []int{3}, SpreadOf([]float64{2, 2, 2}, 4).Histogram, "equal values are one part")
	require.Zero(t, SpreadOf(nil, 4))
}

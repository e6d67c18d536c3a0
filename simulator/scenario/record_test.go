package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Recording changes nothing: every scenario of the library plays the same run with and without. What the history says at its end is
// what the result says.
func TestRecord_Library(t *testing.T) {
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
				r, h := Record(s, seed)
				require.Equal(t, Judge(s, seed), r)
				require.False(t, h.Truncated)
				require.Equal(t, s.RunFor, h.End)
				agrees(t, h, &r)
			}
		})
	}
}

func agrees(t *testing.T, h *world.History, r *Result) {
	t.Helper()
	lives := make([]world.Life, len(h.Nodes))
	holder, tokens := "", 0
	for i, c := range h.Changes {
		if i > 0 && h.Changes[i-1].At > c.At {
			require.Fail(t, "not in order")
		}
		switch c := c.What.(type) {
		case world.Lived:
			lives[c.Node] = c.Life
		case world.Held:
			holder = ""
			if c.Node >= 0 {
				holder = h.Nodes[c.Node]
			}
		case world.Ruled:
			tokens++
			require.EqualValues(t, tokens, c.Token)
		case world.Said:
			if _, text, back := strings.Cut(c.Text, ": token "); back && c.Kind == "store" { // it has forgotten what it held
				_, err := fmt.Sscanf(text, "%d", &tokens)
				require.NoError(t, err)
			}
		}
	}
	survivors, down := []string{}, []string{}
	for i, l := range lives {
		switch {
		case l.Works() || l == world.Paused:
			survivors = append(survivors, h.Nodes[i])
		case l == world.Downed:
			down = append(down, h.Nodes[i])
		}
	}
	require.Equal(t, r.Survivors, survivors)
	require.Equal(t, r.Down, down)
	require.Equal(t, r.LeaseHolder, holder)
}

// A scenario that does not validate has no history, and says why.
func TestRecord_Invalid(t *testing.T) {
	r, h := Record(&Scenario{}, 1)
	require.Nil(t, h)
	require.False(t, r.Passed)
	require.NotEmpty(t, r.Failures)
}

// Of a large cluster only the views of a few nodes of each kind are recorded, so that its history fits into memory.
func TestRecord_LargeClusterWatchesAFewOfEachKind(t *testing.T) {
	s := parse(t, `
run-for: 60s
cluster: {nodes: 70}
steps:
  - {at: 10s, partition: [[n1, n2, n3, n4, n5, n6, n7]]}
  - {at: 12s, pause: n40, for: 1s}
`)
	require.Equal(t, []int{0, 1, 6, 7, 8, 69, 39}, s.watched())
	_, h := Record(s, 1)
	for i, watched := range h.Watched {
		require.Equal(t, slices.Contains(s.watched(), i), watched, h.Nodes[i])
	}
	seen := make(map[int]bool)
	for _, c := range h.Changes {
		if v, ok := c.What.(world.Viewed); ok {
			seen[v.Observer] = true
		}
	}
	require.Len(t, seen, len(s.watched()))
	require.Nil(t, split(t, "").watched(), "everybody in a small one")
}

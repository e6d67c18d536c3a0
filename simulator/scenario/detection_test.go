package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The model's times lie where stock Serf's were measured with its LAN profile: median seconds until every
// node across the cut is marked failed, by size of the cluster and of the side that was cut off; a majority
// needs 5 to 10. Package test/serf compares the distributions.
func TestDetection_LosingSideLearnsLastAsInSerf(t *testing.T) {
	for _, tc := range []struct {
		nodes, alone int
		seconds      float64
	}{{3, 1, 8}, {5, 2, 20}, {5, 1, 50}, {7, 1, 69}, {10, 1, 92}, {20, 1, 182}} {
		t.Run(fmt.Sprintf("%d of %d", tc.alone, tc.nodes), func(t *testing.T) {
			var majority, minority []time.Duration
			for seed := uint64(1); seed <= 41; seed++ {
				big, small := detect(t, tc.nodes, tc.alone, seed)
				majority, minority = append(majority, big), append(minority, small)
			}
			slices.Sort(majority)
			slices.Sort(minority)
			require.InEpsilon(t, tc.seconds, minority[20].Seconds(), 0.2)
			require.InDelta(t, 7.5, majority[20].Seconds(), 2.5)
		})
	}
}

// detect returns when the last one of each side has condemned the whole other side, counted from the cut.
func detect(t *testing.T, nodes, alone int, seed uint64) (big, small time.Duration) {
	t.Helper()
	var names [2][]string
	for i := range nodes {
		side := 0
		if i >= nodes-alone {
			side = 1
		}
		names[side] = append(names[side], fmt.Sprintf("n%d", i+1))
	}
	s := parse(t, fmt.Sprintf(`
run-for: 400s
cluster: {nodes: %d, split-brain-resolver: {stable-after: 10h, down-all-when-unstable: off, probe: {neighbours: 0}}}
steps: [{at: 10s, partition: [[%s], [%s]]}]`, nodes, strings.Join(names[0], ","),
		strings.Join(names[1], ",")))
	count := 0
	for _, e := range Run(s, seed).Events {
		if e.Kind != "detects" {
			continue
		}
		at, err := time.ParseDuration(e.At)
		require.NoError(t, err)
		count++
		if slices.Contains(names[0], e.Node) {
			big = at - 10*time.Second
		} else {
			small = at - 10*time.Second
		}
	}
	require.Equal(t, 2*alone*(nodes-alone), count)
	return big, small
}

// Own probes know no Lifeguard: with them both sides are quick.
func TestDetection_ProbesBoundTheLosingSide(t *testing.T) {
	s := parse(t, "run-for: 60s\ncluster: {nodes: 10, split-brain-resolver: {stable-after: 10h}}\nsteps: [{at: 10s, partition: [[n1]]}]")
	count := 0
	for _, e := range Run(s, 1).Events {
		if e.Kind == "detects" {
			at, err := time.ParseDuration(e.At)
			require.NoError(t, err)
			require.Less(t, at, 20*time.Second)
			count++
		}
	}
	require.Equal(t, 18, count)
}

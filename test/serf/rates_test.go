package serf_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/race"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// links are files about links that are cut one by one, lose packets or are slow. What comes of them is a
// matter of chance, so shares are compared: how often each set of survivors is left, and the median of how
// long it took.
var links = []struct{ name, file string }{
	{"one broken link among 5", "cluster: {nodes: 5}\nsteps: [{at: 10s, cut: [n1, n4]}]"},
	{"a bridge", "cluster: {nodes: 5}\nsteps: [{at: 10s, cut: [n1, n4]}, {at: 10s, cut: [n1, n5]}, {at: 10s, cut: [n2, n4]}, {at: 10s, cut: [n2, n5]}]"},
	{"one broken link among 20", "cluster: {nodes: 20}\nsteps: [{at: 10s, cut: [n3, n8]}]"},
	{"a lossy network", "cluster: {nodes: 5, network: {loss: 0.1}}\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]"},
	{"a lossy network, worse", "cluster: {nodes: 5, network: {loss: 0.3}}\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]"},
	{"a lossy network, without a cut", "cluster: {nodes: 5, network: {loss: 0.3}}\nsteps: []"},
	{"a member with lossy links", "cluster: {nodes: [{name: n1}, {name: n2}, {name: n3}, {name: n4}, {name: n5, zone: z}, {name: o}]}\n" +
		"steps: [{at: 10s, link: [n1, n5], loss: 0.6}, {at: 10s, link: [n2, n5], loss: 0.6}, {at: 10s, link: [n3, n5], loss: 0.6}, {at: 10s, link: [n4, n5], loss: 0.6}]"},
	{"slow", "cluster: {nodes: 5, network: {latency: 200ms, jitter: 100ms}}\nsteps: [{at: 10s, partition: [[n1, n2, n3], [n4, n5]]}]"},
}

// always is how many of them are played always; the others, which take minutes, when SBR_CALIBRATE asks for
// more.
const always = 2

// rateRuns is how often each is played over real Serf, and four times as often in the model; SBR_CALIBRATE=5
// makes fifty of it.
const rateRuns = 10

// Files about single links come to the same in the model and over real Serf, as often.
func TestLinks(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("plays hundreds of clusters of real Serf")
	}
	runs := rateRuns * max(more(t), 1)
	played := links
	if more(t) == 0 {
		played = links[:always]
	}
	for _, x := range played {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			s := parse(t, x.file+"\nrun-for: 180s")
			real, model := make(map[string]int), make(map[string]int)
			var realTimes, modelTimes []time.Duration
			for seed := uint64(1); seed <= uint64(runs); seed++ {
				o := play(t, s, seed)
				require.NoError(t, o.err)
				real[strings.Join(o.Survivors, " ")]++
				if o.Measures.Settled {
					realTimes = append(realTimes, o.Measures.Resolved)
				}
			}
			for seed := uint64(1); seed <= uint64(4*runs); seed++ {
				r := scenario.Judge(s, seed)
				model[strings.Join(r.Survivors, " ")]++
				if d, err := time.ParseDuration(r.ResolvedAfter); err == nil {
					modelTimes = append(modelTimes, d)
				}
			}
			t.Logf("%s\nserf  %v %v\nmodel %v %v", x.name, real, spread(realTimes), model, spread(modelTimes))
			for _, outcome := range keys(real, model) {
				is, says := float64(real[outcome])/float64(runs), float64(model[outcome])/float64(4*runs)
				require.LessOrEqual(t, math.Abs(is-says), allowed(runs), "%s: Serf %.2f, model %.2f", outcome, is, says)
			}
		})
	}
}

func keys(a, b map[string]int) (all []string) {
	for k := range a {
		all = append(all, k)
	}
	for k := range b {
		if a[k] == 0 {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}

func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "-"
	}
	slices.Sort(d)
	return fmt.Sprintf("%d resolved, %.1f / %.1f / %.1f", len(d), d[len(d)/10].Seconds(), d[len(d)/2].Seconds(),
		d[len(d)*9/10].Seconds())
}

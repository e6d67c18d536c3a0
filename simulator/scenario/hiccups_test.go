package scenario_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// hiccups are what passes by itself: no member need go down. Each writes the rest of a file about n members.
var hiccups = []struct {
	name  string
	write func(b *strings.Builder, n int, r *rand.Rand)
}{
	{"pauses", func(b *strings.Builder, n int, r *rand.Rand) { // of 1 to 8 s, of one member after the other, or two at once
		fmt.Fprint(b, "run-for: 120s\nsteps:\n")
		for at := 10; at < 70; at += 5 + r.IntN(15) {
			fmt.Fprintf(b, "- {at: %ds, pause: n%d, for: %dms}\n", at, 1+r.IntN(n), 1000+r.IntN(7000))
		}
	}},
	{"flapping link", func(b *strings.Builder, n int, r *rand.Rand) {
		fmt.Fprint(b, "run-for: 120s\nsteps:\n")
		x := 1 + r.IntN(n-1)
		for at := 10; at < 70; {
			fmt.Fprintf(b, "- {at: %ds, cut: [n%d, n%d]}\n", at, x, n)
			at += 1 + r.IntN(6)
			fmt.Fprintf(b, "- {at: %ds, heal: true}\n", at)
			at += 1 + r.IntN(6)
		}
	}},
	{"10 % loss", func(b *strings.Builder, _ int, _ *rand.Rand) { fmt.Fprint(b, "run-for: 120s\n") }},
	{"30 % loss", func(b *strings.Builder, _ int, _ *rand.Rand) { fmt.Fprint(b, "run-for: 120s\n") }},
	{"rolling restart", func(b *strings.Builder, n int, r *rand.Rand) { // of up to ten members, by their leave or by force
		var steps strings.Builder
		at := 10
		for i := range min(n, 10) {
			verb := [...]string{"leave", "crash"}[r.IntN(2)]
			back := at + 2 + r.IntN(4)
			fmt.Fprintf(&steps, "- {at: %ds, %s: n%d}\n- {at: %ds, restart: n%d}\n", at, verb, i+1, back, i+1)
			at = back + 3 + r.IntN(8)
		}
		fmt.Fprintf(b, "run-for: %ds\nsteps:\n%s", at+60, steps.String())
	}},
}

// hiccup is a file about n members, drawn from the seed.
func hiccup(t *testing.T, kind, n int, seed uint64, stableAfter string) *scenario.Scenario {
	t.Helper()
	loss := map[string]float64{"10 % loss": 0.1, "30 % loss": 0.3}[hiccups[kind].name]
	var b strings.Builder
	fmt.Fprintf(&b, "cluster: {nodes: %d, network: {loss: %g}, split-brain-resolver: {stable-after: %s}}\n",
		n, loss, stableAfter)
	hiccups[kind].write(&b, n, rand.New(rand.NewPCG(seed, uint64(kind))))
	s, err := scenario.Parse("hiccup.yaml", []byte(b.String()))
	require.NoError(t, err, b.String())
	return s
}

// With the default a hiccup downs no member that need not go down; beside it stable-after: auto, which is
// faster. SBR_HICCUPS=N plays N runs, of all hiccups in turn, for each size of SBR_HICCUP_SIZES (5); -v shows
// the table, beside it the resolution of a clean cut.
func TestHiccups_TheDefaultDownsNobody(t *testing.T) {
	runs, sizes := 50, []int{5}
	_, _ = fmt.Sscan(os.Getenv("SBR_HICCUPS"), &runs)
	if text := os.Getenv("SBR_HICCUP_SIZES"); text != "" {
		sizes = nil
		for one := range strings.SplitSeq(text, ",") {
			var n int
			_, err := fmt.Sscan(one, &n)
			require.NoError(t, err)
			sizes = append(sizes, n)
		}
	}
	for _, n := range sizes {
		rates := map[string]float64{}
		for _, stableAfter := range []string{"20s", "auto"} {
			needless := playHiccups(t, n, runs, stableAfter)
			all := 0
			var parts []string
			for kind, k := range needless {
				all += k
				parts = append(parts, fmt.Sprintf("%s %d", hiccups[kind].name, k))
			}
			low, high := wilson(all, runs)
			rates[stableAfter] = float64(all) / float64(runs)
			t.Logf("%3d members, %-4s  downed without need in %d of %d runs: %.3f %% (95 %%: %.3f to %.3f); %s; a clean cut resolves in %s",
				n, stableAfter, all, runs, 100*rates[stableAfter], 100*low, 100*high, strings.Join(parts, ", "),
				resolution(t, n, stableAfter, min(runs, 200)))
		}
		require.LessOrEqual(t, rates["20s"], 0.001, "%d members, the default", n)
	}
}

// playHiccups counts, for each hiccup, the runs that downed a member.
func playHiccups(t *testing.T, n, runs int, stableAfter string) []int {
	t.Helper()
	needless := make([]int, len(hiccups))
	var mu sync.Mutex
	cores.All(runs, func(i int) {
		kind, seed := i%len(hiccups), uint64(i+1)
		r := scenario.Judge(hiccup(t, kind, n, seed, stableAfter), seed)
		mu.Lock()
		defer mu.Unlock()
		for _, f := range r.Failures {
			t.Errorf("%s, %d members, seed %d: %v", hiccups[kind].name, n, seed, f)
		}
		if len(r.Survivors) < n {
			needless[kind]++
		}
	})
	return needless
}

// resolution is how long the cut of a third of the members takes.
func resolution(t *testing.T, n int, stableAfter string, runs int) string {
	t.Helper()
	var small []string
	for i := n - max(1, n/3); i < n; i++ {
		small = append(small, fmt.Sprintf("n%d", i+1))
	}
	var large []string
	for i := range n - len(small) {
		large = append(large, fmt.Sprintf("n%d", i+1))
	}
	s, err := scenario.Parse("cut.yaml", fmt.Appendf(nil,
		"cluster: {nodes: %d, split-brain-resolver: {stable-after: %s}}\nrun-for: 180s\n"+
			"steps: [{at: 10s..12s, partition: [[%s], [%s]]}]\n", n, stableAfter, strings.Join(large, ", "), strings.Join(small, ", ")))
	require.NoError(t, err)
	took := make([]time.Duration, runs)
	cores.All(runs, func(i int) {
		r := scenario.Judge(s, uint64(i+1))
		took[i], _ = time.ParseDuration(cmp.Or(r.ResolvedAfter, "1h"))
	})
	slices.Sort(took)
	return fmt.Sprintf("p50 %.1f s, p99 %.1f s", took[runs/2].Seconds(), took[runs*99/100].Seconds())
}

// wilson is the interval in which a rate lies with 95 % confidence, of which k of n were seen.
func wilson(k, n int) (low, high float64) {
	const z = 1.96
	p, m := float64(k)/float64(n), float64(n)
	middle, half := p+z*z/(2*m), z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (middle-half)/(1+z*z/m)), (middle + half) / (1 + z*z/m)
}

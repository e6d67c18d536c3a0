package serf_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/race"
)

// The tolerance: at least nine of ten cuts of real Serf are where the model puts them, give or take a fifth
// and half a second. A share outside is the distance between the two distributions (Kolmogorov-Smirnov) after
// the model's was stretched and shrunk by that much. What the model leaves out: broadcasts that ride on
// pings, a network that loses packets, a partition that changes while it is being noticed.
const (
	factor = 1.2
	slack  = 0.5 // seconds
	astray = 0.1
	// chance is how often a comparison may fail although the model is right, for lack of runs.
	chance = 1e-5
	// modelRuns are enough for the model's own error to be small beside that.
	modelRuns = 400
)

// calibrated are the shapes that are compared, and how often each is cut; a shape that takes long only when
// SBR_CALIBRATE asks for more.
var calibrated = []struct {
	shape
	runs int
	long bool
}{
	{shape{"serf-lan", 2, 1, false}, 40, false},
	{shape{"serf-lan", 3, 1, false}, 40, false},
	{shape{"serf-lan", 2, 2, false}, 40, false},
	{shape{"serf-lan", 4, 1, false}, 40, false},
	{shape{"serf-lan", 3, 2, false}, 40, false},
	{shape{"serf-lan", 5, 1, false}, 30, false},
	{shape{"serf-lan", 3, 3, false}, 30, false},
	{shape{"serf-lan", 5, 4, false}, 20, false},
	{shape{"serf-lan", 9, 1, false}, 20, false},
	{shape{"serf-lan", 10, 5, false}, 15, false},
	{shape{"serf-lan", 10, 10, false}, 15, true},
	{shape{"serf-lan", 18, 2, false}, 15, true},
	{shape{"serf-lan", 19, 1, false}, 12, false},
	{shape{"serf-lan", 20, 10, false}, 12, true},
	{shape{"serf-wan", 3, 2, false}, 30, false},
	{shape{"serf-wan", 9, 1, false}, 15, false},
	{shape{"serf-wan", 10, 5, false}, 15, true},
	{shape{"serf-local", 3, 2, false}, 30, false},
	{shape{"serf-local", 9, 1, false}, 15, false},
	{shape{"serf-local", 10, 5, false}, 15, true},
	{shape{"serf-lan", 2, 1, true}, 20, false},
	{shape{"serf-lan", 4, 1, true}, 15, false},
	{shape{"serf-lan", 3, 2, true}, 15, false},
	{shape{"serf-lan", 9, 1, true}, 12, true},
	{shape{"serf-lan", 10, 5, true}, 12, true},
	{shape{"serf-lan", 19, 1, true}, 12, true},
	{shape{"serf-lan", 20, 10, true}, 12, true},
}

// more is how many times more often shapes are cut; zero: as usual, and without the long ones. SBR_CALIBRATE
// sets it.
func more(t *testing.T) int {
	text := os.Getenv("SBR_CALIBRATE")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "SBR_CALIBRATE is how many times more often shapes are cut")
	require.Positive(t, n)
	return n
}

// seconds are what many cuts took, in order.
type seconds []float64

func (s seconds) at(share float64) float64 {
	return s[min(int(share*float64(len(s))), len(s)-1)]
}

// shareBelow is the share of cuts that took no longer than x.
func (s seconds) shareBelow(x float64) float64 {
	n, _ := slices.BinarySearchFunc(s, x, func(a, x float64) int {
		if a <= x {
			return -1
		}
		return 1
	})
	return float64(n) / float64(len(s))
}

// outside is the share of real cuts that no reading of the tolerance explains: the largest distance of their
// distribution from the band that the model's makes when it is stretched and shrunk by the tolerance.
func outside(real, model seconds) (worst float64) {
	for i, x := range real {
		before, upTo := float64(i)/float64(len(real)), float64(i+1)/float64(len(real))
		// more real cuts are over by x than model cuts by a later time
		early := upTo - model.shareBelow(x*factor+slack)
		// fewer real cuts are over before x than model cuts by an earlier time
		late := model.shareBelow((x-slack)/factor) - before
		worst = max(worst, early, late)
	}
	return worst
}

// allowed is what outside may be with so many runs (Dvoretzky, Kiefer, Wolfowitz).
func allowed(runs int) float64 {
	return astray + math.Sqrt(math.Log(2/chance)/(2*float64(runs)))
}

var measures = [4]string{"larger side, first", "larger side, all", "smaller side, first", "smaller side, all"}

// compare cuts a shape so many times over real Serf, and in the model: what each of the measures was.
func (s shape) compare(t *testing.T, runs int) (real, model [4]seconds) {
	add := func(to *[4]seconds, x cutTimes) {
		for i, d := range [4]time.Duration{x[0].first, x[0].all, x[1].first, x[1].all} {
			to[i] = append(to[i], d.Seconds())
		}
	}
	for seed := range runs {
		add(&real, s.real(t, uint64(seed+1)))
	}
	for seed := range modelRuns {
		add(&model, s.model(t, uint64(seed+1)))
	}
	for i := range measures {
		slices.Sort(real[i])
		slices.Sort(model[i])
	}
	return real, model
}

// The model finds a cut when real Serf finds it: the distributions of the times until the first member across
// the cut was condemned, and until all were by all, agree within the tolerance, on both sides.
func TestCalibration(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("cuts hundreds of clusters of real Serf; TestScenarios compares outcomes")
	}
	times := more(t)
	for _, x := range calibrated {
		if x.long && times == 0 {
			continue
		}
		t.Run(x.String(), func(t *testing.T) {
			t.Parallel()
			runs := x.runs * max(times, 1)
			real, model := x.compare(t, runs)
			for m, name := range measures {
				d, limit := outside(real[m], model[m]), allowed(runs)
				t.Logf("%s: real Serf %s, model %s, %.0f %% outside", name, real[m], model[m], 100*max(d, 0))
				assert.LessOrEqual(t, d, limit, "%s: more is outside than %d cuts explain", name, runs)
			}
		})
	}
}

// String has seconds after the cut: the 10th percentile, the median and the 90th percentile of the cuts.
func (s seconds) String() string {
	return fmt.Sprintf("%.1f / %.1f / %.1f", s.at(0.1), s.at(0.5), s.at(0.9))
}

// The comparison finds what it is made for: a model that is a quarter off, or right in the middle and wrong
// at the ends.
func TestCalibration_FindsAModelThatIsWrong(t *testing.T) {
	var right, slow, narrow, mixed seconds
	for i := range 200 {
		x := 20 + 20*float64(i)/200
		right, slow, narrow = append(right, x), append(slow, 1.5*x), append(narrow, 29.5+float64(i)/200)
		if mixed = append(mixed, x); i%2 == 0 {
			mixed[i] = 100
		}
	}
	slices.Sort(mixed)
	require.Zero(t, outside(right, right))
	require.LessOrEqual(t, outside(right, scaled(right, 1.15)), 0.0)
	require.LessOrEqual(t, outside(scaled(right, 1.15), right), 0.0)
	for name, model := range map[string]seconds{"slow": slow, "mixed": mixed} {
		require.Greater(t, outside(right, model), allowed(100), name)
		require.Greater(t, outside(model, right), allowed(100), name)
	}
	require.Greater(t, outside(right, narrow), 0.1)
	require.InDelta(t, 0.35, allowed(100), 0.01)
}

func scaled(s seconds, by float64) (out seconds) {
	for _, x := range s {
		out = append(out, by*x)
	}
	return out
}

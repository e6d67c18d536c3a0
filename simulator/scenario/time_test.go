package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ranged = `
name: ranged
steps:
  - {at: 20s..30s, partition: [[n1, n2, n3], [n4, n5]]}
  - {at: 10s..40s, pause: n2, for: 500ms..5s}
  - {at: 15s, lease-store: down, nodes: [n4], for: 3s..4s}
run-for: 3m
`

// Each seed draws times of its own, from the whole range and never outside of it; a time that is no range
// stays.
func TestDrawn_EachSeedDrawsFromTheRanges(t *testing.T) {
	s := parse(t, ranged)
	require.Equal(t, &Time{From: 20 * time.Second, Spread: 10 * time.Second}, s.Steps[0].At)
	cuts, early := make(map[time.Duration]bool), 0
	for seed := range uint64(1000) {
		d := s.Drawn(seed)
		require.Equal(t, d, s.Drawn(seed), "the seed decides")
		require.Equal(t, Exactly(15*time.Second), d.Steps[2].At)
		for i, st := range d.Steps {
			for _, x := range [][2]*Time{{s.Steps[i].At, st.At}, {s.Steps[i].For, st.For}} {
				if x[0] == nil {
					require.Nil(t, x[1])
					continue
				}
				require.Zero(t, x[1].Spread)
				require.GreaterOrEqual(t, x[1].From, x[0].From)
				require.LessOrEqual(t, x[1].From, x[0].Last())
				require.Zero(t, x[1].From%time.Millisecond)
			}
		}
		cuts[d.Steps[0].At.From] = true
		if d.Steps[1].At.From < d.Steps[0].At.From {
			early++
		}
	}
	require.Greater(t, len(cuts), 900)
	require.InDelta(t, 500, early, 60, "ranges that overlap bring steps in either order")
	require.Equal(t, 20*time.Second, s.Steps[0].At.From, "the file stays as it was")
	fixed := s.Drawn(1)
	require.Same(t, fixed, fixed.Drawn(2), "nothing is left to draw")
}

// What one step draws does not depend on what the others are.
func TestDrawn_StepsDoNotDisturbEachOther(t *testing.T) {
	s := parse(t, ranged)
	other := parse(t, strings.Replace(ranged, "at: 20s..30s", "at: 20s", 1))
	for seed := range uint64(20) {
		require.Equal(t, s.Drawn(seed).Steps[1:], other.Drawn(seed).Steps[1:])
	}
}

// A run says what it has drawn, and the file with these times in place of the ranges is the same run.
func TestDrawn_RunSaysWhatItDrew(t *testing.T) {
	s := parse(t, ranged)
	for seed := range uint64(20) {
		d, run := s.Drawn(seed), Run(s, seed)
		var said []string
		for _, e := range run.Events {
			if e.Kind == "drawn" {
				require.Equal(t, "0s", e.At)
				said = append(said, e.Detail)
			}
		}
		require.Equal(t, []string{
			"steps[0].at: " + d.Steps[0].At.String() + " of 20s..30s", "steps[1].at: " + d.Steps[1].At.String() + " of 10s..40s",
			"steps[1].for: " + d.Steps[1].For.String() + " of 500ms..5s", "steps[2].for: " + d.Steps[2].For.String() + " of 3s..4s",
		}, said)
		again := Run(parse(t, string(Format(d))), seed)
		require.Equal(t, run.TraceHash, again.TraceHash)
		require.Equal(t, run.Events[len(said):], again.Events)
		require.Equal(t, run, Run(s, seed))
		require.Equal(t, run.TraceHash, Judge(s, seed).TraceHash)
		require.Equal(t, run.ResolvedAfter, again.ResolvedAfter)
	}
}

func TestParse_RefusesBadRanges(t *testing.T) {
	for _, tc := range []struct{ name, step, want string }{
		{"half a range", "at: 10s.., heal: true", `steps[0].at: expected a duration such as 20s, or a range such as 10s..20s, found "10s.."`},
		{"no range", "at: .., heal: true", `steps[0].at: expected a duration such as 20s, or a range such as 10s..20s, found ".."`},
		{"without units", "at: 10..20, heal: true", `steps[0].at: expected a duration such as 20s, or a range such as 10s..20s, found "10..20"`},
		{"backwards", "at: 20s..10s, heal: true", "steps[0].at: is 20s..10s: it ends before it begins"},
		{"one time", "at: 10s..10s, heal: true", "steps[0].at: is 10s..10s, which is one time: write 10s"},
		{"before the start", "at: -5s..5s, heal: true", "steps[0].at: is -5s..5s: it begins before the start"},
		{"after the end", "at: 50s..70s, heal: true", "steps[0].at: is 50s..1m10s: the run ends at 1m0s (run-for)"},
		{"a list", "at: [10s, 20s], heal: true", "steps[0].at: expected a duration such as 20s, or a range such as 10s..20s, found a list"},
		{"no unit", "at: 10, heal: true", "found the number 10: a unit is missing, such as 10s, or a range such as 10s..20s"},
		{"a pause of nothing", "at: 1s, pause: n1, for: 0s..5s", "steps[0].for: is not set, or 0s: it must be more than 0s"},
		{"a pause for ever", "at: 1s, pause: n1, for: 5s..9999h", "steps[0].for: is 5s..9999h0m0s: it must be at most 1000h0m0s"},
		{"restored from what may be the future", "at: 1s..5s, lease-store: {restore: 2s}", "steps[0].lease-store.restore: is 2s: the store cannot become"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte("run-for: 1m\nsteps:\n  - {"+tc.step+"}\n"))
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "x.yaml:3: ")
			require.NotContains(t, err.Error(), "\n", "one problem, one line")
		})
	}
	s := Default()
	s.RunFor = time.Minute
	yes := true
	s.Steps = []Step{{At: &Time{From: 5 * time.Second, Spread: -time.Second}, Heal: &yes}}
	require.ErrorContains(t, s.Validate(), "a range must end after it begins")
}

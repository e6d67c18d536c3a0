package walk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// place is a state of a model that goes east or north over a grid, or waits. steps is what led there: not
// part of its key, unless the model says so.
type place struct {
	east, north, steps int
	now                time.Duration
}

// grid is that model.
type grid struct {
	search  *walk.Search[place]
	size    int
	counted bool // steps count
	mined   func(p place) bool
	// rest is how long it takes until all is well, once nothing goes wrong; negative: for ever. stuck:
	// waiting changes nothing.
	rest, bound time.Duration
	stuck       bool
}

const (
	goesEast walk.Kind = iota + 1
	goesNorth
)

func (g *grid) First(p *place)       { *p = place{} }
func (g *grid) Copy(to, from *place) { *to = *from }

func (g *grid) AppendKey(b []byte, p *place) []byte {
	b = append(b, byte(p.east), byte(p.north), byte(p.now/time.Second))
	if g.counted {
		b = append(b, byte(p.steps))
	}
	return b
}

func (g *grid) Moves(to []walk.Move, p *place) []walk.Move {
	if p.east < g.size-1 {
		to = append(to, walk.Move{Kind: goesEast})
	}
	if p.north < g.size-1 {
		to = append(to, walk.Move{Kind: goesNorth})
	}
	if g.counted && p.steps == 0 {
		to = append(to, walk.Move{Kind: goesNorth, At: 1}) // two at once
	}
	if len(to) == 0 {
		g.search.Rests++
		g.search.Settle(p, g.fair, g.bound)
	}
	return to
}

func (g *grid) Do(p *place, mv walk.Move) {
	p.steps++
	switch mv.Kind {
	case goesEast:
		p.east++
	case goesNorth:
		p.north += 1 + int(mv.At)
	case walk.Waits:
		p.now += time.Second
	}
	g.search.Started()
	if g.search.Telling() {
		g.search.Tell("the machine %s", "goes on")
	}
	if g.mined != nil && g.mined(*p) {
		g.search.Broken(p, "A", fmt.Sprintf("%d,%d is mined", p.east, p.north))
	}
}

func (g *grid) fair(p *place) (walk.Move, bool) {
	return walk.Move{Kind: walk.Waits}, g.rest < 0 || p.now < g.rest
}

func (g *grid) Pass(*place) time.Duration {
	if g.stuck {
		return 0
	}
	return time.Second
}

func (g *grid) Standing(p *place) string { return fmt.Sprintf("at %d,%d", p.east, p.north) }
func (g *grid) Describe(_ *place, mv walk.Move) string {
	return map[walk.Kind]string{goesEast: "east", goesNorth: "north"}[mv.Kind]
}

func (g *grid) walk(ctx context.Context, limit int) walk.Report {
	g.search = walk.NewSearch(g, limit)
	return g.search.Run(ctx)
}

func TestSearch_VisitsEachStateOnce(t *testing.T) {
	r := (&grid{size: 3}).walk(t.Context(), 0)
	require.Equal(t, walk.Report{Complete: true,
		Counts: walk.Counts{States: 9, Edges: 12, Rests: 1, Starts: 12}}, r)
}

func TestSearch_TellsStatesApartByTheirKeyOnly(t *testing.T) {
	merged := (&grid{size: 4}).walk(t.Context(), 0)
	apart := (&grid{size: 4, counted: true}).walk(t.Context(), 0)
	require.Equal(t, 16, merged.States, "whatever the way there")
	require.Greater(t, apart.States, merged.States, "the same place after another number of steps")
}

func TestSearch_FindsWhatIsPlantedAndTellsTheWay(t *testing.T) {
	g := &grid{size: 4, mined: func(p place) bool { return p.east == 2 && p.north == 3 }}
	r := g.walk(t.Context(), 0)
	require.NotEmpty(t, r.Broken)
	for _, v := range r.Broken {
		require.Equal(t, "A", v.Promise)
		require.Equal(t, "2,3 is mined", v.Text)
		told := strings.Join(v.Steps, "\n")
		require.Equal(t, 2, strings.Count(told, " east"), "%s", told)
		require.Equal(t, 3, strings.Count(told, " north"))
		require.Equal(t, 5, strings.Count(told, "the machine goes on"), "what happens at each step is told, too")
	}
	require.Equal(t, 2, len(r.Broken), "by each way that leads there")
	require.True(t, r.Complete)
}

func TestSearch_EndsAtTheThirdViolation(t *testing.T) {
	r := (&grid{size: 9, mined: func(p place) bool { return p.east > 0 && p.north > 0 }}).walk(t.Context(), 0)
	require.Len(t, r.Broken, 3)
	require.False(t, r.Complete)
}

func TestSearch_RespectsItsBounds(t *testing.T) {
	t.Run("states", func(t *testing.T) {
		r := (&grid{size: 9}).walk(t.Context(), 10)
		require.False(t, r.Complete)
		require.Equal(t, 11, r.States, "the one that is too many is seen, and left")
	})
	t.Run("as many as there are", func(t *testing.T) {
		require.True(t, (&grid{size: 3}).walk(t.Context(), 9).Complete)
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := (&grid{size: 100}).walk(ctx, 0)
		require.False(t, r.Complete)
		require.Less(t, r.States, 2048, "it is looked at now and then")
	})
}

func TestSearch_AllIsWellWithinTheBound(t *testing.T) {
	for name, c := range map[string]struct {
		rest  time.Duration
		stuck bool
		text  string
	}{
		"in time":              {3 * time.Second, false, ""},
		"late":                 {5 * time.Second, false, "all is well only 5s after all faults are over"},
		"never":                {-1, false, "not all is well yet: at 1,1"},
		"nothing will change":  {-1, true, "0s after all faults are over, and 1 steps, not all is well yet"},
		"a moment before that": {4 * time.Second, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := (&grid{size: 2, rest: c.rest, stuck: c.stuck, bound: 4 * time.Second}).walk(t.Context(), 0)
			if c.text == "" {
				require.Empty(t, r.Broken)
				require.Equal(t, c.rest, r.Slowest)
				return
			}
			require.Len(t, r.Broken, 1)
			require.Equal(t, "C", r.Broken[0].Promise)
			require.Contains(t, r.Broken[0].Text, c.text)
		})
	}
}

func TestSearch_TellsHowItGoesOnWhereAllShouldBecomeWell(t *testing.T) {
	g := &grid{size: 2, rest: 2 * time.Second, bound: time.Minute,
		mined: func(p place) bool { return p.now > time.Second }}
	r := g.walk(t.Context(), 0)
	require.NotEmpty(t, r.Broken)
	require.Equal(t, "1,1 is mined (2s later, on the way to rest)", r.Broken[0].Text)
	told := r.Broken[0].Steps
	require.Contains(t, told[len(told)-2], "2s ")
	require.Equal(t, "then: at 1,1", told[len(told)-1])
}

func TestReport_Text(t *testing.T) {
	c := walk.Counts{States: 3, Edges: 5, Starts: 1, Slowest: 4 * time.Second}
	sum := c.Add(walk.Counts{States: 1, Edges: 1, Starts: 1, Slowest: 2 * time.Second})
	require.Equal(t, walk.Counts{States: 4, Edges: 6, Starts: 2, Slowest: 4 * time.Second}, sum)
	v := walk.Violation{Promise: "A", Text: "two at once", Steps: []string{"0s a starts", "2s b starts"}}
	require.Equal(t, "A: two at once\n  0s a starts\n  2s b starts\n", v.String())
}

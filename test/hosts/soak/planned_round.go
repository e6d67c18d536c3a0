//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// plannedCalm is for the changes that follow from the ones before: the oldest member takes the program
	// back.
	plannedCalm = 2 * time.Second
	// awayFor is for how long a member that has left stays away.
	awayFor = time.Second
)

// planned plays a round in which members give the program away, and nothing goes wrong.
func (g *game) planned(ctx context.Context) error {
	err := g.farewells(ctx)
	if err == nil {
		return errors.Join(g.measure(), g.judge(ctx), g.account(ctx))
	}
	return errors.Join(err, g.cluster.Chain().Verify(), g.account(ctx))
}

// farewells lets all of the plan happen, and waits until the program has found its place again.
func (g *game) farewells(ctx context.Context) (err error) {
	if g.log.begin, err = g.ledger.Mark(ctx, "begin"); err != nil {
		return err
	}
	if g.log.ready, err = g.calm(ctx, "ready"); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	runs, err := g.ledger.Work(within, resource, g.log.ready, "")
	if err != nil {
		return err
	}
	g.plan.swap(g.plan.victim(), runs.Member)
	g.result.Plan, g.result.Text = *g.plan, g.plan.String()
	if g.log.cut, err = g.ledger.Mark(ctx, "farewells"); err != nil {
		return err
	}
	g.cutAt = time.Now()
	g.last, g.healedAt = g.cutAt, g.cutAt
	var all tasks
	for _, f := range g.plan.Single.Farewells {
		all.start(func() error {
			if err := g.farewell(ctx, f); err != nil {
				return fmt.Errorf("%v: %w", f, err)
			}
			return nil
		})
	}
	if err := all.wait(); err != nil {
		return err
	}
	g.result.Up = slices.Clone(hosts)
	if g.log.end, err = g.calm(ctx, "end"); err != nil {
		return err
	}
	return g.works(ctx, g.log.end, moveWithin)
}

// farewell lets one host give the program away; a member that has left is back when it returns.
func (g *game) farewell(ctx context.Context, f farewell) error {
	if !g.sleepUntil(ctx, f.At) {
		return context.Cause(ctx)
	}
	m := g.cluster.Member(f.Host)
	if !f.Leaves {
		within, cancel := context.WithTimeout(ctx, moveWithin)
		defer cancel()
		_, err := m.Resign(within)
		return err
	}
	if err := g.load.leave(ctx, g.stage, f.Host, g.plan.Single.InPeace); err != nil {
		return err
	}
	slept(ctx, awayFor)
	g.cluster.Restore(f.Host)
	defer m.SetRestart(false)
	within, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	return g.cluster.WaitWhole(within)
}

// calm waits until the program could run everywhere, and the oldest member has had time to take it.
func (g *game) calm(ctx context.Context, what string) (at time.Duration, err error) {
	within, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	if err := g.load.settled(within, g.stage); err != nil {
		return 0, err
	}
	if !slept(within, plannedCalm) {
		return 0, context.Cause(within)
	}
	return g.ledger.Mark(ctx, what)
}

// What a round of planned changes is about. What was stopped starts again, and the oldest member takes the
// program back: that is a planned change as well.
const (
	resignScene   scene = "sbr run is stopped"
	departScene   scene = "its member leaves"
	togetherScene scene = "several sbr run are stopped at once"
	chaseScene    scene = "others are stopped during the change"
	stormScene    scene = "four are stopped within 1.2 s"
	exodusScene   scene = "two members leave within 1 s"
)

// plannedScenes are in the order of the tables; the first ones change one thing at a time.
var plannedScenes = []scene{resignScene, departScene, togetherScene, chaseScene, stormScene, exodusScene}

// single reports whether one member changes at a time.
func (s scene) single() bool { return s == resignScene || s == departScene }

// farewell makes one host give the program away, At so long after the first one.
type farewell struct {
	Host string `json:"host"`
	At   span   `json:"at"`
	// Leaves: the whole member leaves, and comes back. Otherwise `sbr run` alone is stopped.
	Leaves bool `json:"leaves,omitempty"`
}

// ofPlanned keeps what is drawn for planned changes apart from what is drawn for the rest.
const ofPlanned = 3 << 32

// newPlannedPlan is the plan of a round in which nothing goes wrong: each other one has a lease. The first
// farewell is that of the host on which the program runs.
func newPlannedPlan(seed uint64, round int) plan {
	p := newPlan(seed, round)
	p.quiet()
	d := dice{rand.New(rand.NewPCG(seed, ofPlanned|uint64(round)))}
	s := &singlePlan{Guard: guards[(round+1)%2], Aim: true, InPeace: d.IntN(2) == 0}
	p.Single = s
	h := slices.Clone(hosts)
	d.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
	s.Farewells = []farewell{{Host: h[0]}}
	add := func(n int, within time.Duration) {
		for _, name := range h[1 : 1+n] {
			s.Farewells = append(s.Farewells, farewell{Host: name,
				At: span(time.Duration(d.Int64N(int64(within/time.Millisecond)+1)) * time.Millisecond)})
		}
	}
	switch x := d.IntN(100); {
	case x < 34:
		s.Scene = resignScene
	case x < 60:
		s.Scene = departScene
		s.Farewells[0].Leaves = true
	case x < 70:
		s.Scene = togetherScene
		add(1+d.IntN(3), 0)
	case x < 80:
		s.Scene = chaseScene
		add(1+d.IntN(3), 500*time.Millisecond)
	case x < 90:
		s.Scene = stormScene
		add(3, 1200*time.Millisecond)
	default:
		s.Scene = exodusScene
		add(1, time.Second)
		for i := range s.Farewells {
			s.Farewells[i].Leaves = true
		}
	}
	return p
}

func (f farewell) String() string {
	what := "stop"
	if f.Leaves {
		what = "leave"
	}
	return fmt.Sprintf("%s %s at %v", what, f.Host, f.At)
}

// farewells are those of a plan, on one line.
func (s *singlePlan) farewells() string {
	texts := make([]string, len(s.Farewells))
	for i, f := range s.Farewells {
		texts[i] = f.String()
	}
	return strings.Join(texts, " + ")
}

// slowMove is a change that took longer than is promised.
type slowMove struct {
	Round int
	Scene scene
	Move  move
}

// plannedSummary is what rounds of planned changes have shown.
type plannedSummary struct {
	Rows []movesRow
	// Single and Several sum up the scenes in which one member changes, and the others.
	Single  movesRow
	Several movesRow
	Slow    []slowMove
}

// summarizePlanned sums up rounds of planned changes; nil: there were none.
func summarizePlanned(results []result) *plannedSummary {
	planned := slices.DeleteFunc(slices.Clone(results), func(r result) bool {
		return r.Single == nil || !r.Plan.Single.planned()
	})
	if len(planned) == 0 {
		return nil
	}
	s := &plannedSummary{Slow: []slowMove{}}
	// row is over the changes that belong to what the rounds were about.
	row := func(name string, of func(*singlePlan) bool) (x movesRow) {
		var own []move
		rounds := 0
		for _, r := range planned {
			if p := r.Plan.Single; of(p) {
				rounds++
				own = append(own, r.ownMoves()...)
			}
		}
		x = movesRowOf(cause(name), "", own)
		x.Rounds = rounds
		return x
	}
	for _, x := range plannedScenes {
		for _, g := range guards {
			r := row(string(x), func(p *singlePlan) bool { return p.Scene == x && p.Guard == g })
			r.Guard = g
			s.Rows = append(s.Rows, r)
		}
	}
	s.Single = row("one at a time, in all", func(p *singlePlan) bool { return p.Scene.single() })
	s.Several = row("several at a time, in all", func(p *singlePlan) bool { return !p.Scene.single() })
	for _, r := range planned {
		for _, m := range r.ownMoves() {
			if m.Gap > handOverTime.Seconds() {
				s.Slow = append(s.Slow, slowMove{r.Plan.Round, r.Plan.Single.Scene, m})
			}
		}
	}
	slices.SortStableFunc(s.Slow, func(a, b slowMove) int { return a.Round - b.Round })
	return s
}

// ownMoves are the changes that belong to what the round was about.
func (r *result) ownMoves() []move {
	of := cause(r.Plan.Single.Scene)
	return slices.DeleteFunc(slices.Clone(r.Single.Moves), func(m move) bool { return m.Cause != of })
}

// late reports whether changes of one member took longer than is promised, but for one in a hundred.
func (s *plannedSummary) late() bool { return s != nil && s.Single.Gap.P99 > handOverTime.Seconds() }

func (s *plannedSummary) table() table {
	t := table{{"what happened", "kept in one place by", "rounds", "changes", "p50", "p99",
		"max", "at most " + handOverTime.String()}}
	for _, x := range append(slices.Clone(s.Rows), s.Single, s.Several) {
		if x.Gap.Count == 0 {
			continue
		}
		share := fmt.Sprintf("%d (%.1f %%)", x.Prompt, 100*float64(x.Prompt)/float64(x.Gap.Count))
		t = append(t, []string{
			string(x.Cause), string(x.Guard), strconv.Itoa(x.Rounds), strconv.Itoa(x.Gap.Count),
			short(x.Gap.P50), short(x.Gap.P99), short(x.Gap.Max), share,
		})
	}
	return t
}

// slow are the changes that took longer than is promised, one a line.
func (s *plannedSummary) slow() (lines []string) {
	for _, x := range s.Slow {
		lines = append(lines, fmt.Sprintf("round %d, %s, %s to %s: %s", x.Round, x.Scene, x.Move.From, x.Move.To,
			short(x.Move.Gap)))
	}
	return lines
}

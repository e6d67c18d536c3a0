package explore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var _ sbr.Strategy = (*walkNotes)(nil)

// rules gives a walk the default rules.
func rules(o Walk) Walk {
	o.Resolver, o.Strategy = sbr.DefaultConfig(),
		strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	return o
}

// smallWalks are walks in which every kind of fault occurs.
func smallWalks() map[string]Walk {
	lone, halves, three, singles := [][]int{{0, 1, 2}, {3}}, [][]int{{0, 1}, {2, 3}}, [][]int{{0, 1}, {2}},
		[][]int{{0}, {1}, {2}}
	apart := []time.Duration{2 * time.Second, 0}
	return map[string]Walk{
		"2-1 lost, crash":          rules(Walk{Sides: three, Faults: Faults{Lost: 1, Crashes: 1}}),
		"2-1 lost twice":           rules(Walk{Sides: three, Faults: Faults{Lost: 2}}),
		"2-1 lost, crash, late":    rules(Walk{Sides: three, Faults: Faults{Lost: 1, Crashes: 1}, LateCut: true}),
		"2-1 watched":              rules(Walk{Sides: three, Faults: Faults{Lost: 1, Crashes: 1}, Watch: true}),
		"2-1 paused":               rules(Walk{Sides: three, Faults: Faults{Pauses: 1}, Noticed: apart}),
		"2-1 no store for one":     rules(Walk{Sides: three, Faults: Faults{Lost: 1, Crashes: 1}, NoStore: []int{0}}),
		"2-1 removed":              rules(Walk{Sides: three, Faults: Faults{Removals: 1, Lost: 1}, Noticed: apart}),
		"2-1 removed, paused":      rules(Walk{Sides: three, Faults: Faults{Removals: 2, Pauses: 1}, Noticed: apart}),
		"2-1 left, removed":        rules(Walk{Sides: three, Faults: Faults{Leaves: 1, Removals: 1, Lost: 1}}),
		"2-2 removed":              rules(Walk{Sides: halves, Faults: Faults{Removals: 2}, Noticed: apart}),
		"2-1 watched, forgotten":   rules(Walk{Sides: singles[:2], Faults: Faults{Forgets: 1}, Watch: true}),
		"1-1-1 lost, crash":        rules(Walk{Sides: singles, Faults: Faults{Lost: 1, Crashes: 1}}),
		"2-2 lost":                 rules(Walk{Sides: halves, Faults: Faults{Lost: 1}, Noticed: apart}),
		"2-2 crash":                rules(Walk{Sides: halves, Faults: Faults{Crashes: 1}, Noticed: []time.Duration{0, 75 * time.Second}}),
		"2-2 watched":              rules(Walk{Sides: halves, Faults: Faults{Lost: 1}, Watch: true, Noticed: apart}),
		"3-1 lost":                 rules(Walk{Sides: lone, Faults: Faults{Lost: 1}}),
		"3-1 crash":                rules(Walk{Sides: lone, Faults: Faults{Crashes: 1}, Noticed: apart}),
		"3-1 no store for a side":  rules(Walk{Sides: lone, Faults: Faults{Crashes: 1}, NoStore: []int{0, 1, 2}}),
		"3-1 no store for a loser": rules(Walk{Sides: lone, Faults: Faults{Lost: 1}, NoStore: []int{3}}),
	}
}

// face is what everybody can see of a state of rest, whatever numbers the walk has given to things.
func (w *walker) face(s *walkState) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%+v crashed %b", s.record, s.crashed)
	for i := range w.n {
		if s.up(i) {
			l := &w.members[i].locals[s.local[i]]
			fmt.Fprintf(&b, "|%d %x", i, l.r.AppendState(nil, l.at))
		}
	}
	return b.String()
}

// restsOf searches and returns the states of rest.
func restsOf(t *testing.T, o Walk, plain bool) (map[string]bool, WalkResult) {
	t.Helper()
	w, rests := newWalker(o), make(map[string]bool)
	w.plain = plain
	w.rested = func(s *walkState) { rests[w.face(s)] = true }
	r := w.search.Run(t.Context())
	require.Empty(t, r.Broken)
	require.True(t, r.Complete)
	return rests, r
}

// What the reduction leaves out leads nowhere else: a search without it, in which anything may be late or
// lost at any moment and everybody notices the cut in any order, comes to rest in the same states.
func TestWalk_ReductionLosesNothing(t *testing.T) {
	for name, o := range smallWalks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reduced, r := restsOf(t, o, false)
			if r.States > 20_000 && !*deep {
				o.Lost = min(o.Lost, 1) // what the search without reduction can do in a second
				o.Crashes = 0
				reduced, r = restsOf(t, o, false)
			}
			plain, p := restsOf(t, o, true)
			require.Equal(t, plain, reduced)
			require.GreaterOrEqual(t, p.States, r.States)
			t.Logf("%d rests; %d states instead of %d", len(reduced), r.States, p.States)
		})
	}
}

// Two resolvers with equal encodings behave alike: along chance paths, a resolver with a history of its own
// does, at every step, what was worked out with the resolver that came first.
func TestWalk_EqualEncodingsBehaveAlike(t *testing.T) {
	for name, o := range smallWalks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalker(o)
			w.search.Run(t.Context())
			rng := rand.New(rand.NewPCG(1, 2))
			steps := 0
			for range 200 {
				steps += w.shadow(t, rng)
			}
			require.Greater(t, steps, 2000)
		})
	}
}

// A member that starts anew in the middle of it, with its state, breaks nothing. (Without the reduction, and
// by resolvers of its own, this is not checked: the next life has no state before the cut.)
func TestWalk_Restarts(t *testing.T) {
	three, halves := [][]int{{0, 1}, {2}}, [][]int{{0, 1}, {2, 3}}
	apart := []time.Duration{2 * time.Second, 0}
	for name, o := range map[string]Walk{
		"2-1 lost":    rules(Walk{Sides: three, Faults: Faults{Restarts: 1, Lost: 1}}),
		"2-1 removed": rules(Walk{Sides: three, Faults: Faults{Restarts: 1, Removals: 1}, Noticed: apart}),
		"2-1 watched": rules(Walk{Sides: three, Faults: Faults{Restarts: 1}, Watch: true, Noticed: []time.Duration{0, 75 * time.Second}}),
		"2-2 twice":   rules(Walk{Sides: halves, Faults: Faults{Restarts: 2}}),
		"3-1":         rules(Walk{Sides: [][]int{{0, 1, 2}, {3}}, Faults: Faults{Restarts: 1}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := o.Run(t.Context())
			require.Empty(t, r.Broken)
			require.True(t, r.Complete)
			require.Greater(t, r.States, 1000)
		})
	}
	_, err := Exhaustive{Members: 5, Faults: Faults{Restarts: 1}, Resolver: sbr.DefaultConfig(),
		Strategy: strategies.LeaseMajority{}}.Plan()
	require.ErrorContains(t, err, "5 members that restart: it must be at most 4")
}

// shadow follows one chance path to its end with resolvers of its own, and returns how many steps they made.
func (w *walker) shadow(t *testing.T, rng *rand.Rand) (steps int) {
	var own [MaxMembers]walkLocal
	s := new(walkState)
	for i := range w.n { // the first state that was numbered is the one before the cut
		own[i] = walkLocal{r: w.members[i].locals[1].r.Clone(), at: w.Resolver.SettleAfter, last: walkFirstAttempt}
	}
	w.waited = func(by time.Duration) {
		for i := range w.n {
			own[i].at += by
			own[i].unrest = own[i].unrest.later(by, w.Resolver.StableAfter)
		}
	}
	w.stepped = func(i int, event uint32, age uint16, want *walkEffects) {
		steps++
		l := &own[i]
		got, last, unrest := w.members[i].run(l.r, l, event, age)
		if l.last, l.unrest = last, unrest; l.r.Suspects() == 0 {
			l.unrest = walkUnrest{}
		}
		require.Equal(t, want.effects, got.effects)
		require.Equal(t, want.to == 0, l.r.State() == sbr.StateDown)
		if want.to != 0 {
			same := &w.members[i].locals[want.to]
			require.Equal(t, same.r.AppendState(nil, same.at), l.r.AppendState(nil, l.at))
			require.Equal(t, same.r.State(), l.r.State())
			require.Equal(t, same.out&^(1<<i), w.outOf(l.r)&^(1<<i))
		}
	}
	defer func() { w.stepped, w.waited = nil, nil }()
	w.First(s)
	for range 400 {
		moves := w.moves(nil, s)
		if len(moves) == 0 {
			break
		}
		w.Do(s, moves[rng.IntN(len(moves))])
	}
	return steps
}

package explore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// MaxSeed is the largest seed of random exploring: every program that reads JSON reads numbers up to it exactly.
const MaxSeed = 1 << 53

// RandomOptions say what Random plays. Generate must be set.
type RandomOptions struct {
	// From and To are the first and the last seed, both included; To is at most MaxSeed.
	From, To uint64
	// Step is how far each seed is from the one before; 0 is 1. Workers that begin at From, From+1, … share the seeds with it, so that a
	// budget of time that ends early leaves out the last seeds, and not whole stretches of the range.
	Step uint64
	// Generate returns the scenario of a seed, always the same one. It is played with the same seed.
	Generate func(seed uint64) *scenario.Scenario
	// Ran, when not nil, is called after each run with all that was found so far. It must not change or keep it.
	Ran func(*Findings)
}

// Findings are what random exploring found.
type Findings struct {
	// Runs is how many seeds were played, Failed in how many of them something was broken.
	Runs, Failed uint64
	// Excepted is in how many runs a promise was broken as S1 allows: see scenario.Result.Excepted.
	Excepted uint64
	// Complete says that all seeds were played: the context did not end first.
	Complete bool
	// Coverage are the transitions that were taken.
	Coverage world.Coverage
	// Singletons and Shards are what became of those.
	Singletons, Shards scenario.Totals

	failures map[kind]*Failure
}

// Random plays the scenarios of its seeds, upwards, until they are all played or ctx is done. It checks every promise in each run, and
// goes on after a failure. A panic in a run is a failure of its seed.
//
// It uses one goroutine, the caller's. For several, share the seeds with Step, and Join what each of them found: it is the same.
func Random(ctx context.Context, o RandomOptions) *Findings {
	var f Findings
	for seed := o.From; seed <= o.To; seed += max(o.Step, 1) {
		if ctx.Err() != nil {
			return &f
		}
		f.play(seed, o.Generate)
		if o.Ran != nil {
			o.Ran(&f)
		}
	}
	f.Complete = true
	return &f
}

func (f *Findings) play(seed uint64, generate func(uint64) *scenario.Scenario) {
	all := broken(func() scenario.Result {
		s := generate(seed)
		r := scenario.Cover(s, seed, &f.Coverage)
		singletons, shards := r.Totals(s)
		f.Singletons.Add(&singletons)
		f.Shards.Add(&shards)
		if len(r.Excepted) > 0 {
			f.Excepted++
		}
		return r
	})
	f.Runs++
	if len(all) > 0 {
		f.Failed++
	}
	for k, text := range all {
		f.found(k, &Failure{Promise: k.promise, Shape: k.shape, Text: text, Seed: seed, Runs: 1})
	}
}

// maxKinds bounds how many kinds of failures are kept; more are counted in Failed only.
const maxKinds = 200

// found keeps the failure of the lowest seed of each kind.
func (f *Findings) found(k kind, x *Failure) {
	old, known := f.failures[k]
	switch {
	case known && old.Seed <= x.Seed:
		old.Runs += x.Runs
	case known:
		x.Runs += old.Runs
		f.failures[k] = x
	case len(f.failures) < maxKinds:
		if f.failures == nil {
			f.failures = make(map[kind]*Failure)
		}
		f.failures[k] = x
	}
}

// Join adds up the findings of disjoint seeds. They are complete if all of them are.
func Join(parts ...*Findings) *Findings {
	all := Findings{Complete: true}
	for _, f := range parts {
		all.Complete = all.Complete && f.Complete
		all.Runs += f.Runs
		all.Failed += f.Failed
		all.Excepted += f.Excepted
		all.Coverage.Add(&f.Coverage)
		all.Singletons.Add(&f.Singletons)
		all.Shards.Add(&f.Shards)
		for k, x := range f.failures {
			c := *x
			all.found(k, &c)
		}
	}
	return &all
}

// Failures are one of each kind, the lowest seed first.
func (f *Findings) Failures() []*Failure {
	return slices.SortedFunc(maps.Values(f.failures), func(a, b *Failure) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Promise, b.Promise), cmp.Compare(a.Shape, b.Shape))
	})
}

// broken plays something and returns what was broken, by kind.
func broken(play func() scenario.Result) (all map[kind]string) {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("the run panicked: %v", p)
			all = map[kind]string{{promise: "panic", shape: shapeOf(text)}: text}
		}
	}()
	r := play()
	return kindsOf(r.Failures)
}

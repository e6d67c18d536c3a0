package explore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator/internal/shrink"
	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// MaxSeed is the largest seed of random exploring: every program that reads JSON reads numbers up to it
// exactly.
const MaxSeed = 1 << 53

// RandomOptions say what Random plays. Generate must be set.
type RandomOptions struct {
	// From and To are the first and the last seed, both included; To is at most MaxSeed.
	From, To uint64
	// Generate returns the scenario of a seed, always the same one. It is played with the same seed. It is
	// called from several goroutines.
	Generate func(seed uint64) *scenario.Scenario
	// Ran, when not nil, is called after each run with all that was found so far. It must not change or keep
	// it.
	Ran func(*Findings)
}

// Played counts runs.
type Played struct {
	// Runs is how many seeds were played, Failed in how many of them something was broken.
	Runs   uint64 `json:"runs"`
	Failed uint64 `json:"failed"`
	// Excepted is in how many runs a promise was broken as S1 allows: see scenario.Result.Excepted.
	Excepted uint64 `json:"excepted"`
	// Complete says that all seeds were played: the context did not end first.
	Complete bool `json:"complete"`
}

// Findings are what random exploring found.
type Findings struct {
	Played
	// Coverage are the transitions that were taken.
	Coverage world.Coverage
	// Singletons and Shards are what became of those.
	Singletons, Shards scenario.Totals

	failures map[kind]*Failure
}

// Random plays the scenarios of its seeds, upwards and on all cores, until they are all played or ctx is
// done: then the last few that were begun may not count. What it finds does not depend on the number of
// cores. It checks every promise in each run, and goes on after a failure. A panic in a run is a failure of
// its seed.
func Random(ctx context.Context, o RandomOptions) *Findings {
	var f Findings
	for p := range cores.InOrder(o.To-o.From+1, func(i uint64) *played {
		if ctx.Err() != nil {
			return nil
		}
		return play(o.From+i, o.Generate)
	}) {
		if p == nil {
			return &f
		}
		f.add(p)
		if o.Ran != nil {
			o.Ran(&f)
		}
	}
	f.Complete = true
	return &f
}

// played is what one run found.
type played struct {
	seed     uint64
	coverage world.Coverage
	result   scenario.Result
	// singletons and shards are what became of those.
	singletons, shards scenario.Totals
	broken             map[kind]string
}

func play(seed uint64, generate func(uint64) *scenario.Scenario) *played {
	p := &played{seed: seed}
	p.result = scenario.Caught("", seed, func() scenario.Result {
		s := generate(seed)
		r := scenario.Cover(s, seed, &p.coverage)
		p.singletons, p.shards = r.Totals(s)
		return r
	})
	p.broken = kindsOf(&p.result)
	return p
}

// add adds a run; they come in the order of their seeds.
func (f *Findings) add(p *played) {
	f.Runs++
	f.Coverage.Add(&p.coverage)
	f.Singletons.Add(&p.singletons)
	f.Shards.Add(&p.shards)
	if len(p.result.Excepted) > 0 {
		f.Excepted++
	}
	if len(p.broken) > 0 {
		f.Failed++
	}
	for k, text := range p.broken {
		x, known := f.failures[k]
		switch {
		case known:
			x.Runs++
		case len(f.failures) < maxKinds:
			if f.failures == nil {
				f.failures = make(map[kind]*Failure)
			}
			f.failures[k] = &Failure{Promise: k.promise, Shape: k.shape, Text: text, Seed: p.seed, Runs: 1}
		}
	}
}

// maxKinds bounds how many kinds of failures are kept; more are counted in Failed only.
const maxKinds = 200

// Failures are one of each kind, the lowest seed first.
func (f *Findings) Failures() []*Failure {
	return slices.SortedFunc(maps.Values(f.failures), func(a, b *Failure) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Promise, b.Promise), cmp.Compare(a.Shape, b.Shape))
	})
}

// Failure is one kind of broken promise, with the run of the lowest seed that shows it.
type Failure struct {
	// Promise is the broken promise, such as S1; "panic" for a run that did not end, "expect" for an
	// expectation that was not met.
	Promise string `json:"promise"`
	// Shape is the text without times, names and numbers. Failures of one promise and one shape are of one
	// kind.
	Shape string `json:"shape"`
	// Text is what was broken in the run of Seed.
	Text string `json:"text"`
	Seed uint64 `json:"seed"`
	// Runs is how many runs failed in this way.
	Runs uint64 `json:"runs"`
	// Scenario is a scenario file that fails in this way when it is played with Seed: the smallest that was
	// found, or the scenario of the seed.
	Scenario string `json:"scenario"`
	// Steps and Members are how many of them it has.
	Steps   int `json:"steps"`
	Members int `json:"members"`
	// Replay is the command that shows it.
	Replay string `json:"replay"`
}

// kind is what makes two failures the same.
type kind struct{ promise, shape string }

// kindsOf sorts the failures of one run into kinds. Of each kind it keeps the first line.
func kindsOf(r *scenario.Result) map[kind]string {
	all := make(map[kind]string)
	note := func(promise, text, line string) {
		k := kind{promise, shapeOf(text)}
		if _, known := all[k]; !known {
			all[k] = line
		}
	}
	for _, v := range r.Broken {
		note(v.Promise, v.Text, v.String())
	}
	for _, line := range r.Unmet {
		promise := "expect"
		if strings.HasPrefix(line, scenario.Panicked) {
			promise = "panic"
		}
		note(promise, line, line)
	}
	return all
}

var (
	shapeList     = regexp.MustCompile(`\[[^\][]*\]`)
	shapeDuration = regexp.MustCompile(`-?\b([0-9]+(\.[0-9]+)?(ns|µs|ms|s|m|h))+\b`)
	shapeNumber   = regexp.MustCompile(`[0-9]+([.#][0-9]+)*`)
)

// shapeOf leaves out what differs between two runs that fail for the same reason: lists, times, numbers, and
// with them the names of members, which the generator numbers.
func shapeOf(text string) string {
	text = shapeList.ReplaceAllString(text, "[…]")
	text = shapeDuration.ReplaceAllString(text, "…")
	text = shapeNumber.ReplaceAllString(text, "…")
	const limit = 300
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}

// Shrink makes the scenario of the failure as small as so many tries allow, and notes its size. It returns
// the file of the original: that of the failure if it has one, else that of its seed. A scenario that passes
// or fails differently alone stays as it is. Once ctx is done, Shrink keeps what it has found.
func (f *Failure) Shrink(ctx context.Context, generate func(seed uint64) *scenario.Scenario, tries int) (
	original string, err error) {
	s, err := f.original(generate)
	if err != nil {
		return "", fmt.Errorf("the scenario of seed %d: %w", f.Seed, err)
	}
	original = string(scenario.Format(s))
	same := shrink.Same(s, f.Seed)
	fails := func(c *scenario.Scenario) bool { return ctx.Err() == nil && same(c) && f.in(c) }
	small := shrink.Shrink(s, fails, shrink.Options{Tries: tries})
	f.Scenario, f.Steps, f.Members = string(scenario.Format(small)), len(small.Steps), len(small.Members())
	return original, nil
}

func (f *Failure) original(generate func(seed uint64) *scenario.Scenario) (s *scenario.Scenario, err error) {
	if f.Scenario != "" {
		return scenario.Parse("the scenario of the failure", []byte(f.Scenario))
	}
	defer func() {
		if p := recover(); p != nil { // then that is the failure
			err = fmt.Errorf("making it panicked: %v", p)
		}
	}()
	return generate(f.Seed), nil
}

// in reports whether the run of s with the seed of the failure fails in the same way.
func (f *Failure) in(s *scenario.Scenario) bool {
	r := scenario.Judge(s, f.Seed)
	_, ok := kindsOf(&r)[kind{f.Promise, f.Shape}]
	return ok
}

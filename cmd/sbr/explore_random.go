package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/explore"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const exploreRandomHelp = `Random plays a cluster and faults that chance makes up, one run for each seed, on all cores, and checks every promise in each run. The same
seed and version give the same run. It goes on after a failure; failures of one promise that differ only in names, times and numbers
are shown once, made as small as possible: the fewest steps and members that still fail.

Without --for it ends when all seeds are played. With it, it also ends when the time is over; "--seeds 1-" has no last seed.

--out writes for each kind of failure the smallest scenario found (S1-seed-7.yaml) and the one of the seed (S1-seed-7-original.yaml).

A transition is what a resolver does in one step: its state before, the event, its state after, and the kinds of effects. The program
knows a list of them. Those that are never taken, and those that are not in the list, are shown at the end. --require-coverage plays
the scenarios that provoke the rare ones which chance has not taken, and fails if one is still never taken.

-o json is one object:
  schema        1
  version       of the program
  from, to      the first and the last seed
  for           the budget of time, 0s for none
  runs, failed  how many seeds were played, and in how many something was broken
  complete      whether all seeds were played
  interrupted   whether somebody ended it before
  elapsed       how long the runs took
  singletons    how many of them in how many runs, with a lease, their runs, what was handed over, writes, those that a fence refused, and
                overlaps that would have done harm without one, with the reason
  shards        the same of shards
  failures      one of each kind: promise, shape, text, seed, runs, scenario, steps, members, replay
  coverage      how often each transition was taken
  provoked      those of them that only the scenarios of --require-coverage took
  never, new    the transitions that are known and were not taken, and those that were taken and are not known

Exit statuses: 0 nothing broken, 1 something is broken, or with --require-coverage a transition was never taken, or it was interrupted, 2 bad
input.`

const exploreRandomExample = `  sbr explore random --seeds 1-100000 --out failures
  sbr explore random --seeds 1- --for 8h --require-coverage
  sbr explore random --seeds 1-100000 -o json > random.json`

// exploreRandom are the flags of the verb.
type exploreRandom struct {
	seeds   seedRange
	budget  time.Duration
	out     string
	require bool
	output  string
}

func newExploreRandom(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "random", Short: "play random clusters and faults, and check every promise", Long: exploreRandomHelp,
		Example: exploreRandomExample, Args: cobra.NoArgs,
	}
	o := exploreRandom{seeds: seedRange{from: 1, to: 10_000, endless: true}}
	c.Flags().Var(&o.seeds, "seeds", "the seeds to play")
	c.Flags().DurationVar(&o.budget, "for", 0, "how long at most (default: until all seeds are played)")
	c.Flags().StringVar(&o.out, "out", "",
		"the folder for the scenarios of failures; it is made if it is not there")
	c.Flags().BoolVar(&o.require, "require-coverage", false, "fail if a known transition is never taken")
	output := addWord(c, "output", "o", formatText, "how the result is written", formatText, formatJSON,
		formatJUnit)
	_ = c.RegisterFlagCompletionFunc("seeds", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("for", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("out", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		o.output = *output
		return o.run(ctx, s)
	})
	return c
}

// run explores, and writes what was found.
func (o *exploreRandom) run(ctx context.Context, s streams) error {
	switch {
	case o.budget < 0:
		return badInput{fmt.Errorf("--for %v: it must not be negative", o.budget)}
	case o.seeds.open() && o.budget == 0:
		return badInput{fmt.Errorf("--seeds %s has no end: give one, or a time (--for 10m)", &o.seeds)}
	}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o777); err != nil {
			return badInput{err}
		}
	}
	relaxCollector()
	started := time.Now()
	findings, interrupted := o.explore(ctx, s)
	report := &explore.Report{
		Schema: explore.Schema, Version: buildVersion().build(), From: o.seeds.from, To: o.seeds.to,
		For:         explore.Span(o.budget),
		Interrupted: interrupted, Elapsed: explore.Span(time.Since(started).Round(time.Millisecond)),
	}
	report.Take(findings)
	if o.require {
		if err := report.Provoke(); err != nil {
			return err
		}
	}
	if err := o.shrink(ctx, report); err != nil {
		return err
	}
	var err error
	if o.output == formatJUnit {
		err = o.junit(s.out, report)
	} else {
		err = s.show(o.output, report, func(p painter) string { return o.text(p, report) })
	}
	if err != nil {
		return err
	}
	return o.verdict(report)
}

// explore plays the seeds on all cores until they are played, the time is over, or ctx is done: then it was
// interrupted.
func (o *exploreRandom) explore(ctx context.Context, s streams) (found *explore.Findings, interrupted bool) {
	limited, cancel := bounded(ctx, o.budget)
	defer cancel()
	show := newProgress(s.err, "run", o.seeds.count())
	var failed uint64
	found = explore.Random(limited, explore.RandomOptions{
		From: o.seeds.from, To: o.seeds.to, Generate: simulator.Random, Ran: func(f *explore.Findings) {
			show.done(f.Failed > failed)
			failed = f.Failed
		},
	})
	show.end()
	return found, !found.Complete && ctx.Err() != nil
}

// Shrinking is bounded: what it is about is known already.
const (
	shrinkTries = 1500
	shrinkKinds = 20
)

// shrink makes the scenario of each failure small, on all cores, and writes it and the original to the folder
// of --out. Of many failures it does that with the first ones.
func (o *exploreRandom) shrink(ctx context.Context, r *explore.Report) error {
	names, taken := make([]string, len(r.Failures)), make(map[string]int)
	for i, f := range r.Failures {
		names[i] = fmt.Sprintf("%s-seed-%d", f.Promise, f.Seed)
		if taken[names[i]]++; taken[names[i]] > 1 { // the same seed breaks one promise in two ways
			names[i] = fmt.Sprintf("%s-%d", names[i], taken[names[i]])
		}
	}
	errs := make([]error, len(r.Failures))
	cores.All(len(errs), func(i int) {
		tries := shrinkTries
		if i >= shrinkKinds {
			tries = 1
		}
		errs[i] = o.shrinkOne(ctx, r.Failures[i], names[i], tries)
	})
	return errors.Join(errs...)
}

func (o *exploreRandom) shrinkOne(ctx context.Context, f *explore.Failure, name string, tries int) error {
	f.Replay = fmt.Sprintf("sbr explore random --seeds %d", f.Seed)
	if f.Scenario != "" { // it is not that of its seed
		f.Replay = fmt.Sprintf("sbr simulate - --seeds %d", f.Seed)
	}
	original, err := f.Shrink(ctx, simulator.Random, tries)
	if err != nil || o.out == "" {
		return err
	}
	small := filepath.Join(o.out, name+".yaml")
	f.Replay = scenario.Replay(small, f.Seed)
	if err := os.WriteFile(small, []byte(f.Scenario), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, name+"-original.yaml"), []byte(original), 0o666)
}

// text is for people: what was broken first, what it was worth last.
func (o *exploreRandom) text(p painter, r *explore.Report) string {
	var b strings.Builder
	for _, f := range r.Failures {
		o.textFailure(&b, p, f)
	}
	o.textTransitions(&b, p, r)
	if r.Excepted > 0 {
		fmt.Fprintf(&b, "excepted: in %s the store lost a verdict that no survivor could tell again\n",
			count(r.Excepted, "run"))
	}
	fmt.Fprintf(&b, "singletons: %s\nshards: %s\n%s\n", &r.Singletons, &r.Shards, o.textSummary(p, r))
	return b.String()
}

func (o *exploreRandom) textFailure(b *strings.Builder, p painter, f *explore.Failure) {
	fmt.Fprintf(b, "%s  %s\n", p.red("FAIL"), f.Text)
	fmt.Fprintf(b, "      in %s; smallest scenario: %s, %s, seed %d\n",
		count(f.Runs, "run"), count(f.Members, "member"), count(f.Steps, "step"), f.Seed)
	if o.out == "" { // else it is in a file
		for line := range strings.Lines(f.Scenario) {
			b.WriteString("        | " + line)
		}
	}
	fmt.Fprintf(b, "      replay: %s\n\n", p.bold(f.Replay))
}

// textTransitions lists what was never taken, and what is new. After a few runs much was never taken: then it
// is only counted, unless that is what was asked for.
func (o *exploreRandom) textTransitions(b *strings.Builder, p painter, r *explore.Report) {
	const limit = 20
	if n := len(r.Never); n > 0 && (n <= limit || o.require) {
		b.WriteString("transitions that were never taken:\n")
		for _, name := range r.Never {
			fmt.Fprintf(b, "  %s\n", p.yellow(name))
		}
		b.WriteByte('\n')
	}
	if len(r.New) > 0 {
		b.WriteString("transitions that the list does not know:\n")
		for _, name := range r.New[:min(len(r.New), limit)] {
			fmt.Fprintf(b, "  %s (%s)\n", p.yellow(name), times(r.Coverage[name]))
		}
		if more := len(r.New) - limit; more > 0 {
			fmt.Fprintf(b, "  and %d more\n", more)
		}
		b.WriteByte('\n')
	}
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return thousands(n) + " times"
}

// textSummary is the last line, and the one before it.
func (o *exploreRandom) textSummary(p painter, r *explore.Report) string {
	known := len(explore.KnownTransitions())
	taken := fmt.Sprintf("transitions: %d of %d known ones taken", known-len(r.Never), known)
	if n := len(r.Provoked); n > 0 {
		taken += fmt.Sprintf(", %d of them only when provoked", n)
	}
	taken += fmt.Sprintf(", %d new", len(r.New))
	if o.require && len(r.Never) > 0 {
		taken = p.red(taken)
	}
	which := seedRange{from: r.From, to: r.To, endless: true}
	line := p.green("nothing broken in " + countThousands(r.Runs, "run"))
	if r.Failed > 0 {
		line = p.red(fmt.Sprintf("%s of %s failed", thousands(r.Failed), countThousands(r.Runs, "run")))
	}
	took := time.Duration(r.Elapsed)
	return fmt.Sprintf("%s\n%s (%s) in %v, %s a second", taken, line, which.words(),
		took, thousands(perSecond(r.Runs, took)))
}

// verdict is the error of a result in which something is broken.
func (o *exploreRandom) verdict(r *explore.Report) error {
	var problems []error
	if r.Failed > 0 {
		problems = append(problems, fmt.Errorf("%s of %s failed", thousands(r.Failed), count(r.Runs, "run")))
	}
	if o.require && len(r.Never) > 0 {
		problems = append(problems, fmt.Errorf("%s never taken", count(len(r.Never), "known transition")))
	}
	if r.Interrupted {
		problems = append(problems, fmt.Errorf("interrupted after %s", count(r.Runs, "run")))
	}
	return errors.Join(problems...)
}

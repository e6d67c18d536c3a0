package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
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
	seeds   seedSpan
	budget  time.Duration
	out     string
	require bool
	output  simulateFormat
}

func newExploreRandom(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "random", Short: "play random clusters and faults, and check every promise", Long: exploreRandomHelp,
		Example: exploreRandomExample, Args: cobra.NoArgs,
	}
	o := exploreRandom{seeds: seedSpan{1, 10_000}, output: simulateFormat(formatText)}
	c.Flags().Var(&o.seeds, "seeds", "the seeds to play")
	c.Flags().DurationVar(&o.budget, "for", 0, "how long at most (default: until all seeds are played)")
	c.Flags().StringVar(&o.out, "out", "", "the folder for the scenarios of failures; it is made if it is not there")
	c.Flags().BoolVar(&o.require, "require-coverage", false, "fail if a known transition is never taken")
	c.Flags().VarP(&o.output, "output", "o", "how the result is written")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(simulateFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("seeds", cobra.NoFileCompletions)
	_ = c.RegisterFlagCompletionFunc("for", cobra.NoFileCompletions)
	_ = c.MarkFlagDirname("out")
	c.RunE = verb(func() error {
		ctx, stop := interruptible(c.Context())
		defer stop()
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
		Schema: explore.Schema, Version: exploreVersion(), From: o.seeds.from, To: o.seeds.to, For: explore.Span(o.budget),
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
	return writeReport(s.out, report, reportOptions{require: o.require, format: format(o.output), files: o.out != ""})
}

// exploreVersion tells programs apart whose runs may differ. The platform makes no difference.
func exploreVersion() string {
	v := buildVersion()
	text := v.Version
	if v.Revision != "" {
		text += " " + v.Revision[:min(len(v.Revision), 12)]
	}
	if v.Modified {
		text += " (modified)"
	}
	return text
}

// seedSpan is the value of --seeds: A-B, both included, one seed, or A- for all from A on.
type seedSpan struct{ from, to uint64 }

func (r *seedSpan) open() bool { return r.to == explore.MaxSeed }

// String, Set and Type make it a flag value.
func (r *seedSpan) String() string {
	switch {
	case r.open():
		return fmt.Sprintf("%d-", r.from)
	case r.from == r.to:
		return strconv.FormatUint(r.from, 10)
	default:
		return fmt.Sprintf("%d-%d", r.from, r.to)
	}
}

// Set implements pflag.Value.
func (r *seedSpan) Set(s string) error {
	a, b, found := strings.Cut(s, "-")
	switch {
	case !found:
		b = a
	case b == "":
		b = strconv.FormatUint(explore.MaxSeed, 10)
	}
	from, errA := strconv.ParseUint(a, 10, 64)
	to, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA != nil || errB != nil:
		return errors.New("must be a seed such as 7, a range such as 1-200, or all from one on, such as 1-")
	case max(from, to) > explore.MaxSeed:
		return fmt.Errorf("must be at most %d", uint64(explore.MaxSeed))
	case from > to:
		return fmt.Errorf("must go upwards: %d-%d", to, from)
	}
	*r = seedSpan{from, to}
	return nil
}

// Type implements pflag.Value; it is the placeholder in the help.
func (*seedSpan) Type() string { return "A-B" }

// count is how many seeds there are; unbounded for all from one on.
func (r *seedSpan) count() uint64 {
	if r.open() {
		return math.MaxUint64
	}
	return r.to - r.from + 1
}

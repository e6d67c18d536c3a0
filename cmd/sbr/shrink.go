package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/simulator"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

const shrinkHelp = `Shrink takes a scenario file that fails with a seed, and writes the smallest one it finds that fails with that seed in the same way:
it breaks the same promise, or misses the same expectation. Steps and members are left out first, then times are made rounder and the run
shorter, then faults plainer and settings fewer. Every candidate is played.

The file that is written says on top why it fails. Times that were ranges in the original are those that the seed had drawn.

Exit statuses: 0 the file was written; 1 nothing fails with this seed; 2 bad input.`

const shrinkExample = `  sbr shrink split.yaml --seed 7 > small.yaml
  sbr simulate small.yaml --seeds 7`

func newShrink(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "shrink FILE", Short: "make a scenario file that fails small", Long: shrinkHelp,
		Example: shrinkExample, Args: cobra.ExactArgs(1),
	}
	seed := c.Flags().Uint64("seed", 1, "the seed with which it fails")
	tries := c.Flags().Int("tries", shrinkTries, "how many candidates are played at most")
	c.RunE = verbOf(func(_ *cobra.Command, args []string) error {
		if *tries < 1 {
			return badInput{fmt.Errorf("--tries is %d: it must be at least 1", *tries)}
		}
		return shrinkFile(s, args[0], *seed, *tries)
	})
	return c
}

func shrinkFile(s streams, path string, seed uint64, tries int) error {
	name, data, err := readInput(path, s.in, scenario.MaxBytes)
	if err != nil {
		return badInput{err}
	}
	whole, err := scenario.Parse(name, data)
	if err != nil {
		return badInput{err}
	}
	if scenario.Judge(whole, seed).Passed {
		return fmt.Errorf("%s: nothing fails with seed %d", name, seed)
	}
	show := newProgress(s.err, "candidate", uint64(tries))
	small := simulator.Shrink(whole, seed, tries, func() { show.done(false) })
	show.end()
	for _, line := range scenario.Judge(small, seed).Failures {
		fmt.Fprintf(s.out, "# fails with seed %d: %s\n", seed, strings.ReplaceAll(line, "\n", " "))
	}
	if _, err := s.out.Write(scenario.Format(small)); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%s instead of %s\n", simulator.Size(small), simulator.Size(whole))
	return nil
}

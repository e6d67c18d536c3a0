package main

import (
	"cmp"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/strategies"
)

const simulateHelp = `Simulate plays scenario files: a cluster, what happens to it, and what is expected of it at the end. It runs the resolver of
production in virtual time, over a model of Serf, of the network and of the lease store.

A folder stands for all files in it and below that end in .yaml, .yml or .json. Each file is played once for each seed; the seed decides what
is left to chance. The same file, seed and version give the same run, which its trace hash shows.

The text has a line for each file, each failed run with its reasons and the command that plays it again, and percentiles over all runs;
-v has a line for each run, --stats histograms and what the resolvers decided and went through.

A run fails when an expectation of the file is not met, or when one of the promises is broken, whatever the file expects:
  S1  two sides of one partition never both stay up          S2  who was downed never takes part again
  S3  a holder of the lease is replaced only when it may be  S4  an unknown outcome is never read as "granted"
  L1  a side that reaches the lease is not given up          L2  the leader of a side decides when it is due, not later
  L3  nothing is asked of the lease while all are reachable  and nobody decides before its view is stable, or without a reason

--compare plays the same files with the same seeds under each of several strategies, or under the settings of files like sbr.yaml, and
tabulates what they cost; as-written is the file as it is. Expectations are not looked at then.

--import takes logs of sbr agent instead, text or JSON, of as many members as there are, and writes the scenario file that they tell of: cuts
and heals, pauses, ends, restarts and sbr down, and when the lease's store did not answer. The clocks of the hosts should agree within a second. Which
lines became of no step is said on the error stream. Take the lines of one incident; put your settings into the file, or --compare them.

Exit statuses: 0 all passed, or compared; 1 a run failed; 2 bad input.`

const simulateExample = `  sbr simulate split.yaml
  sbr simulate scenarios/ --seeds 1-200
  sbr simulate scenarios/ --seeds 1-200 -o junit > report.xml
  sbr simulate scenarios/ --seeds 1-200 --html report.html
  sbr simulate split.yaml --seeds 1-200 --compare keep-majority,lease-majority,sbr.yaml
  sbr simulate --import n1.log n2.log n3.log > incident.yaml`

func newSimulate(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "simulate FILE|DIR…", Short: "play scenarios: what would this configuration do in a partition?",
		Long: simulateHelp, Example: simulateExample, Args: cobra.MinimumNArgs(1),
	}
	seeds := seedRange{from: 1, to: 1}
	c.Flags().Var(&seeds, "seeds", "the seeds to play each scenario with")
	output := addWord(c, "output", "o", formatText, "how the results are written", formatText, formatJSON,
		formatJUnit)
	variants := c.Flags().StringSlice("compare", nil,
		"strategies, files like sbr.yaml, or as-written: play under each and tabulate")
	_ = c.RegisterFlagCompletionFunc("compare",
		cobra.FixedCompletions(append(strategies.Keys(), asWritten), cobra.ShellCompDirectiveDefault))
	var o simulateOptions
	c.Flags().StringVar(&o.html, "html", "", "write a report for the browser to this file as well")
	c.Flags().BoolVarP(&o.verbose, "verbose", "v", false,
		"a line for each run, not only for each file and each failed run")
	c.Flags().BoolVar(&o.full, "stats", false, "histograms, decisions and transitions of all runs as well")
	logs := c.Flags().Bool("import", false,
		"the files are logs of sbr agent: write the scenario that they tell of")
	for _, other := range []string{"html", "verbose", "stats"} {
		c.MarkFlagsMutuallyExclusive(other, "compare")
	}
	for _, other := range []string{"seeds", "output", "html", "verbose", "stats", "compare"} {
		c.MarkFlagsMutuallyExclusive(other, "import")
	}
	c.RunE = verbOf(func(_ *cobra.Command, args []string) error {
		switch {
		case *logs:
			return importLogs(s, args)
		case c.Flags().Changed("compare"):
			return compare(s, args, seeds, *output, *variants)
		}
		return simulate(s, args, seeds, *output, o)
	})
	return c
}

// simulateOptions are what is written beside the results.
type simulateOptions struct {
	html          string // a file; empty: none
	verbose, full bool   // of the text
}

// simulate plays every file with every seed. It writes results in order, as they come.
func simulate(s streams, paths []string, seeds seedRange, output string, o simulateOptions) error {
	if output != formatText && (o.verbose || o.full) {
		return badInput{fmt.Errorf("--verbose and --stats are for text: -o %s has every run", output)}
	}
	files, err := loadScenarios(paths, s.in)
	if err != nil {
		return badInput{err}
	}
	relaxCollector()
	total := uint64(len(files)) * seeds.count()
	show := newProgress(s.err, "run", total)
	outs := []simulateWriter{newSimulateWriter(output, wiping{s.out, show}, paint(s.out), o)}
	if o.html != "" {
		page, err := newSimulateHTML(o.html)
		if err != nil {
			return err
		}
		outs = append(outs, page)
	}
	var failed uint64
	var first *played // of those that failed
	run := func(s *scenario.Prepared, seed uint64) scenario.Result {
		switch {
		case output == formatJSON:
			return s.Run(seed) // the others do not show what happened
		case o.full:
			return s.Measure(seed, new(scenario.Coverage))
		default:
			return s.Measure(seed, nil)
		}
	}
	play(files, seeds, run, func(r *played) bool {
		if !r.Passed {
			failed, first = failed+1, cmp.Or(first, r)
		}
		show.done(!r.Passed)
		for _, to := range outs {
			if err = to.result(r); err != nil {
				return false
			}
		}
		return true
	})
	show.end()
	if err != nil {
		return err
	}
	for _, to := range outs {
		if err := to.end(summary{files: len(files), runs: total, failed: failed, seeds: seeds}); err != nil {
			return err
		}
	}
	if failed > 0 && output == formatJSON { // the others have it in their output
		return fmt.Errorf("%d of %s failed, the first that did: %s", failed, count(total, "run"), first.replay())
	}
	if failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, count(total, "run"))
	}
	return nil
}

// scenarioFile is a scenario and where it comes from.
type scenarioFile struct {
	path     string
	sentence string // on top of the file; may be empty
	*scenario.Scenario
	ready func() (*scenario.Prepared, error) // the scenario worked out for many runs
}

func newScenarioFile(path string, data []byte, s *scenario.Scenario) *scenarioFile {
	ready := sync.OnceValues(func() (*scenario.Prepared, error) { return scenario.Prepare(s) })
	return &scenarioFile{path: path, sentence: sentence(data), Scenario: s, ready: ready}
}

// played is the result of one run.
type played struct {
	scenario.Result
	file *scenarioFile
	took time.Duration
}

// replay is the command that plays the same run again.
func (r *played) replay() string { return scenario.Replay(r.file.path, r.Seed) }

// wiping wipes the line that shows progress before anything else is written: both may go to one terminal.
type wiping struct {
	io.Writer
	show *progress
}

func (w wiping) Write(b []byte) (int, error) {
	w.show.end()
	return w.Writer.Write(b)
}

// play runs every scenario with every seed, and hands over the results in order until take says that it is
// enough. run observes a run as what is written needs it.
func play(
	files []*scenarioFile, seeds seedRange, run func(s *scenario.Prepared, seed uint64) scenario.Result,
	take func(*played) bool,
) {
	each := seeds.count()
	cores.InOrder(uint64(len(files))*each, func(i uint64) *played {
		f, seed, started := files[i/each], seeds.from+i%each, time.Now()
		result := scenario.Caught(f.Name, seed, func() scenario.Result {
			ready, err := f.ready()
			if err != nil {
				return scenario.Judge(f.Scenario, seed) // says what is wrong with it
			}
			return run(ready, seed)
		})
		return &played{Result: result, file: f, took: time.Since(started)}
	})(take)
}

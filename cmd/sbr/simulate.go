package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/strategies"
)

const simulateHelp = `Simulate plays scenario files: a cluster, what happens to it, and what is expected of it at the end. It runs the resolver of
production in virtual time, over a model of Serf, of the network and of the lease store.

A folder stands for all files in it and below that end in .yaml, .yml or .json. Each file is played once for each seed; the seed decides what
is left to chance. The same file, seed and version give the same run, which its trace hash shows.

A run fails when an expectation of the file is not met, or when one of the promises is broken, whatever the file expects:
  S1  two sides of one partition never both stay up          S2  who was downed never takes part again
  S3  a holder of the lease is replaced only when it may be  S4  "don't know" is never read as "granted"
  L1  a side that reaches the lease is not given up          L2  whoever leads a side decides when it is due, not later
  L3  nothing is asked of the lease while all are reachable  and nobody decides before its view is stable, or without a reason

--compare plays the same files with the same seeds under each of several strategies, or under the settings of files like sbr.yaml, and
tabulates what they cost; as-written is the file as it is. Expectations are not looked at then.

Exit statuses: 0 all passed, or compared; 1 a run failed; 2 bad input.`

const simulateExample = `  sbr simulate split.yaml
  sbr simulate scenarios/ --seeds 1-200
  sbr simulate scenarios/ --seeds 1-200 -o junit > report.xml
  sbr simulate scenarios/ --seeds 1-200 --html report.html
  sbr simulate split.yaml --seeds 1-200 --compare keep-majority,lease-majority,sbr.yaml`

func newSimulate(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "simulate FILE|DIR…", Short: "play scenarios: what would this configuration do in a partition?",
		Long: simulateHelp, Example: simulateExample, Args: cobra.MinimumNArgs(1),
	}
	seeds := seedRange{1, 1}
	c.Flags().Var(&seeds, "seeds", "the seeds to play each scenario with")
	output := addWord(c, "output", "o", formatText, "how the results are written", formatText, formatJSON, formatJUnit)
	variants := c.Flags().StringSlice("compare", nil, "strategies, files like sbr.yaml, or as-written: play under each and tabulate")
	_ = c.RegisterFlagCompletionFunc("compare", cobra.FixedCompletions(append(strategies.Keys(), asWritten), cobra.ShellCompDirectiveDefault))
	html := c.Flags().String("html", "", "write a report for the browser to this file as well")
	c.MarkFlagsMutuallyExclusive("html", "compare")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("compare") {
			return verb(func() error { return compare(s, args, seeds, *output, *variants) })(nil, nil)
		}
		return verb(func() error { return simulate(s, args, seeds, *output, *html) })(nil, nil)
	}
	return c
}

// simulate plays every file with every seed. It writes results in order, as they come.
func simulate(s streams, paths []string, seeds seedRange, output string, html string) error {
	files, err := loadScenarios(paths, s.in)
	if err != nil {
		return badInput{err}
	}
	relaxCollector()
	total := uint64(len(files)) * seeds.count()
	out := newSimulateWriter(output, s.out)
	if html != "" {
		page, err := newSimulateHTML(html, total)
		if err != nil {
			return err
		}
		out = simulateWriters{out, page}
	}
	show := newRunProgress(s.err, total)
	started := time.Now()
	var failed uint64
	run := (*scenario.Prepared).Judge
	if output == formatJSON {
		run = (*scenario.Prepared).Run // the others do not show what happened
	}
	play(files, seeds, run, func(r *played) bool {
		if !r.Passed {
			failed++
		}
		show.done(failed)
		err = out.result(r)
		return err == nil
	})
	show.end()
	if err != nil {
		return err
	}
	if err := out.end(summary{files: len(files), runs: total, failed: failed, seeds: seeds, took: time.Since(started)}); err != nil {
		return err
	}
	if failed > 0 {
		return internal{fmt.Errorf("%d of %s failed", failed, count(total, "run"))}
	}
	return nil
}

// scenarioFile is a scenario and where it comes from.
type scenarioFile struct {
	path     string
	sentence string // on top of the file; may be empty
	*scenario.Scenario

	once     sync.Once
	prepared *scenario.Prepared
	problem  error
}

// ready is the scenario worked out for many runs.
func (f *scenarioFile) ready() (*scenario.Prepared, error) {
	f.once.Do(func() { f.prepared, f.problem = scenario.Prepare(f.Scenario) })
	return f.prepared, f.problem
}

// played is the result of one run.
type played struct {
	scenario.Result
	file *scenarioFile
	took time.Duration
}

// replay is the command that plays the same run again.
func (r *played) replay() string {
	path := r.file.path
	if strings.ContainsFunc(path, func(c rune) bool { return !strings.ContainsRune(plainInShell, c) }) || strings.HasPrefix(path, "-") {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return fmt.Sprintf("sbr simulate %s --seeds %d", path, r.Seed)
}

const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+:@"

// runner is Run or Judge.
type runner func(s *scenario.Prepared, seed uint64) scenario.Result

// play runs every scenario with every seed on all cores, and hands over the results in order until take says that it is enough.
func play(files []*scenarioFile, seeds seedRange, run runner, take func(*played) bool) {
	const ahead = 64 // runs for each core that may wait for their turn
	cores := runtime.GOMAXPROCS(0)
	slots := make(chan chan *played, ahead*cores)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	type job struct {
		file *scenarioFile
		seed uint64
		to   chan *played
	}
	jobs := make(chan job)
	wg.Go(func() {
		defer close(jobs)
		defer close(slots)
		for _, f := range files {
			for i := range seeds.count() {
				to := make(chan *played, 1)
				select {
				case slots <- to:
				case <-stop:
					return
				}
				select {
				case jobs <- job{f, seeds.from + i, to}:
				case <-stop:
					return
				}
			}
		}
	})
	for range cores {
		wg.Go(func() {
			for j := range jobs {
				j.to <- playOne(j.file, j.seed, run)
			}
		})
	}
	for to := range slots {
		if !take(<-to) {
			break
		}
	}
	close(stop)
	wg.Wait()
}

// playOne is one run. A panic in it is a failed run that names its seed, not the end of all the others.
func playOne(f *scenarioFile, seed uint64, run runner) (r *played) {
	started := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r = &played{file: f, Result: scenario.Result{
				Scenario: f.Name, Seed: seed, Survivors: []string{}, Down: []string{}, Events: []scenario.Event{},
				Failures: []string{fmt.Sprintf("internal error: the run panicked: %v", p)},
			}}
		}
		r.took = time.Since(started)
	}()
	ready, err := f.ready()
	if err != nil {
		return &played{Result: scenario.Judge(f.Scenario, seed), file: f} // says what is wrong with it
	}
	return &played{Result: run(ready, seed), file: f}
}

package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

const reportMergeHelp = `Merge joins the results of all parts of one exploring: what "sbr explore random --shard 1/8 -o json" to "--shard 8/8" printed. It adds up
runs, failures and coverage. Every part must be there once, of the same version, seeds and budget.

A file may be the log of a pod: lines that begin with "sbr: ", which the program writes to standard error, are skipped.

-o json is again such a result, of the part 1/1. sbr explore random --help says what is in it. The commands that replay a failure are those
of the parts; --require-coverage is as it is there.

Exit statuses: 0 nothing is broken in any part, 1 something is, or with --require-coverage a transition was never taken, or a part was
interrupted, 2 bad input, or a part is missing, there twice, or does not fit.`

const reportMergeExample = `  sbr report merge 1.json 2.json 3.json 4.json --require-coverage
  sbr report merge *.json -o junit > report.xml`

func newReportMerge(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "merge FILE…", Short: "join the results of all parts of one exploring", Long: reportMergeHelp,
		Example: reportMergeExample, Args: cobra.MinimumNArgs(1), ValidArgsFunction: cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	output := simulateFormat(formatText)
	require := c.Flags().Bool("require-coverage", false, "fail if a known transition is never taken")
	c.Flags().VarP(&output, "output", "o", "how the result is written")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(simulateFormats, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(_ *cobra.Command, args []string) error {
		return verb(func() error { return reportMerge(s, args, *require, format(output)) })(nil, nil)
	}
	return c
}

func reportMerge(s streams, paths []string, require bool, output format) error {
	parts, err := readReports(s, paths)
	if err != nil {
		return badInput{err}
	}
	all, err := explore.Merge(parts)
	if err != nil {
		return badInput{err}
	}
	if require {
		if err := all.Provoke(); err != nil {
			return err
		}
	}
	return writeReport(s.out, all, reportOptions{require: require, format: output, parts: parts})
}

// readReports reads all files. The error names every problem of every file.
func readReports(s streams, paths []string) (parts []explore.NamedReport, err error) {
	var problems []error
	for _, path := range paths {
		name, data, err := readInput(path, s.in, explore.MaxReportBytes)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		r, err := explore.ReadReport(name, withoutErrors(data))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		parts = append(parts, explore.NamedReport{Name: name, Report: r})
	}
	return parts, errors.Join(problems...)
}

// withoutErrors empties the lines that the program writes to standard error: the log of a pod has both streams. No line of a result
// begins like that, for the strings in it are each on one line.
func withoutErrors(data []byte) []byte {
	if !bytes.Contains(data, []byte("sbr: ")) {
		return data
	}
	lines := bytes.Split(data, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("sbr: ")) {
			lines[i] = nil // not removed: problems name lines
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// verdict is the error of a result in which something is broken.
func (o *reportOptions) verdict(r *explore.Report) error {
	var problems []error
	if r.Failed > 0 {
		problems = append(problems, fmt.Errorf("%s of %s failed", thousands(r.Failed), count(r.Runs, "run")))
	}
	if o.require && len(r.Never) > 0 {
		problems = append(problems, fmt.Errorf("%s never taken", count(uint64(len(r.Never)), "known transition")))
	}
	if r.Interrupted {
		problems = append(problems, fmt.Errorf("interrupted after %s", count(r.Runs, "run")))
	}
	if len(problems) > 0 {
		return internal{errors.Join(problems...)}
	}
	return nil
}

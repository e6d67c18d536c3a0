package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

const explainTimingHelp = `Timing explains where the times of a cluster come from: how soon each side of a cut notices it, when it decides, how long
both sides may be up, and which stable-after fits. Each line shows its sum, and the keys of the configuration that change it.

The cut is a clean one, at one instant, on healthy nodes. Shown are bounds, not typical times. Without -f the defaults are explained.`

const explainTimingExample = `  sbr explain timing
  sbr explain timing -f sbr.yaml --members 50
  sbr explain timing --profile wan -o json`

func newExplain(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "explain", Short: "explain what follows from a configuration", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newExplainTiming(s))
	return c
}

// explainTiming holds the flags of `sbr explain timing`.
type explainTiming struct {
	file    string
	members int
	profile string
}

func newExplainTiming(s streams) *cobra.Command {
	var flags explainTiming
	c := &cobra.Command{
		Use: "timing", Short: "explain the times of a cluster, and what changes them",
		Long: explainTimingHelp, Example: explainTimingExample, Args: cobra.NoArgs,
	}
	output := addFormat(c)
	c.Flags().StringVarP(&flags.file, "file", "f", "", "the configuration (sbr.yaml), or - for standard input (default: all defaults)")
	c.Flags().IntVar(&flags.members, "members", 0, "the number of members to compute with (default 5, or min-members if that is more)")
	c.Flags().StringVar(&flags.profile, "profile", "", "the settings of Serf's failure detector: lan, wan or local (default: the file's serf.profile)")
	c.RunE = verb(func() error {
		x, err := flags.explain(s, c.Flags().Changed("members"))
		if err != nil {
			return badInput{err}
		}
		if *output == formatJSON {
			return writeJSON(s.out, x)
		}
		return x.write(s.out)
	})
	return c
}

// explain computes everything that is printed. Its errors are the caller's.
func (e *explainTiming) explain(s streams, members bool) (*explanation, error) {
	var problems []error
	if members && (e.members < 2 || e.members > maxMembers) {
		problems = append(problems, fmt.Errorf("--members %d: it must be from 2 to %d", e.members, maxMembers))
	}
	if err := strictyaml.OneOf(e.profile, timing.Profiles()); e.profile != "" && err != nil {
		problems = append(problems, fmt.Errorf("--profile: %w", err))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	f, err := e.configuration(s)
	if err != nil {
		return nil, err
	}
	if e.members == 0 {
		e.members = max(defaultMembers, min(f.SplitBrainResolver.MinMembers, maxMembers))
	}
	return newExplanation(f, e.members, cmp.Or(e.profile, f.Serf.Profile)), nil
}

func (e *explainTiming) configuration(s streams) (*config.File, error) {
	if e.file == "" {
		f := config.Default()
		return &f, nil
	}
	name, data, err := readInput(e.file, s.in, maxConfigInput)
	if err != nil {
		return nil, err
	}
	return config.Parse(name, data)
}

// newExplanation explains the times of a cluster of so many members.
func newExplanation(f *config.File, members int, profile string) *explanation {
	gossip, _ := timing.Profile(profile) // it was checked
	in := f.Timing(members, gossip)
	r := timing.Compute(in)
	r.Warnings = append(f.Warnings(members), r.Warnings...)
	x := &explanation{
		Members: members, Larger: members - members/2, Profile: profile, Strategy: f.SplitBrainResolver.ActiveStrategy,
		Timing: newTimingAnswer(&r), Warnings: make([]warningAnswer, 0, len(r.Warnings)),
	}
	for _, w := range r.Warnings {
		x.Warnings = append(x.Warnings, warningAnswer(w))
	}
	e := explainer{in: in, r: &r, big: x.Larger}
	x.Steps = e.steps()
	x.timeline = e.timeline()
	return x
}

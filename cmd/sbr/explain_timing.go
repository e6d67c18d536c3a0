package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

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
		return s.print(*output, x, x.write)
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

// write prints the explanation: a table, then where each line of it comes from, a timeline, warnings.
func (x *explanation) write(to io.Writer) error {
	p := paint(to)
	var b bytes.Buffer
	fmt.Fprintln(&b, p.bold(fmt.Sprintf("Times of a clean cut: %d members, %s, Serf profile %s.", x.Members, strings.ToLower(x.Strategy), x.Profile)))
	fmt.Fprintf(&b, "The larger half has %d; a lone node is cut off from all others. All times count from the cut.\n\n", x.Larger)
	x.table(&b)
	for i, s := range x.Steps {
		fmt.Fprintf(&b, "\n%s %s\n", p.bold(fmt.Sprintf("%d. %s.", i+1, capital(s.Name))), s.Text)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, sum := range s.Sums {
			fmt.Fprintf(t, "   %s\t%s\n", sum.Of, sum)
		}
		_ = t.Flush() // a bytes.Buffer takes everything
		fmt.Fprintf(&b, "   change it with %s\n", strings.Join(s.Keys, ", "))
	}
	b.WriteString("\n" + x.timeline)
	for _, w := range x.Warnings {
		fmt.Fprintln(&b, p.yellow("warning: "+w.Key+": "+w.Text))
	}
	_, err := to.Write(b.Bytes())
	return err
}

func (x *explanation) table(to io.Writer) {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tLARGER HALF\tA LONE NODE")
	for i, s := range x.Steps {
		fmt.Fprintf(t, "%2d %s\t%s\n", i+1, s.Name, strings.Join(s.cells, "\t"))
	}
	_ = t.Flush() // its caller's buffer takes everything
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// String is the sum in words: part + part = total.
func (s sum) String() string {
	var b strings.Builder
	for i, p := range s.Parts {
		switch {
		case p.d < 0:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		b.WriteString(exact(p.d.Abs()) + " " + p.Name)
	}
	return b.String() + " = " + exact(s.is)
}

// exact shows milliseconds: the parts must add up to the eye, too.
func exact(d time.Duration) string { return d.Round(time.Millisecond).String() }

// columns is the width of the timeline.
const columns = 64

// timeline draws the worst case of both sides to scale.
func (e *explainer) timeline() string {
	if e.r.Resolution <= 0 {
		return ""
	}
	scale := e.r.Resolution / columns
	var b strings.Builder
	fmt.Fprintf(&b, "The worst case; a column is %s:\n\n", scale.Round(10*time.Millisecond))
	for _, side := range []string{larger, lonely} {
		s := e.latest(side)
		parts := append(s.Parts, part{d: e.r.Resolution - s.is, mark: markTelling})
		fmt.Fprintf(&b, "  %-13s%s\n", side, bar(parts, scale))
	}
	legend := "  . not noticed   = stable-after   "
	if strings.ContainsRune(b.String(), markUnstable) {
		legend += "~ keeps changing   "
	}
	if e.delay() > 0 {
		legend += "- minority delay   > lease, and "
	} else {
		legend += "> "
	}
	return b.String() + "\n" + legend + "telling the side\n"
}

// bar rounds where the parts end, not how long they are: so the bars of both sides stay in step.
func bar(parts []part, scale time.Duration) string {
	var b strings.Builder
	var until time.Duration
	for _, p := range parts {
		until += p.d
		for n := int((until + scale/2) / scale); b.Len() < n; {
			b.WriteByte(p.mark)
		}
	}
	return b.String()
}

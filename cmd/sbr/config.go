package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

const configCheckHelp = `Check reads a configuration strictly and prints what it amounts to: all settings with their defaults and computed values (secrets
are hidden), and the times that follow from them in a cluster of so many members: how soon each side notices a cut, decides,
and how long both sides may be up. Settings that are allowed but unsafe are named as warnings; they do not change the exit status.
A configuration that needs a lease and does not say where it is kept is refused, as by sbr agent.

The text form is a configuration again, with the times as comments.`

const (
	maxConfigInput = 1 << 20
	maxMembers     = 100_000
	defaultMembers = 5
)

func newConfig(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "work with configurations", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newConfigCheck(s))
	return c
}

// configCheck holds the flags of `sbr config check`.
type configCheck struct {
	file    string
	members int
	profile string
	output  string
}

func newConfigCheck(s streams) *cobra.Command {
	var flags configCheck
	c := &cobra.Command{
		Use: "check [-f FILE]", Short: "check a configuration and compute its timings",
		Long: configCheckHelp, Example: "  sbr config check -f sbr.yaml --members 20", Args: cobra.NoArgs,
	}
	file, output := addFile(c), addFormat(c)
	c.Flags().IntVar(&flags.members, "members", 0, "the number of members to compute with (default 5, or min-members if that is more)")
	c.Flags().StringVar(&flags.profile, "profile", "", "the settings of Serf's failure detector: lan, wan or local (default: the file's serf.profile)")
	_ = c.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(timing.Profiles(), cobra.ShellCompDirectiveNoFileComp))
	c.RunE = verb(func() error {
		flags.file, flags.output = *file, *output
		if err := flags.validate(c.Flags().Changed("members"), c.Flags().Changed("profile")); err != nil {
			return badInput{err}
		}
		return flags.run(s)
	})
	return c
}

func (c *configCheck) validate(members, profile bool) error {
	var problems []error
	if members && (c.members < 1 || c.members > maxMembers) {
		problems = append(problems, fmt.Errorf("--members %d: it must be from 1 to %d", c.members, maxMembers))
	}
	if err := strictyaml.OneOf(c.profile, timing.Profiles()); profile && err != nil {
		problems = append(problems, fmt.Errorf("--profile: %w", err))
	}
	return errors.Join(problems...)
}

func (c *configCheck) run(s streams) error {
	name, data, err := readInput(c.file, s.in, maxConfigInput)
	if err != nil {
		return err
	}
	f, err := config.Parse(name, data)
	if err == nil {
		_, err = f.LeaseStore()
	}
	if err != nil {
		return badInput{err}
	}
	if c.members == 0 {
		c.members = max(defaultMembers, min(f.SplitBrainResolver.MinMembers, maxMembers))
	}
	if c.profile == "" {
		c.profile = f.Serf.Profile
	}
	gossip, _ := timing.Profile(c.profile) // both sources were checked
	report := timing.Compute(f.Timing(c.members, gossip))
	report.Warnings = append(f.Warnings(c.members), report.Warnings...)
	if c.output == formatJSON {
		answer, err := c.answer(f, &report)
		if err != nil {
			return err
		}
		return writeJSON(s.out, answer)
	}
	return c.write(s.out, name, f, &report)
}

// checkAnswer is what `sbr config check -o json` prints. All durations are Go duration strings.
type checkAnswer struct {
	Valid     bool            `json:"valid"`
	Digest    string          `json:"digest"`
	LeaseName string          `json:"lease-name"`
	Members   int             `json:"members"`
	Profile   string          `json:"profile"`
	Config    any             `json:"config"`
	Timing    timingAnswer    `json:"timing"`
	Warnings  []warningAnswer `json:"warnings"`
}

type warningAnswer struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

func (c *configCheck) answer(f *config.File, r *timing.Report) (checkAnswer, error) {
	a := checkAnswer{
		Valid: true, Digest: f.Digest(), LeaseName: f.LeaseName(), Members: c.members, Profile: c.profile,
		Timing: newTimingAnswer(r), Warnings: make([]warningAnswer, 0, len(r.Warnings)),
	}
	for _, w := range r.Warnings {
		a.Warnings = append(a.Warnings, warningAnswer(w))
	}
	if err := yaml.Unmarshal(f.Redacted().Effective(), &a.Config); err != nil {
		return a, fmt.Errorf("the effective configuration does not read back: %w", err)
	}
	return a, nil
}

// strategyLine says in one line what the file stands for.
func strategyLine(f *config.File) string {
	strategy := strings.ToLower(f.SplitBrainResolver.ActiveStrategy)
	line := fmt.Sprintf("system %s, strategy %s", f.System, strategy)
	if f.SplitBrainResolver.NeedsLease() {
		line += fmt.Sprintf(" over the lease %s (%s)", f.LeaseName(), f.SplitBrainResolver.LeaseMajority.LeaseImplementation)
	}
	return line + ", digest " + f.Digest()
}

// timingAnswer is the JSON form of a timing.Report.
type timingAnswer struct {
	Detection struct {
		Serf      sidesAnswer `json:"serf"`
		OwnProbes sidesAnswer `json:"own-probes"`
		Both      sidesAnswer `json:"both"`
	} `json:"detection"`
	LargestGap          string      `json:"largest-gap"`
	Decision            sidesAnswer `json:"decision"`
	Resolution          string      `json:"resolution"`
	ResolutionStoreDown string      `json:"resolution-store-down"`
	DoubleActive        struct {
		Watching string `json:"watching"`
		Asking   string `json:"asking"`
		CutOff   string `json:"cut-off"`
	} `json:"double-active"`
	RecommendedStableAfter   string `json:"recommended-stable-after"`
	RecommendedMinorityDelay string `json:"recommended-minority-delay"`
}

type sidesAnswer struct {
	Majority spanAnswer `json:"majority"`
	Lone     spanAnswer `json:"lone"`
}

type spanAnswer struct {
	Fastest string `json:"fastest"`
	Worst   string `json:"worst"`
}

func newTimingAnswer(r *timing.Report) (a timingAnswer) {
	span := func(s timing.Span) spanAnswer { return spanAnswer{s.Fastest.String(), s.Worst.String()} }
	sides := func(s timing.Sides) sidesAnswer { return sidesAnswer{span(s.Majority), span(s.Lone)} }
	a.Detection.Serf, a.Detection.OwnProbes, a.Detection.Both = sides(r.Serf), sides(r.Probes), sides(r.Detection)
	a.LargestGap = r.LargestGap.String()
	a.Decision = sides(r.Decision)
	a.Resolution, a.ResolutionStoreDown = r.Resolution.String(), r.ResolutionStoreDown.String()
	a.DoubleActive.Watching = r.DoubleActive.Watching.String()
	a.DoubleActive.Asking = r.DoubleActive.Asking.String()
	a.DoubleActive.CutOff = r.DoubleActive.CutOff.String()
	a.RecommendedStableAfter, a.RecommendedMinorityDelay = r.StableAfter.String(), r.MinorityDelay.String()
	return a
}

// write prints the effective configuration, and as comments what it is and what follows from it.
func (c *configCheck) write(to io.Writer, name string, f *config.File, r *timing.Report) error {
	p := paint(to)
	var b bytes.Buffer
	fmt.Fprintln(&b, p.bold("# "+name+" is valid: "+strategyLine(f)+"."))
	b.Write(f.Redacted().Effective())
	fmt.Fprintln(&b)
	fmt.Fprintln(&b, p.bold(fmt.Sprintf("# Times of a clean cut, %d members, Serf profile %s:", c.members, c.profile)))
	for line := range strings.Lines(timingTable(f, r)) {
		b.WriteString("#   " + line)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(&b, p.yellow("# warning: "+w.String()))
	}
	_, err := to.Write(b.Bytes())
	return err
}

func timingTable(f *config.File, r *timing.Report) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(label string, cells ...string) { fmt.Fprintf(t, "%s\t%s\n", label, strings.Join(cells, "\t")) }
	row("", "larger half", "a lone node")
	for _, line := range r.Rows(f.SplitBrainResolver.NeedsLease()) {
		row(line.Label, line.Cells...)
	}
	_ = t.Flush() // a strings.Builder takes everything
	return b.String()
}

func span(s timing.Span) string { return s.String() }

// short rounds for people.
func short(d time.Duration) string { return timing.Short(d) }

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

const explainTimingHelp = `Timing explains where the times of a cluster come from: how soon each side of a cut notices it, when it decides, how long
both sides may be up, and which stable-after fits. With -v each time is shown as a sum, with the keys of the configuration that change it.

The cut is a clean one, at one instant, on healthy nodes. Shown are bounds, not typical times. Without -f the defaults are explained.`

const explainTimingExample = `  sbr explain timing
  sbr explain timing -f sbr.yaml --members 50 -v
  sbr explain timing --profile wan -o json`

func newExplainTiming(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "timing", Short: "explain the times of a cluster, and what changes them",
		Long: explainTimingHelp, Example: explainTimingExample, Args: cobra.NoArgs,
	}
	const least = 2 // there is nothing to cut in a smaller one
	output, q := addFormat(c), addQuestion(c, least)
	var file string
	addConfig(c.Flags(), &file, ", or - for standard input (default: all defaults)")
	verbose := c.Flags().BoolP("verbose", "v", false,
		"show for each time the sum that it is, and the keys that change it")
	c.RunE = verb(func() error {
		if err := q.validate(c); err != nil {
			return err
		}
		f := new(config.Default())
		if file != "" {
			var err error
			if _, f, err = readConfig(file, s.in); err != nil {
				return badInput{err}
			}
		}
		x := newExplanation(f, q.members, cmp.Or(q.profile, f.Serf.Profile))
		return s.show(*output, x, func(p painter) string { return x.text(p, *verbose) })
	})
	return c
}

// explanation is what `sbr explain timing -o json` prints. Durations are Go duration strings.
type explanation struct {
	Members  int              `json:"members"`
	Larger   int              `json:"larger-half"`
	Profile  string           `json:"profile"`
	Strategy string           `json:"strategy"`
	Steps    []timing.Step    `json:"steps"`
	Timing   timingAnswer     `json:"timing"`
	Warnings []timing.Warning `json:"warnings"`

	timeline string
}

// newExplanation explains the times of a cluster of so many members.
func newExplanation(f *config.File, members int, profile string) *explanation {
	in, r := f.Times(members, profile)
	return &explanation{
		Members: in.Members, Larger: in.Members - in.Members/2, Profile: profile,
		Strategy: f.SplitBrainResolver.ActiveStrategy,
		Steps:    r.Steps, Timing: newTimingAnswer(in, &r), Warnings: r.Warnings, timeline: r.Timeline(),
	}
}

// text is the explanation: a table, a timeline and warnings; if it is verbose also where each line of the
// table comes from.
func (x *explanation) text(p painter, verbose bool) string {
	var b strings.Builder
	title := fmt.Sprintf("Times of a clean cut: %d members, %s, Serf profile %s.", x.Members,
		strings.ToLower(x.Strategy), x.Profile)
	fmt.Fprintln(&b, p.bold(title))
	fmt.Fprintf(&b, "The larger half has %d; a lone node is cut off from all others. All times count from the cut.\n\n", x.Larger)
	rows := [][]string{{"", "LARGER HALF", "A LONE NODE"}}
	for i, step := range x.Steps {
		rows = append(rows, append([]string{fmt.Sprintf("%2d %s", i+1, step.Name)}, step.Cells...))
	}
	b.WriteString(table(rows...))
	for i, step := range x.Steps {
		if !verbose {
			break
		}
		name := strings.ToUpper(step.Name[:1]) + step.Name[1:]
		fmt.Fprintf(&b, "\n%s %s\n", p.bold(fmt.Sprintf("%d. %s.", i+1, name)), step.Text)
		var sums [][]string
		for _, sum := range step.Sums {
			sums = append(sums, []string{"   " + sum.Of, sum.String()})
		}
		fmt.Fprintf(&b, "%s   change it with %s\n", table(sums...), strings.Join(step.Keys, ", "))
	}
	b.WriteString("\n" + x.timeline)
	for _, w := range x.Warnings {
		fmt.Fprintln(&b, p.yellow("warning: "+w.String()))
	}
	return b.String()
}

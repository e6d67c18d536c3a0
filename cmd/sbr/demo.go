package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/demo"
	"github.com/serf-sbr/serf-sbr/strategies"
)

const demoHelp = `Starts real Serf nodes in this process on a network that can be cut, cuts it, and shows what happens:
who loses sight of whom, who asks for the lease, the verdict, who goes down, and why. Then the cut is
healed and a downed member tries to come back.

Nothing is needed but this program. The times are shortened, as the second line says; with --defaults they are
the real ones, and it takes twice as long or more. On a busy machine it waits, and says for what. With --kubeconfig
the lease lives in a real API server.

Exit statuses: 0 exactly one side was up at the end; 1 not so, or the demonstration could not run; 2 bad usage.`

const demoExamples = `  sbr demo
  sbr demo --split 1/4
  sbr demo --split 2/2/1 --pause n4
  sbr demo --defaults
  sbr demo --strategy keep-majority -o json
  sbr demo --kubeconfig ~/.kube/config --namespace default`

// errNotOneSide is returned when the demonstration ran, but did not end with exactly one side up.
var errNotOneSide = errors.New("not exactly one side is up at the end")

func newDemo(s streams) *cobra.Command {
	opt := demo.DefaultOptions()
	c := &cobra.Command{Use: "demo", Short: "cut a cluster of real Serf nodes and watch one lease decide",
		Long: demoHelp, Example: demoExamples, Args: cobra.NoArgs}
	output := addWord(c, "output", "o", formatText, "how the answer is written", formatText, formatJSON)
	f := c.Flags()
	f.StringVar(&opt.Split, "split", opt.Split, "sizes of the sides, n1 first")
	f.Var(word{&opt.Strategy, strategies.Keys()}, "strategy",
		"the active strategy, by its `KEY` in the configuration")
	f.DurationVar(&opt.StableAfter, "stable-after", opt.StableAfter,
		"how long the view must be stable before a decision")
	f.BoolVar(&opt.Defaults, "defaults", false, "with the default times of everything, Serf included")
	f.StringVar(&opt.Pause, "pause", "", "a member that is paused from the cut until everything is over")
	f.StringVar(&opt.Kubeconfig, "kubeconfig", "",
		"keep the lease in the API server of this file (default: in memory)")
	f.StringVar(&opt.Namespace, "namespace", "",
		"namespace of the lease in Kubernetes (default: as the kubeconfig says)")
	f.StringVar(&opt.System, "system", opt.System, "name of the cluster; the lease is called <system>-sbr")
	c.MarkFlagsMutuallyExclusive("defaults", "stable-after")
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		if err := opt.Validate(); err != nil {
			return badInput{err}
		}
		return runDemo(ctx, s, opt, *output)
	})
	return c
}

func runDemo(ctx context.Context, s streams, opt demo.Options, output string) error {
	var show func(demo.Event)
	if output == formatText {
		show = func(e demo.Event) { fmt.Fprintln(s.out, demoLine(paint(s.out), &e)) }
	}
	res, err := demo.Run(ctx, opt, show)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case err != nil:
		return fmt.Errorf("demo: %w", err)
	}
	err = s.show(output, res, func(painter) string { return demoTable(res) })
	if err == nil && !res.Passed {
		err = errNotOneSide
	}
	return err
}

// demoLine is one line of the timeline.
func demoLine(p painter, e *demo.Event) string {
	line := fmt.Sprintf("%7.2fs  %-4s %s", time.Duration(e.At).Seconds(), cmp.Or(e.Node, "--"), e.Detail)
	switch e.Kind {
	case demo.KindWorld:
		return p.bold(line)
	case downing.OccurredDown:
		return p.red(line)
	case downing.OccurredGranted, downing.OccurredVerdict:
		return p.green(line)
	case downing.OccurredRefused, downing.OccurredHeld, downing.OccurredUnknown:
		return p.yellow(line)
	default:
		return line
	}
}

// demoTable is the result for people.
func demoTable(r *demo.Result) string {
	rows := [][]string{
		{"survivors", cmp.Or(strings.Join(r.Survivors, " "), "(nobody)")},
		{"downed", cmp.Or(strings.Join(r.Down, " "), "(nobody)")},
		{"time to resolution", fmt.Sprintf("%v from the cut to the last member down", r.ResolvedAfter)},
	}
	if l, v := &r.Lease, &r.Verdict; l.Name != "" { // the strategy asks for one
		rows = append(rows,
			[]string{"double-active time", fmt.Sprintf("%v from the verdict to the last member down", r.DoubleActive)},
			[]string{"lease", fmt.Sprintf("%s, holder %s, token %d", l.Name, cmp.Or(l.Holder, "nobody"), l.Token)},
			[]string{"verdict", fmt.Sprintf("%d by %s: %s", v.Token, cmp.Or(v.DecidedBy, "nobody"), v.Reason)})
	}
	end := "exactly one side is up, and the downed stayed out"
	if !r.Passed {
		end = "NOT exactly one side is up"
	}
	return "\n" + table(append(rows, []string{"result", end})...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/explore"
	"github.com/serf-sbr/serf-sbr/strategies"
)

const exploreHelp = `Explore tries everything that can happen to a small cluster that is cut once, over the states of the resolvers of production,
and checks the promises in each state. It leaves nothing to chance:

  - every way to cut the cluster into two or more sides;
  - every order in which the sides decide: at the same moment, and one 2 s (while a race is under way) or 75 s after another (when the
    winner has released the lease);
  - every order in which deadlines, messages, requests to the lease store and its answers come;
  - at every moment each fault, as many as allowed: a message, a request or an answer comes late or never (--lost), a member crashes
    (--crashes), is paused (--pauses), leaves (--leaves) or starts anew (--restarts), an operator removes a
    failed member from the list (--removals), the record is deleted or restored (--forgets), members never reach the store (--no-store).

Cuts that differ in names only are tried once, if the strategy never answered differently: the others are counted as covered.

What it does not try: a heal; a store that is slow rather than late; with --late-detection off, members of one side that notice
the cut at different moments.

The promises: S1, S2, S4, L3 and the chain of verdicts in each state, deadlines that move (F1), S1, S2 and L1 where nothing more
happens. Strategies without a lease promise neither L1 nor, when messages are lost, S1: what breaks it is shown all the same.

The rules are the defaults; the flags change the strategy and what is done when the lease store is silent. static-quorum needs
more than half of the members, and the referee of keep-referee is the first member.

-o json is one object:
  schema, version                   1, and that of the program
  nodes, lost, crashes, pauses, leaves, removals, forgets, restarts, no-store,
  late-detection, watch, strategy, when-lease-unknown, time
                                    the question
  complete                          whether everything was tried
  interrupted                       whether somebody ended it before
  elapsed                           how long it took
  walks, covered                    cuts and orders that were tried, and that another one speaks for
  states, edges, rests              different states, steps between them, states in which nothing more happens
  excepted                          rests after the store forgot a verdict that no survivor could tell it again, which S1 excepts
  by-size                           the same for each kind of cut: sizes, partitions, walks, covered, states, edges, rests
  violations                        promise, partition, text, steps; at most three

Exit statuses: 0 everything was tried and nothing is broken; 1 something is broken, or the time was over (--time) or somebody
interrupted it before everything was tried; 2 bad input.`

const exploreExample = `  sbr explore
  sbr explore --nodes 4 --lost 1 --crashes 1 --no-store 4
  sbr explore --nodes 6 --time 1h -o json`

// exploreAll are the flags of the verb.
type exploreAll struct {
	plan     explore.Exhaustive
	strategy string
	unknown  *string
	watch    *string
	budget   time.Duration
	output   *string
}

func newExplore(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "explore", Short: "try everything that can happen to a small cluster", Long: exploreHelp,
		Example: exploreExample,
		Args:    cobra.NoArgs,
	}
	o := exploreAll{strategy: "lease-majority"}
	f := c.Flags()
	f.IntVar(&o.plan.Members, "nodes", 5, fmt.Sprintf("the members of the cluster, 2 to %d", explore.MaxMembers))
	f.IntVar(&o.plan.Lost, "lost", 1, "how many messages, requests and answers may come late, or never")
	f.IntVar(&o.plan.Crashes, "crashes", 1, "how many members may crash")
	f.IntVar(&o.plan.Pauses, "pauses", 0, "how many times a member may be paused")
	f.IntVar(&o.plan.Leaves, "leaves", 0, "how many members may leave in good order")
	f.IntVar(&o.plan.Removals, "removals", 0,
		"how many times an operator may remove a failed member from the list of a side")
	f.IntVar(&o.plan.Forgets, "forgets", 0,
		"how many times the record may be deleted, or become an older one; needs --watch on")
	f.IntVar(&o.plan.Restarts, "restarts", 0,
		"how many members may start anew, each once, with their state; up to 4 members")
	f.IntVar(&o.plan.NoStore, "no-store", 0,
		"how many members may be unable to reach the lease store: every choice of them")
	f.BoolVar(&o.plan.LateCut, "late-detection", false,
		"let --lost happen to the news of the cut, too: a member notices another one later")
	f.Var(word{&o.strategy, strategies.Keys()}, "strategy", "the strategy, by its `KEY` in the configuration")
	o.unknown = addWord(c, "when-lease-unknown", "", "down",
		"what a side does when none of its members gets an answer from the store", "down", "suspend")
	o.watch = addWord(c, "watch", "", "off", "whether members watch the lease; off is the harder case",
		"on", "off")
	f.DurationVar(&o.budget, "time", 0, "how long at most (default: until everything was tried)")
	o.output = addWord(c, "output", "o", formatText, "how the result is written", formatText, formatJSON)
	c.RunE = interruptibleVerb(func(ctx context.Context) error { return o.run(ctx, s) })
	c.AddCommand(newExploreRandom(s))
	return c
}

// run explores, and writes what was found.
func (o *exploreAll) run(ctx context.Context, s streams) error {
	families, err := o.families()
	if err != nil {
		return badInput{err}
	}
	begun := time.Now()
	limited, cancel := bounded(ctx, o.budget)
	defer cancel()
	r := o.report(families, walkAll(limited, families, s.err))
	r.Elapsed = time.Since(begun).Round(time.Millisecond).String()
	r.Interrupted = ctx.Err() != nil
	if err := s.print(*o.output, r, r.text); err != nil {
		return err
	}
	return r.verdict(o.budget)
}

// verdict is the exit status, in words.
func (r *walkReport) verdict(budget time.Duration) error {
	switch {
	case len(r.Violations) > 0:
		return errors.New("a promise is broken")
	case r.Complete:
		return nil
	case r.Interrupted:
		return errors.New("interrupted before everything was tried")
	default:
		return fmt.Errorf("the time of %v was over before everything was tried", budget)
	}
}

// families are the walks to make.
func (o *exploreAll) families() ([]explore.Family, error) {
	if o.budget < 0 {
		return nil, fmt.Errorf("--time %v: it must not be negative", o.budget)
	}
	settings := strategies.DefaultSettings()
	settings.StaticQuorum.QuorumSize = o.plan.Members/2 + 1
	settings.KeepReferee.Address = "n1"
	s, err := strategies.New(o.strategy, settings)
	if err != nil {
		return nil, fmt.Errorf("--strategy: %w", err)
	}
	o.plan.Strategy, o.plan.Resolver = s, sbr.DefaultConfig()
	o.plan.Watch = *o.watch == "on"
	if *o.unknown == "suspend" {
		o.plan.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend
	}
	return o.plan.Plan()
}

// walkAll makes the walks of all families on all cores, and shows how far it is. The results are in the order
// of the families; that of a family whose walk had not begun when ctx ended is empty.
func walkAll(ctx context.Context, families []explore.Family, to io.Writer) []explore.FamilyResult {
	show := newProgress(to, "form", uint64(len(families)))
	defer show.end()
	results := make([]explore.FamilyResult, len(families))
	cores.All(len(families), func(k int) {
		if ctx.Err() == nil {
			results[k] = walkFamily(ctx, families[k])
			show.done(len(results[k].Broken) > 0)
		}
	})
	return results
}

// walkFamily makes the walks of one family. A panic in it is a violation that names the family, not the end
// of all the others.
func walkFamily(ctx context.Context, f explore.Family) (r explore.FamilyResult) {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("internal error: the walk %s panicked: %v", f.Form, p)
			r.Broken = []explore.Violation{{Promise: "F1", Cluster: f.Partition, Text: text}}
		}
	}()
	return f.Run(ctx)
}

// walkReport is the answer.
type walkReport struct {
	Schema  int    `json:"schema"`
	Version string `json:"version"`
	explore.Exhaustive
	Strategy         string              `json:"strategy"`
	WhenLeaseUnknown string              `json:"when-lease-unknown"`
	Time             string              `json:"time"`
	Complete         bool                `json:"complete"`
	Interrupted      bool                `json:"interrupted"`
	Elapsed          string              `json:"elapsed"`
	walkRow                              // of all sizes together
	Sizes            []walkRow           `json:"by-size"`
	Violations       []explore.Violation `json:"violations"`
}

// walkRow is what was counted for one kind of cut.
type walkRow struct {
	Sizes      string `json:"sizes,omitempty"`
	Partitions int    `json:"partitions"`
	Walks      int    `json:"walks"`
	Covered    int    `json:"covered"`
	explore.WalkCounts
	missing int // walks that were not made
}

func (w *walkRow) add(v walkRow) {
	w.Partitions += v.Partitions
	w.Walks += v.Walks
	w.Covered += v.Covered
	w.WalkCounts = w.WalkCounts.Add(v.WalkCounts)
	w.missing += v.missing
}

const (
	walkSchema    = 1
	maxViolations = 3
)

func (o *exploreAll) report(families []explore.Family, results []explore.FamilyResult) *walkReport {
	r := &walkReport{
		Schema: walkSchema, Version: buildVersion().build(), Exhaustive: o.plan, Strategy: o.strategy,
		WhenLeaseUnknown: *o.unknown, Time: o.budget.String(), Complete: true, Violations: []explore.Violation{},
	}
	known := make(map[string]bool)
	for k := range families {
		f, x := &families[k], &results[k]
		n := slices.IndexFunc(r.Sizes, func(w walkRow) bool { return w.Sizes == f.Sizes })
		if n < 0 {
			n, r.Sizes = len(r.Sizes), append(r.Sizes, walkRow{Sizes: f.Sizes})
		}
		row := walkRow{
			Walks: x.Walked, Covered: x.Covered, WalkCounts: x.WalkCounts,
			missing: len(f.Walks) - x.Walked - x.Covered,
		}
		for _, w := range f.Walks {
			if name := explore.Partition(w.Sides).String(); !known[name] {
				known[name] = true
				row.Partitions++
			}
		}
		r.Sizes[n].add(row)
		r.add(row)
		r.Complete = r.Complete && x.Complete
		for _, v := range x.Broken {
			r.violated(v)
		}
	}
	return r
}

// violated notes a violation. Of violations that say the same that with the fewest steps is kept.
func (r *walkReport) violated(v explore.Violation) {
	k := slices.IndexFunc(r.Violations, func(w explore.Violation) bool {
		return w.Promise == v.Promise && w.Text == v.Text
	})
	switch {
	case k >= 0 && len(v.Steps) < len(r.Violations[k].Steps):
		r.Violations[k] = v
	case k < 0 && len(r.Violations) < maxViolations:
		r.Violations = append(r.Violations, v)
	}
}

// text writes a table, the violations with the steps that lead to them, and a line that says how it ended.
func (r *walkReport) text(to io.Writer) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "sides\tcuts\twalks\tcovered\tstates\tedges\trests\t")
	all := r.walkRow
	all.Sizes = "all"
	for _, w := range append(r.Sizes, all) {
		fmt.Fprintf(t, "%s\t", w.Sizes)
		for _, n := range []int{w.Partitions, w.Walks, w.Covered, w.States, w.Edges, w.Rests} {
			fmt.Fprintf(t, "%s\t", thousands(n))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	p := paint(to)
	for _, v := range r.Violations {
		fmt.Fprintf(to, "\n%s %s\n  cut into %s, and then:\n", p.red(v.Promise), v.Text, v.Cluster)
		for _, step := range v.Steps {
			fmt.Fprintf(to, "  %s\n", step)
		}
	}
	line := r.outcome(p)
	if isTerminal(to) { // elsewhere the same question gives the same text
		line += " in " + r.Elapsed
	}
	_, err := fmt.Fprintf(to, "\n%s\n", line)
	return err
}

// outcome is the last line without the time.
func (r *walkReport) outcome(p painter) string {
	states := thousands(r.States) + " states"
	switch {
	case len(r.Violations) > 0:
		return p.red("broken") + ": " + states + " seen"
	case r.Complete:
		return p.green("nothing broken") + ": everything was tried, " + states
	default:
		return p.yellow("not everything was tried") +
			fmt.Sprintf(": %s seen, nothing broken in them; %s walks not finished", states, thousands(r.missing))
	}
}

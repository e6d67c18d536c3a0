package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/explore"
	"github.com/serf-sbr/serf-sbr/strategies"
)

const exploreHelp = `Explore tries everything that can happen to a small cluster that is cut once, over the states of the resolvers of production,
and checks the promises in each state. It leaves nothing to chance:

  - every way to cut the cluster into two or more sides;
  - every order in which the sides decide: at the same moment, and one 2 s (while a race is under way) or 75 s after another (when the
    winner has given the lease back);
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
	unknown  word
	watch    word
	budget   time.Duration
	output   format
}

func newExplore(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "explore", Short: "try everything that can happen to a small cluster", Long: exploreHelp, Example: exploreExample,
		Args: cobra.NoArgs,
	}
	o := exploreAll{
		strategy: "lease-majority", unknown: word{is: "down", known: []string{"down", "suspend"}},
		watch: word{is: "off", known: []string{"on", "off"}}, output: formatText,
	}
	f := c.Flags()
	f.IntVar(&o.plan.Members, "nodes", 5, fmt.Sprintf("the members of the cluster, 2 to %d", explore.MaxMembers))
	f.IntVar(&o.plan.Lost, "lost", 1, "how many messages, requests and answers may come late, or never")
	f.IntVar(&o.plan.Crashes, "crashes", 1, "how many members may crash")
	f.IntVar(&o.plan.Pauses, "pauses", 0, "how many times a member may be paused")
	f.IntVar(&o.plan.Leaves, "leaves", 0, "how many members may leave in good order")
	f.IntVar(&o.plan.Removals, "removals", 0, "how many times an operator may remove a failed member from the list of a side")
	f.IntVar(&o.plan.Forgets, "forgets", 0, "how many times the record may be deleted, or become an older one; needs --watch on")
	f.IntVar(&o.plan.Restarts, "restarts", 0, "how many members may start anew, each once, with their state; up to 4 members")
	f.IntVar(&o.plan.NoStore, "no-store", 0, "how many members may be unable to reach the lease store: every choice of them")
	f.BoolVar(&o.plan.LateCut, "late-detection", false, "let --lost happen to the news of the cut, too: a member notices another one later")
	f.StringVar(&o.strategy, "strategy", o.strategy, "the strategy, by its key in the configuration")
	f.Var(&o.unknown, "when-lease-unknown", "what a side does when none of it can learn the fate of the lease")
	f.Var(&o.watch, "watch", "whether members watch the lease; off is the harder case")
	f.DurationVar(&o.budget, "time", 0, "how long at most (default: until everything was tried)")
	f.VarP(&o.output, "output", "o", "how the result is written")
	for flag, words := range map[string][]string{
		"output": {"text", "json"}, "when-lease-unknown": o.unknown.known, "watch": o.watch.known, "strategy": strategies.Keys(),
	} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	c.RunE = verb(func() error {
		ctx, stop := interruptible(c.Context())
		defer stop()
		return o.run(ctx, s)
	})
	c.AddCommand(newExploreRandom(s))
	return c
}

// run explores, and writes what was found.
func (o *exploreAll) run(ctx context.Context, s streams) error {
	families, err := o.families()
	if err != nil {
		return badInput{err}
	}
	begun, whole := time.Now(), ctx
	if o.budget > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.budget)
		defer stop()
	}
	show := newWalkProgress(s.err, len(families), o.budget)
	results := walkAll(ctx, families, show)
	show.end()
	r := o.report(families, results)
	r.Elapsed = time.Since(begun).Round(time.Millisecond).String()
	r.Interrupted = whole.Err() != nil
	write := r.text
	if o.output == formatJSON {
		write = r.json
	}
	if err := write(s.out); err != nil {
		return err
	}
	return r.verdict(o.budget)
}

// verdict is the exit status, in words.
func (r *walkReport) verdict(budget time.Duration) error {
	switch {
	case len(r.Violations) > 0:
		return internal{errors.New("a promise is broken")}
	case r.Complete:
		return nil
	case r.Interrupted:
		return internal{errors.New("interrupted before everything was tried")}
	default:
		return internal{fmt.Errorf("the time of %v was over before everything was tried", budget)}
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
	o.plan.Watch = o.watch.is == "on"
	if o.unknown.is == "suspend" {
		o.plan.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend
	}
	return o.plan.Plan()
}

// word is a flag with a few values.
type word struct {
	is    string
	known []string
}

// String, Set and Type make word a flag value that refuses other words.
func (w *word) String() string { return w.is }

// Set implements pflag.Value.
func (w *word) Set(s string) error {
	if err := strictyaml.OneOf(s, w.known); err != nil {
		return err
	}
	w.is = s
	return nil
}

// Type implements pflag.Value; it is the placeholder in the help.
func (w *word) Type() string { return strings.Join(w.known, "|") }

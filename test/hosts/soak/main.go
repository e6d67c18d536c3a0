//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
)

// The exit statuses.
const (
	exitPassed = 0 // every round passed, and the losers that reach the store were quick enough
	exitFailed = 1 // a round failed, or the run was cut short
	exitBad    = 2 // bad usage, or there can be no hosts here
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends at once; the hosts' watchmen clean up
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are the flags.
type options struct {
	rounds, parallel  int
	members           int
	seed              uint64
	only              []int
	logs              string
	keep, plans       bool
	singleton, shards bool
	planned           bool
	family            family
	store             string
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 200, "how many rounds, from 1")
	f.Uint64Var(&o.seed, "seed", 1, "what all plans follow from")
	f.IntVar(&o.parallel, "parallel", 5,
		"how many rounds are played beside each other, each on hosts of its own")
	f.StringVar(&o.logs, "logs", "",
		"the `folder` for the logs of failed rounds (default: a new one in the temporary folder)")
	f.BoolVar(&o.keep, "keep", false, "keep the logs of rounds that passed, too")
	f.BoolVar(&o.singleton, "singleton", false,
		"play rounds with a program that runs in one place (sbr run) and writes to a ledger")
	f.BoolVar(&o.shards, "shards", false,
		"play rounds with shards, on nodes of their own, that write to a ledger")
	f.BoolVar(&o.planned, "planned", false, "play rounds in which such a program moves and nothing goes wrong")
	f.StringVar(&o.store, "store", cluster.Stores[0],
		"where the lease is kept: "+strings.Join(cluster.Stores, ", "))
	f.IntVar(&o.members, "members", usualMembers,
		"how many hosts there are, 5 to 9; others than 5 with cuts of links only")
	f.Func("family", "play rounds of one `kind` only: force-leave (a cron on each host removes what Serf calls failed), "+
		"record (the store forgets), links (cuts that are not clean), links-and-faults (with faults of the store and pauses "+
		"besides) or times (defaults, stable-after 20s and auto, losers with and without the store)", func(text string) error {
		if o.family = family(text); !slices.Contains(families, o.family) {
			return fmt.Errorf("%q: there are %q", text, families)
		}
		return nil
	})
	f.BoolVar(&o.plans, "plans", false, "print the plans and play nothing")
	f.Func("round", "play these `rounds` only, with commas between them", func(text string) error {
		for field := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(field)
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no round", field)
			}
			o.only = append(o.only, n)
		}
		return nil
	})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("%q: there are no arguments, only flags", f.Arg(0))
	case o.rounds < 1 || o.parallel < 1:
		err = errors.New("--rounds and --parallel must be at least 1")
	case o.members < usualMembers || o.members > 9:
		err = fmt.Errorf("--members %d: 5 to 9", o.members)
	case o.members != usualMembers && o.family != linksFamily && o.family != faultsFamily:
		err = fmt.Errorf("--members is about --family %s and %s", linksFamily, faultsFamily)
	case o.singleton && o.shards || o.planned && (o.singleton || o.shards):
		err = errors.New("--singleton, --planned and --shards are three ways to play: one at a time")
	case !slices.Contains(cluster.Stores, o.store):
		err = fmt.Errorf("--store %s: there are %q", o.store, cluster.Stores)
	case o.family == recordFamily && refuses(o.store, etcdRestored) != "":
		err = fmt.Errorf("--family %s: %s", recordFamily, refuses(o.store, etcdRestored))
	case o.family != mixed && (o.singleton || o.shards || o.planned):
		err = errors.New("--family is about rounds without --singleton, --planned and --shards")
	}
	return o, err
}

// numbers are the rounds to play.
func (o *options) numbers() []int {
	if len(o.only) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(o.only)))
	}
	all := make([]int, o.rounds)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// plan is that of a round, without the faults that the store cannot have.
func (o *options) plan(round int) plan {
	p := o.whole(round)
	p.Faults = slices.DeleteFunc(p.Faults, func(f fault) bool { return refuses(o.store, f.Kind) != "" })
	return p
}

// whole is the plan as it is in Kubernetes.
func (o *options) whole(round int) plan {
	switch {
	case o.singleton:
		return newSinglePlan(o.seed, round)
	case o.shards:
		return newShardPlan(o.seed, round)
	case o.planned:
		return newPlannedPlan(o.seed, round)
	case o.family == forcedFamily:
		return newForcedPlan(o.seed, round)
	case o.family == recordFamily:
		return newRecordPlan(o.seed, round)
	case o.family == linksFamily || o.family == faultsFamily:
		return newLinksPlan(o.seed, round, o.family)
	case o.family == timesFamily:
		return newTimesPlan(o.seed, round)
	default:
		return newMixedPlan(o.seed, round)
	}
}

// first is the kind of the first stage of a worker.
func (o *options) first(worker int) stageKind {
	k := stageKind{mode: moduleMode}
	switch o.family {
	case forcedFamily:
		k.stable = stables[worker%2]
	case timesFamily:
		k.stable = reference[worker%2]
	}
	if o.shards {
		k.mode, k.shards = ownMode, shardCount
	}
	if o.singleton || o.planned || o.shards {
		k.guard = guards[(worker+1)%2]
	}
	return k
}

// run is the program, but for the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitPassed
	}
	if err == nil {
		hosts = hostNames(o.members)
	}
	if err == nil && o.plans {
		for _, round := range o.numbers() {
			p := o.plan(round)
			fmt.Fprintf(stdout, "%4d  %-6s  %s\n", round, p.Mode, p.String())
		}
		return exitPassed
	}
	if err == nil {
		err = lab.Check()
	}
	if err != nil {
		fmt.Fprintf(stderr, "soak: %v\n", err)
		return exitBad
	}
	for _, k := range deeds {
		if why := refuses(o.store, k); why != "" {
			fmt.Fprintf(stderr, "soak: rounds are played without %q: %s\n", k, why)
		}
	}
	s, err := playAll(ctx, o, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "soak: %v\n", err)
	}
	if err != nil || ctx.Err() != nil || s.Failed() {
		return exitFailed
	}
	return exitPassed
}

// playAll plays, and writes what came of it, also when it was interrupted.
func playAll(ctx context.Context, o options, stdout, stderr io.Writer) (summary, error) {
	var err error
	if o.logs == "" {
		o.logs, err = os.MkdirTemp("", "sbr-soak-")
	} else {
		err = os.MkdirAll(o.logs, 0o755)
	}
	if err != nil {
		return summary{}, err
	}
	p, err := newPrograms(ctx, o.logs, stderr)
	if err != nil {
		return summary{}, err
	}
	p.versions = append(p.versions, "lease in "+o.store)
	start, done := time.Now(), 0
	s := newSoak(o, p, nil)
	total := len(s.todo)
	s.report = func(r result) {
		done++
		writeProgress(stdout, &r, done, total, &o)
	}
	runErr := s.run(ctx)
	sum := summarize(s.results, total, time.Since(start), p.versions, o)
	sum.Single = summarizeSingle(s.results, s.ledgers)
	err = sum.write(stdout)
	_ = os.Remove(filepath.Join(o.logs, "sbr"))
	_ = os.RemoveAll(p.ledger)
	_ = os.Remove(o.logs) // stays while logs are in it
	return sum, errors.Join(runErr, err)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The exit statuses.
const (
	exitCaught   = 0 // all mutants were caught
	exitSurvived = 1 // some were not
	exitBad      = 2 // bad usage, a bad mutant, or a tree that fails without any
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	only    string
	mode    mode
	quick   bool
	workers int
}

func parseOptions(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.only, "only", "",
		"try these mutants only: `names` with commas between them, * stands for anything")
	f.StringVar((*string)(&o.mode), "tier", string(whole),
		"what runs: suite (cheap to dear, up to the first failure), or each (the simulator, too)")
	f.BoolVar(&o.quick, "quick", false, "a few mutants, against the cheap steps")
	f.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "how many mutants are tried at once")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("%q: there are no arguments, only flags", f.Arg(0))
	case o.mode != whole && o.mode != each:
		err = fmt.Errorf("--tier %q: it must be %s or %s", o.mode, whole, each)
	}
	return o, err
}

// run is the program, but for the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitCaught
	}
	var found []finding
	if err == nil {
		found, err = hunt(ctx, o, stderr)
	}
	if err == nil {
		err = writeTable(stdout, found, o.mode)
	}
	if err != nil {
		fmt.Fprintf(stderr, "mutants: %v\n", err)
		return exitBad
	}
	worst := status(found)
	if n := seenAlone(found); worst == exitCaught && o.mode == each && o.only == "" && !o.quick &&
		n < leastAlone {
		fmt.Fprintf(stderr, "mutants: the simulator alone finds %d, fewer than %d\n", n, leastAlone)
		return exitSurvived
	}
	return worst
}

func status(found []finding) int {
	worst := exitCaught
	for i := range found {
		switch f := &found[i]; {
		case f.Err != nil:
			return exitBad
		case f.survived() != "":
			worst = exitSurvived
		}
	}
	return worst
}

func hunt(ctx context.Context, o options, stderr io.Writer) (found []finding, err error) {
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	t, err := openTree(ctx, scratch)
	if err != nil {
		return nil, err
	}
	mutants, err := loadMutants(filepath.Join(t.root, "test", "mutants", "testdata"))
	if err == nil {
		mutants, err = selected(mutants, o)
	}
	if err != nil {
		return nil, err
	}
	steps, err := theSuite(ctx, t)
	if err != nil {
		return nil, err
	}
	h := &hunter{tree: t, steps: steps, mode: o.mode}
	h.steps = slices.DeleteFunc(h.steps, func(s step) bool { return o.quick && s.dear })
	finished := 0
	found = h.all(ctx, mutants, o.workers, func(f finding) {
		finished++
		fmt.Fprintf(stderr, "%d of %d  %.1fs  %s: %s\n", finished, len(mutants), f.Took.Seconds(), f.Name,
			f.briefly())
	})
	return found, ctx.Err()
}

// selected are the mutants that the flags name.
func selected(all []*mutant, o options) ([]*mutant, error) {
	var some []*mutant
	patterns := strings.Split(o.only, ",")
	for _, m := range all {
		named := o.only == "" || slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, m.Name)
			return ok && err == nil
		})
		if named && (m.Quick || !o.quick) {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("--only %q: no mutant of that name among %d", o.only, len(all))
	}
	return some, nil
}

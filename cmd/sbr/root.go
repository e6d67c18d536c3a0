package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Exit statuses. They are part of the contract of the program.
const (
	exitInternal = 1
	exitBadInput = 2
	exitHeld     = 3 // for certain not: another owner holds the lease, the member is not up
)

const rootHelp = `sbr resolves split brains of Serf clusters: when a cluster is cut in two, exactly one side stays up.

Exit statuses:
  0   done
  1   internal error; demo: not exactly one side was up at the end; lease: outcome unknown, or it does not work; simulate, explore: something is broken; status, members: no agent answers; down: refused, or outcome unknown
  2   bad usage, bad input or bad configuration
  3   lease: another owner holds it; status --check: the member is not up
  70  agent: this member was downed

Errors go to standard error, one line each, and begin with "sbr: ".`

// streams are what a verb reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// newRoot builds the whole command tree over s. A verb is one file with one constructor; it is added here.
func newRoot(s streams) *cobra.Command {
	root := group("sbr", "split brain resolver for Serf", rootHelp)
	root.SilenceErrors, root.SilenceUsage, root.Version = true, true, buildVersion().line()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(
		newAgent(s),
		newDecide(s),
		newDemo(s),
		newDown(s),
		group("explain", "explain what follows from a configuration", "", newExplainTiming(s)),
		newExplore(s),
		group("lease", "show, watch, acquire, release, repair and diagnose a lease", leaseHelp, newLeaseShow(s),
			newLeaseWatch(s),
			newLeaseAcquire(s), newLeaseRelease(s), newLeaseForceRelease(s), newLeaseReset(s), newLeaseMove(s),
			newLeaseDoctor(s)),
		newMan(s),
		newManifests(s),
		newMembers(s),
		group("config", "work with configurations", "", newConfigCheck(s), newConfigInit(s)),
		newRun(s),
		newSupervise(),
		group("schema", "print the JSON Schema of a kind of file, for editors", "", newSchemas(s)...),
		newShards(s),
		newShrink(s),
		newSimulate(s),
		newSingletons(s),
		newStatus(s),
		newVersion(s),
	)
	addHelp(root)
	addCompletion(root)
	explainUsage(root)
	return root
}

// group is a command that holds others and does nothing but to say which.
func group(use, short, long string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(verbs...)
	return c
}

// run executes one command line and returns the exit status.
func run(args []string, s streams) (status int) {
	defer func() {
		if r := recover(); r != nil { // the runtime would exit with 2, which means bad input
			fmt.Fprintf(s.err, "sbr: internal error: %v\n%s", r, debug.Stack())
			status = exitInternal
		}
	}()
	root := newRoot(s)
	root.SetArgs(args)
	return report(s.err, root.Execute())
}

// badInput marks an error as the caller's: exit status 2.
type badInput struct{ error }

func (b badInput) Unwrap() error { return b.error }

// exit marks an error with the exit status that it means. Without an error nothing is printed.
type exit struct {
	error
	status int
}

func (e exit) Unwrap() error { return e.error }

// verb adapts the function of a verb to cobra. Errors that it does not mark are internal; those that never
// reach it (unknown commands and flags, wrong arguments) come from cobra unmarked, and are bad usage.
func verb(f func() error) func(*cobra.Command, []string) error {
	return verbOf(func(*cobra.Command, []string) error { return f() })
}

// verbOf is verb for a function that takes what cobra gives.
func verbOf(f func(c *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		err := f(c, args)
		if err == nil || errors.As(err, new(badInput)) || errors.As(err, new(exit)) {
			return err
		}
		return exit{err, exitInternal}
	}
}

// interruptibleVerb is verb for a function that ends with the first SIGINT or SIGTERM.
func interruptibleVerb(f func(ctx context.Context) error) func(*cobra.Command, []string) error {
	return verbOf(func(c *cobra.Command, _ []string) error {
		ctx, stop := interruptible(c.Context())
		defer stop()
		return f(ctx)
	})
}

// report prints err, one line for each problem in it, and returns the exit status.
func report(to io.Writer, err error) int {
	marked := exit{status: exitBadInput}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &marked):
		if marked.error == nil {
			return marked.status
		}
	case !errors.As(err, new(badInput)): // of usage: one problem
		err = oneLine(err)
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(to, "sbr: %s\n", line)
	}
	return marked.status
}

// interruptible ends with the first SIGINT or SIGTERM.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// bounded ends with ctx, or after a limit above zero.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses. They are part of the contract of the program.
const (
	exitInternal = 1
	exitBadInput = 2
	exitHeld     = 3
)

const rootHelp = `sbr resolves split brains of Serf clusters: when a cluster is cut in two, exactly one side stays up.

Exit statuses:
  0   done
  1   internal error; demo: not exactly one side was up at the end; lease: nobody knows, or it does not work; simulate, explore: something is broken; status, members: no agent answers; down: refused, or nobody knows
  2   bad usage, bad input or bad configuration
  3   lease: for certain not, somebody else holds it; status --check: the member is not up
  70  agent: this member was downed

Errors go to standard error, one line each, and begin with "sbr: ".`

// streams are what a verb reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// newRoot builds the whole command tree over s. A verb is one file with one constructor; it is added here.
func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use: "sbr", Short: "split brain resolver for Serf", Long: rootHelp,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(
		newAgent(s),
		newDecide(s),
		newDemo(s),
		newDown(s),
		newExplain(s),
		newExplore(s),
		newLease(s),
		newMan(s),
		newManifests(s),
		newMembers(s),
		newConfig(s),
		newRun(s),
		newKeep(),
		newSchema(s),
		newSimulate(s),
		newSingletons(s),
		newStatus(s),
		newVersion(s),
	)
	addCompletion(root)
	return root
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

// internal marks an error as ours: exit status 1.
type internal struct{ error }

func (i internal) Unwrap() error { return i.error }

// verb adapts the function of a verb to cobra. Errors that it does not mark are internal; those that never reach it (unknown
// commands and flags, wrong arguments) come from cobra unmarked, and are bad usage.
func verb(f func() error) func(*cobra.Command, []string) error {
	return func(*cobra.Command, []string) error {
		err := f()
		if err == nil || errors.As(err, new(badInput)) || errors.As(err, new(held)) || errors.As(err, new(exitStatus)) {
			return err
		}
		return internal{err}
	}
}

// report prints err, one line for each problem in it, and returns the exit status.
func report(to io.Writer, err error) int {
	var ended exitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return int(ended)
	case errors.As(err, new(badInput)), errors.As(err, new(internal)), errors.As(err, new(held)):
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(to, "sbr: %s\n", line)
		}
	default: // from cobra: one problem, sometimes with suggestions on lines of their own
		fmt.Fprintf(to, "sbr: %s\n", strings.Join(strings.Fields(err.Error()), " "))
	}
	switch {
	case errors.As(err, new(internal)):
		return exitInternal
	case errors.As(err, new(held)):
		return exitHeld
	default:
		return exitBadInput
	}
}

// Command write is a run that works: it writes to a ledger every 10 ms until INT or TERM, with a start before
// and a stop after, and is meant to be started by `sbr run`.
//
//	write --ledger URL [--resource NAME] [--member NAME] [--every 10ms]
//
// The token comes from SBR_TOKEN. What is not given comes from the environment: LEDGER_URL; SBR_SINGLETON,
// else SBR_LEASE; SBR_MEMBER, else SBR_HOLDER, else the name of the host. Refused attempts do not end it:
// what is measured is who tries. At the end it prints what it counted.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/lease/fence"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stderr))
}

// run returns the exit status: 0 when it was told to stop, 2 when something is missing.
func run(ctx context.Context, args []string, env func(string) string, messages io.Writer) int {
	w, err := parse(args, env, messages)
	if err != nil {
		fmt.Fprintln(messages, "write:", err)
		return 2
	}
	s := w.Run(ctx)
	fmt.Fprintf(messages, "write: %s on %s under token %d: %d accepted, %d refused, %d failed\n",
		w.Entry.Resource, w.Entry.Member, w.Token, s.Accepted, s.Refused, s.Failed)
	if s.Last != nil {
		fmt.Fprintln(messages, "write: the last that failed:", s.Last)
	}
	return 0
}

func parse(args []string, env func(string) string, messages io.Writer) (ledger.Writer, error) {
	host, _ := os.Hostname() // a name for people; none is as good
	w := ledger.Writer{Entry: ledger.Entry{Run: rand.Text()}}
	flags := flag.NewFlagSet("write", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.StringVar(&w.Client.URL, "ledger", env("LEDGER_URL"), "URL of the ledger")
	flags.StringVar(&w.Entry.Resource, "resource", cmp.Or(env("SBR_SINGLETON"), env("SBR_LEASE")),
		"what is written to")
	flags.StringVar(&w.Entry.Member, "member", cmp.Or(env("SBR_MEMBER"), env("SBR_HOLDER"), host), "who writes")
	flags.DurationVar(&w.Every, "every", ledger.DefaultEvery, "time between two entries")
	if err := flags.Parse(args); err != nil {
		return w, err
	}
	var problems []error
	if w.Client.URL == "" {
		problems = append(problems, errors.New("no ledger: give --ledger or LEDGER_URL"))
	}
	if w.Entry.Resource == "" {
		problems = append(problems, errors.New("no resource: give --resource, SBR_SINGLETON or SBR_LEASE"))
	}
	if w.Every <= 0 {
		problems = append(problems, fmt.Errorf("--every is %v: it must be more than 0s", w.Every))
	}
	var err error
	if w.Token, err = fence.Parse(env("SBR_TOKEN")); err != nil {
		problems = append(problems, fmt.Errorf("SBR_TOKEN: %w", err))
	}
	return w, errors.Join(problems...)
}

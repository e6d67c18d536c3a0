package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/lease"
)

const leaseWatchHelp = `Watch prints the lease now and again after each change, until it is interrupted or --for is over. It changes nothing.
With -o json each change is one JSON object on a line of its own, as sbr lease show prints it.`

func newLeaseWatch(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "watch", Short: "print a lease whenever it changes", Long: leaseWatchHelp,
		Example: "  sbr lease watch -f sbr.yaml --for 1m",
	}
	flags, output := addLease(c), addFormat(c)
	during := c.Flags().Duration("for", 0, "how long (default: until it is interrupted)")
	c.RunE = verb(func() error {
		ctx, stop := interruptible(c.Context())
		defer stop()
		if *during > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, *during)
			defer cancel()
		}
		return flags.with(ctx, func(t *target, store lease.Store) error { return t.watch(ctx, s.out, store, *output) })
	})
	return c
}

// interruptible ends with the first SIGINT or SIGTERM.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

func (t *target) watch(ctx context.Context, out io.Writer, store lease.Store, output string) error {
	// The first read tells what is wrong; a watch would try again for ever.
	first, err := t.read(ctx, store)
	if err != nil {
		return err
	}
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var shown lease.Version = "none"
	show := func(s lease.Snapshot) {
		if s.Version == shown || failed != nil {
			return
		}
		shown = s.Version
		if failed = t.line(out, store, s, output); failed != nil {
			cancel() // nobody reads it any more
		}
	}
	show(first)
	err = lease.Follow(ctx, store, lease.Pace{}, nil, show)
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return nil // as it was asked for
	}
	return err
}

// line prints one change.
func (t *target) line(out io.Writer, store lease.Store, s lease.Snapshot, output string) error {
	a := newLeaseAnswer(t.where(store), s, s.Version != "")
	if output == formatJSON {
		return json.NewEncoder(out).Encode(a)
	}
	what := "free"
	switch {
	case !a.Exists:
		what = "does not exist"
	case a.Holder != "":
		what = "held by " + a.Holder
	}
	line := fmt.Sprintf("%s  token %d  %s", time.Now().Format("15:04:05.000"), a.Token, what)
	if v := a.Verdict; v != nil {
		line += fmt.Sprintf("  (verdict %d: %d survive, %d go down)", v.Token, len(v.Survivors), len(v.Down))
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

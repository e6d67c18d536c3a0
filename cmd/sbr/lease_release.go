package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/lease"
)

const leaseReleaseHelp = `Release frees a lease that was acquired under the same owner's name. Token and verdict stay in it.

Exit statuses: 0 released, 1 outcome unknown, 2 bad usage, 3 not released: the owner does not hold it.`

// release is what `sbr lease release -o json` and `force-release -o json` print.
type release struct {
	Lease   string `json:"lease"`
	Outcome string `json:"outcome"`
	// Holder is the holder of the lease before.
	Holder string `json:"holder"`
	Token  uint64 `json:"token"`
	Error  string `json:"error,omitempty"`
}

// release frees the lease of that holder.
func (s streams) release(ctx context.Context, output string, l *lease.Lease, where, holder string) error {
	was, _, err := l.ForceRelease(ctx, holder)
	r, failed := release{Lease: where, Outcome: "released", Holder: was.Holder, Token: was.Token}, error(nil)
	switch {
	case errors.Is(err, lease.ErrNotHeld):
		r.Outcome, failed = "not-released", exit{fmt.Errorf("%s was not released: it is free", where), exitHeld}
		if was.Holder != "" {
			failed = exit{fmt.Errorf("%s was not released: %s holds it (token %d)", where, was.Holder, was.Token),
				exitHeld}
		}
		if errors.Is(err, lease.ErrOtherHolder) {
			r.Error = err.Error()
		}
	case err != nil:
		r.Outcome, r.Error = "unknown", err.Error()
		failed = fmt.Errorf("%s: it is unknown whether it was released: %w", where, err)
	}
	return s.outcome(output, r, fmt.Sprintf("released %s, which %s held (token %d)", where, was.Holder,
		was.Token), failed)
}

func newLeaseRelease(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "release", Short: "release a lease that this owner holds", Long: leaseReleaseHelp,
		Example: "  sbr lease release file:/run/backup.lease",
	}
	flags, output, owner := addLease(c), addFormat(c), addOwner(c)
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		return flags.owned(ctx, *owner, 0, func(t *target, l *lease.Lease) error {
			return s.release(ctx, *output, l, t.where, l.Owner())
		})
	})
	return c
}

const leaseForceHelp = `Force-release takes a lease away from its holder: when a holder crashed and waiting for the heartbeat-timeout is no option, or
that is infinite. First make sure that the holder has ended: if it lives, it works on until it notices (its next heartbeat).

--holder must name who holds the lease (sbr lease show tells), so that nobody else's is taken. Token and verdict stay: members that the
verdict has downed stay down.

Exit statuses: 0 released, 1 outcome unknown, 2 bad usage or not confirmed, 3 not released: it is free, or another owner holds it.`

// systemOwner is the owner that an operator's act is done as. It holds nothing.
const systemOwner = "sbr lease force-release"

func newLeaseForceRelease(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "force-release --holder NAME", Short: "take a lease away from its holder", Long: leaseForceHelp,
		Example: "  sbr lease force-release -f sbr.yaml --holder 'n1#kq3v9x'",
	}
	flags, output := addLease(c), addFormat(c)
	holder := c.Flags().String("holder", "", "who holds the lease; required")
	yes := c.Flags().Bool("yes", false, "do not ask")
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		if *holder == "" {
			return badInput{errors.New("--holder is required: name who holds the lease (sbr lease show)")}
		}
		return flags.owned(ctx, systemOwner, 0, func(t *target, l *lease.Lease) error {
			if !*yes {
				r, err := l.Read(ctx)
				if err != nil {
					return err
				}
				if r.Holder == *holder {
					question := fmt.Sprintf("%s is held by %s (token %d%s).\nTake it away? If the holder still runs, both may work for a while.",
						t.where, r.Holder, r.Token, verdictOf(&r))
					if err := confirm(ctx, s, question); err != nil {
						return err
					}
				}
			}
			return s.release(ctx, *output, l, t.where, *holder)
		})
	})
	return c
}

// confirm asks on the standard error stream and wants the word yes.
func confirm(ctx context.Context, s streams, question string) error {
	fmt.Fprint(s.err, question+" Type yes: ")
	var answer string
	var err error
	read := make(chan struct{})
	go func() { // nothing interrupts a read of a terminal: it is left behind
		answer, err = bufio.NewReader(s.in).ReadString('\n')
		close(read)
	}()
	select {
	case <-read:
	case <-ctx.Done():
		fmt.Fprintln(s.err)
		return badInput{errors.New("interrupted: nothing was done")}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return badInput{err}
	}
	if strings.TrimSpace(answer) == "yes" {
		return nil
	}
	if answer == "" {
		fmt.Fprintln(s.err)
	}
	return badInput{errors.New("not confirmed: nothing was done (--yes does not ask)")}
}

func verdictOf(r *lease.Record) string {
	if r.Verdict == nil {
		return ""
	}
	return fmt.Sprintf(", last verdict %d by %s", r.Verdict.Token, r.Verdict.DecidedBy)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/lease"
)

const leaseMoveHelp = `Move takes the lease of a cluster, with its token, holder and verdict, to another store: the one that the configuration --to names.
The members run meanwhile. At no time can two sides win by the two stores.

The old record stays, with a mark that says where the lease is. From then on nobody writes it, and no member starts with it: restart all
members with the new configuration at once. Until more than half of them have it, nobody can win in a partition. Keep the old record for as
long as any configuration names it: without the mark, members that use it would decide beside the others.

A move that was interrupted is ended by calling it again. A lease moves back in the same way, with the two configurations exchanged.

Exit statuses: 0 it has moved, 1 not moved, or begun and not ended, 2 bad usage or not confirmed.`

func newLeaseMove(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "move --to NEW.yaml", Short: "take the lease of a running cluster to another store",
		Long:    leaseMoveHelp,
		Example: "  sbr lease move -f old.yaml --to new.yaml",
	}
	flags, output := addLease(c), addFormat(c)
	var to leaseFlags
	c.Flags().StringVar(&to.file, "to", "", "the configuration that names the lease in its new store; required")
	yes := c.Flags().Bool("yes", false, "do not ask")
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		if to.file == "" {
			return badInput{errors.New("--to is required: the configuration that names the lease in its new store")}
		}
		return flags.with(ctx, func(old *target) error {
			return to.with(ctx, func(fresh *target) error {
				if a, b := old.config.System, fresh.config.System; a != "" && a != b {
					return badInput{fmt.Errorf("%s is of system %s, and %s of system %s: a lease stays with its cluster",
						old.where, a, fresh.where, b)}
				}
				snap, err := old.read(ctx)
				if err != nil {
					return err
				}
				if _, err := fresh.read(ctx); err != nil { // so that a move begins only where both stores answer
					return err
				}
				if !*yes {
					question := fmt.Sprintf("%s (%s) moves to %s.\nUntil more than half of the members use that, nobody can win in a partition.",
						old.where, newResetRecord(&snap.Record), fresh.where)
					if err := confirm(ctx, s, question); err != nil {
						return err
					}
				}
				return s.move(ctx, *output, old, fresh)
			})
		})
	})
	return c
}

// moveAnswer is what `sbr lease move -o json` prints.
type moveAnswer struct {
	Lease string `json:"lease"`
	To    string `json:"to"`
	// Outcome is moved, refused (nothing more was written), or unfinished: call it again.
	Outcome string `json:"outcome"`
	Holder  string `json:"holder"`
	resetRecord
	Message string `json:"message"`
}

func (s streams) move(ctx context.Context, output string, old, fresh *target) error {
	const requests = 8 // two reads before each of three writes, and after the last one
	ctx, cancel := context.WithTimeout(ctx, requests*max(old.settings.OperationTimeout,
		fresh.settings.OperationTimeout))
	defer cancel()
	r, err := lease.Move(ctx, lease.Place{Store: old.store, Name: old.where},
		lease.Place{Store: fresh.store, Name: fresh.where})
	a := moveAnswer{Lease: old.where, To: fresh.where, Holder: r.Holder, resetRecord: newResetRecord(&r)}
	switch {
	case err == nil:
		a.Outcome, a.Message = "moved", fmt.Sprintf("%s has moved to %s (%s)", a.Lease, a.To, a.resetRecord)
	case errors.Is(err, lease.ErrNotMoved):
		a.Outcome, a.Message = "refused", strings.TrimPrefix(err.Error(), "lease: ")
	default:
		a.Outcome = "unfinished"
		a.Message = fmt.Sprintf("%s may be on its way to %s: %v: call this again until it says that it has moved",
			a.Lease, a.To, err)
	}
	a.Message = clean(strings.ReplaceAll(a.Message, "\n", "; "))
	return s.message(output, a, a.Message, err == nil)
}

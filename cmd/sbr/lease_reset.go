package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/lease"
)

const leaseResetHelp = `Reset repairs a lease whose token cannot grow any more: a token of 2^63-1 or more was written into it, so that no member can get
it. The token becomes that of the last verdict, which stays, and the lease is free. A sound lease is left as it is.

With --forget-verdict the last verdict is dropped as well, of a sound lease too: when its own token is spent, or when the chain is
broken and its survivors are gone. The next member that starts is free then. Fences (lease/fence) have seen the large token: reset them, too.

Every member has to be stopped before: one that remembers more writes that back, and after --forget-verdict one that was downed and never
learnt it goes on beside the others. So reset asks the agent (--url, $SBR_URL, http.listen of -f, else http://127.0.0.1:7380), and refuses while
it answers and remembers more. Those that do not answer cannot be asked: reset wants the word yes, which says that no member runs,
is cut off or paused (a suspended machine) that took part before.

--yes says all of this without being asked, also against a member that answers.

Exit statuses: 0 the lease is sound now, 1 refused, or outcome unknown, 2 bad usage or not confirmed.`

func newLeaseReset(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "reset", Short: "repair a lease whose token is spent, with all members stopped", Long: leaseResetHelp,
		Example: "  sbr lease reset -f sbr.yaml\n  sbr lease reset -f sbr.yaml --forget-verdict --url http://n2.example.com:7380",
	}
	flags, output, agent := addLease(c), addFormat(c), addAgentURL(c)
	forget := c.Flags().Bool("forget-verdict", false, "drop the last verdict as well")
	yes := c.Flags().Bool("yes", false,
		"do not ask, and do not refuse: no member that remembers more takes part any more")
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		agent.file = flags.file
		return flags.with(ctx, func(t *target) error {
			a := &resetAnswer{Lease: t.where}
			snap, err := t.read(ctx)
			if err != nil {
				return err
			}
			planned, err := lease.Mended(&snap.Record, *forget)
			if err != nil {
				return fmt.Errorf("%s: %w: stop all members and give --forget-verdict", a.Lease, err)
			}
			a.Before, a.After = newResetRecord(&snap.Record), newResetRecord(&planned)
			if a.Before == a.After {
				return a.report(s, *output, "sound", fmt.Sprintf("%s is sound (%s): nothing was done", a.Lease, a.Before))
			}
			if !*yes {
				client, err := agent.client()
				if err != nil {
					return err
				}
				if why := remembersMore(ctx, client, a.After); why != "" {
					return a.report(s, *output, "refused", fmt.Sprintf("%s was not reset: %s", a.Lease, why))
				}
				question := fmt.Sprintf("%s: %s becomes %s, held by nobody.\nThis is right only if no member that took part before runs, "+
					"is cut off, or paused.", a.Lease, a.Before, a.After)
				if err := confirm(ctx, s, question); err != nil {
					return err
				}
			}
			return a.write(ctx, s, *output, t, *forget)
		})
	})
	return c
}

// resetAnswer is what `sbr lease reset -o json` prints.
type resetAnswer struct {
	Lease string `json:"lease"`
	// Outcome is reset, sound (nothing had to be done), refused, or unknown.
	Outcome string      `json:"outcome"`
	Before  resetRecord `json:"before"`
	After   resetRecord `json:"after"`
	Message string      `json:"message"`
}

// resetRecord is what matters of a record here; the verdict is its token, zero for none.
type resetRecord struct {
	Token   uint64 `json:"token"`
	Verdict uint64 `json:"verdict"`
}

func newResetRecord(r *lease.Record) resetRecord {
	a := resetRecord{Token: r.Token}
	if r.Verdict != nil {
		a.Verdict = r.Verdict.Token
	}
	return a
}

func (r resetRecord) String() string {
	if r.Verdict == 0 {
		return fmt.Sprintf("token %d, no verdict", r.Token)
	}
	return fmt.Sprintf("token %d, verdict %d", r.Token, r.Verdict)
}

func (a *resetAnswer) write(ctx context.Context, s streams, output string, t *target, forget bool) error {
	ctx, cancel := context.WithTimeout(ctx, t.settings.OperationTimeout)
	defer cancel()
	before, after, err := lease.Reset(ctx, t.store, forget)
	a.Before, a.After = newResetRecord(&before), newResetRecord(&after)
	switch {
	case err == nil:
		return a.report(s, output, "reset", fmt.Sprintf("%s is reset: it had %s, and has %s", a.Lease,
			a.Before, a.After))
	case errors.Is(err, lease.ErrConflict), errors.Is(err, lease.ErrRefused):
		return a.report(s, output, "refused", fmt.Sprintf("%s was not reset: %v", a.Lease, err))
	default:
		return a.report(s, output, "unknown",
			fmt.Sprintf("it is unknown whether %s was reset: %v: see sbr lease show", a.Lease, err))
	}
}

// report prints what became of it. Only a lease that is sound now is no error.
func (a *resetAnswer) report(s streams, output, outcome, message string) error {
	a.Outcome, a.Message = outcome, strings.ReplaceAll(message, "\n", "; ")
	return s.message(output, a, a.Message, outcome == "reset" || outcome == "sound")
}

// remembersMore asks the agent, and says why it speaks against the reset; empty if it does not, or if no
// agent runs. An agent that cannot be asked may remember anything.
func remembersMore(ctx context.Context, client *agentClient, after resetRecord) string {
	st, err := client.status(ctx)
	switch {
	case errors.Is(err, errNobodyListens):
		return ""
	case err != nil:
		return fmt.Sprintf("%v: it may run, and remember more", err)
	case st.Lease.Token <= after.Token && st.Verdict.Token <= after.Verdict:
		return ""
	default:
		return fmt.Sprintf("the agent of %s at %s runs and remembers token %d and verdict %d: it would write that back, or go by it: stop all members first",
			st.Member, client.url, st.Lease.Token, st.Verdict.Token)
	}
}

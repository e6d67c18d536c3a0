package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/strictyaml"
	"github.com/serf-sbr/serf-sbr/lease"
)

const leaseAcquireHelp = `Acquire takes a free lease for a fixed time and leaves it held: for scripts, and for maintenance. (While it is held nobody else
wins a partition: a side that cannot get the lease in time goes down.)

It is not renewed: others may take it once --for is over, counted from when they first saw it. It cannot be longer than the
heartbeat-timeout, which is how long all who use the lease wait for anybody. A lease that the owner holds already is taken anew.

Exit statuses: 0 acquired, 1 outcome unknown, 2 bad usage, 3 another owner holds it.`

func newLeaseAcquire(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "acquire", Short: "take a free lease for a fixed time", Long: leaseAcquireHelp,
		Example: "  sbr lease acquire file:/run/backup.lease --for 10m --heartbeat-timeout 1h",
	}
	var during, timeout strictyaml.Span
	flags, output, owner := addLease(c), addFormat(c), addOwner(c)
	c.Flags().Var(spanFlag{&during}, "for", "how long (default: the heartbeat-timeout)")
	c.Flags().Var(spanFlag{&timeout}, "heartbeat-timeout",
		"how long everybody waits for a silent holder (default: the configuration's, or 2m)")
	wait := c.Flags().Duration("wait", 0, "wait so long for the lease to become free")
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		return flags.owned(ctx, *owner, time.Duration(timeout), func(t *target, l *lease.Lease) error {
			p, most := lease.Proposal{For: t.settings.HeartbeatTimeout}, t.settings.HeartbeatTimeout
			if during != 0 {
				p.For = time.Duration(during)
			}
			if p.For <= 0 || p.For > most {
				return badInput{fmt.Errorf("--for %v: it must be positive and at most the heartbeat-timeout (%v)", during,
					strictyaml.Span(most))}
			}
			if *wait < 0 {
				return badInput{fmt.Errorf("--wait %v: it must not be negative", *wait)}
			}
			acquire := l.Acquire
			if *wait > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, *wait, fmt.Errorf("waited for %v", *wait))
				defer cancel()
				acquire = l.AcquireWait
			}
			start := time.Now()
			g, err := acquire(ctx, p)
			a, failed := newAcquisition(t.where, l.Owner(), g, err)
			until := "until it is released"
			if g != nil && p.For != lease.Infinite {
				a.Until = new(start.Add(p.For).UTC().Truncate(time.Second))
				until = "until " + a.Until.Format(time.RFC3339)
			}
			done := fmt.Sprintf("acquired %s as %s %s, token %d", t.where, l.Owner(), until, a.Token)
			return s.outcome(*output, a, done, failed)
		})
	})
	return c
}

// acquisition is what `sbr lease acquire -o json` prints.
type acquisition struct {
	Lease   string `json:"lease"`
	Outcome string `json:"outcome"`
	Owner   string `json:"owner"`
	Holder  string `json:"holder"`
	Token   uint64 `json:"token"`
	// Until is when others may take it, at the earliest.
	Until *time.Time `json:"until,omitempty"`
	// FreeIn is how long the holder may stay silent until it counts as gone.
	FreeIn string `json:"free-in,omitempty"`
	Error  string `json:"error,omitempty"`
}

// newAcquisition is the answer; failed says why the lease was not acquired.
func newAcquisition(where, owner string, g *lease.Grant, err error) (a *acquisition, failed error) {
	a = &acquisition{Lease: where, Outcome: lease.OutcomeOf(err).String(), Owner: owner}
	switch h := (*lease.HeldError)(nil); {
	case err == nil:
		a.Holder, a.Token = g.Record().Holder, g.Token()
		return a, nil
	case errors.As(err, &h):
		a.Holder, a.Token = h.Record.Holder, h.Record.Token
		if h.RetryAfter > 0 {
			a.FreeIn = h.RetryAfter.Round(time.Second).String()
		}
		if err.Error() != h.Error() {
			a.Error = err.Error() // it says also why the waiting has ended
		}
		return a, exit{fmt.Errorf("%s is held by %s (token %d)", where, a.Holder, a.Token), exitHeld}
	}
	a.Error = err.Error()
	if errors.Is(err, lease.ErrRefused) { // then certainly nothing was written
		return a, fmt.Errorf("%s was not acquired: %w", where, err)
	}
	return a, fmt.Errorf("%s: it is unknown whether it was acquired: %w", where, err)
}

// spanFlag makes a flag of a duration that may be infinite.
type spanFlag struct{ *strictyaml.Span }

// String, Set and Type implement pflag.Value.
func (f spanFlag) String() string {
	if f.Span == nil || *f.Span == 0 {
		return ""
	}
	return f.Span.String()
}

// Set implements pflag.Value. Zero stands for the default, which is chosen by leaving the flag out.
func (f spanFlag) Set(text string) error {
	err := f.UnmarshalText([]byte(text))
	if err == nil && *f.Span <= 0 {
		err = fmt.Errorf("is %v: it must be more than 0s", *f.Span)
	}
	return err
}

func (spanFlag) Type() string { return "duration|infinite" }

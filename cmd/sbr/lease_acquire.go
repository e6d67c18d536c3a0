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

Nobody renews it: others may take it once --for is over, counted from when they first saw it. It cannot be longer than the
heartbeat-timeout, which is how long all who use the lease wait for anybody. A lease that the owner holds already is taken anew.

Exit statuses: 0 acquired, 1 nobody knows, 2 bad usage, 3 somebody else holds it.`

// leaseAcquire holds the flags of `sbr lease acquire`.
type leaseAcquire struct {
	*leaseFlags
	owner           string
	during, timeout strictyaml.Span
	wait            time.Duration
	output          string
}

func newLeaseAcquire(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "acquire", Short: "take a free lease for a fixed time", Long: leaseAcquireHelp,
		Example: "  sbr lease acquire file:/run/backup.lease --for 10m --heartbeat-timeout 1h",
	}
	a := leaseAcquire{leaseFlags: addLease(c)}
	output, owner := addFormat(c), addOwner(c)
	c.Flags().Var(spanFlag{&a.during}, "for", "how long (default: the heartbeat-timeout)")
	c.Flags().Var(spanFlag{&a.timeout}, "heartbeat-timeout", "how long everybody waits for a silent holder (default: the configuration's, or 2m)")
	c.Flags().DurationVar(&a.wait, "wait", 0, "wait so long for the lease to become free")
	c.RunE = verb(func() error {
		a.output, a.owner = *output, *owner
		ctx, stop := interruptible(c.Context())
		defer stop()
		return a.run(ctx, s)
	})
	return c
}

func (a *leaseAcquire) run(ctx context.Context, s streams) error {
	return a.owned(ctx, a.owner, time.Duration(a.timeout), func(t *target, l *lease.Lease, where string) error {
		p := lease.Proposal{For: t.settings.HeartbeatTimeout}
		if a.during != 0 {
			p.For = time.Duration(a.during)
		}
		if p.For <= 0 || p.For > t.settings.HeartbeatTimeout {
			return badInput{fmt.Errorf("--for %v: it must be positive and at most the heartbeat-timeout (%v)", a.during, strictyaml.Span(t.settings.HeartbeatTimeout))}
		}
		acquire := l.Acquire
		if a.wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, a.wait, fmt.Errorf("waited for %v", a.wait))
			defer cancel()
			acquire = l.AcquireWait
		}
		start := time.Now()
		g, err := acquire(ctx, p)
		r := newAcquisition(where, a.owner, g, err)
		if g != nil && p.For != lease.Infinite {
			until := start.Add(p.For).UTC().Truncate(time.Second)
			r.Until = &until
		}
		return r.report(s, a.output)
	})
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

	err error
}

func newAcquisition(where, owner string, g *lease.Grant, err error) *acquisition {
	a := &acquisition{Lease: where, Outcome: lease.OutcomeOf(err).String(), Owner: owner, err: err}
	switch h := (*lease.HeldError)(nil); {
	case err == nil:
		a.Holder, a.Token = g.Record().Holder, g.Token()
	case errors.As(err, &h):
		a.Holder, a.Token = h.Record.Holder, h.Record.Token
		if h.RetryAfter > 0 {
			a.FreeIn = h.RetryAfter.Round(time.Second).String()
		}
		if err.Error() != h.Error() {
			a.Error = err.Error() // it says also why the waiting has ended
		}
	default:
		a.Error = err.Error()
	}
	return a
}

func (a *acquisition) report(s streams, output string) error {
	until := "until it is released"
	if a.Until != nil {
		until = "until " + a.Until.Format(time.RFC3339)
	}
	done := fmt.Sprintf("acquired %s as %s %s, token %d", a.Lease, a.Owner, until, a.Token)
	return s.outcome(output, a, done, a.failure())
}

// failure says why the lease was not acquired; nil if it was.
func (a *acquisition) failure() error {
	switch {
	case a.err == nil:
		return nil
	case errors.Is(a.err, lease.ErrHeld):
		return held{fmt.Errorf("%s is held by %s (token %d)", a.Lease, a.Holder, a.Token)}
	case errors.Is(a.err, lease.ErrRefused): // then certainly nothing was written
		return fmt.Errorf("%s was not acquired: %w", a.Lease, a.err)
	default:
		return fmt.Errorf("%s: nobody knows whether it was acquired: %w", a.Lease, a.err)
	}
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

// Set implements pflag.Value.
func (f spanFlag) Set(text string) error { return f.UnmarshalText([]byte(text)) }

// Type implements pflag.Value; it is the placeholder in the help.
func (spanFlag) Type() string { return "duration|infinite" }

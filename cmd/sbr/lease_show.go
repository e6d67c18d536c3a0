package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const leaseShowHelp = `Show reads the lease once and prints it: who holds it, the fencing token, the last verdict. It changes nothing.

The times are the holder's own clock. Whether a holder is alive shows only in what changes: see sbr lease watch.`

func newLeaseShow(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "show", Short: "print a lease and its last verdict", Long: leaseShowHelp,
		Example: "  sbr lease show -f sbr.yaml\n  sbr lease show payments-sbr -n shop -o json",
	}
	flags, output := addLease(c), addFormat(c)
	c.RunE = verb(func() error {
		return flags.with(c.Context(), func(t *target) error {
			snap, err := t.read(c.Context())
			if err != nil {
				return err
			}
			answer := newLeaseAnswer(t.where, snap, snap.Version != "")
			return s.show(*output, answer, func(painter) string { return answer.text(time.Now()) })
		})
	})
	return c
}

// leaseAnswer is what `sbr lease show -o json` prints, and `watch` for each change.
type leaseAnswer struct {
	Lease    string       `json:"lease"`
	Exists   bool         `json:"exists"`
	Holder   string       `json:"holder"`
	Token    uint64       `json:"token"`
	TTL      string       `json:"ttl"`
	Acquired *time.Time   `json:"acquired,omitempty"`
	Renewed  *time.Time   `json:"renewed,omitempty"`
	Verdict  *sbr.Verdict `json:"verdict,omitempty"`
	Moved    *lease.Moved `json:"moved,omitempty"`
}

func newLeaseAnswer(where string, s lease.Snapshot, exists bool) *leaseAnswer {
	r := s.Record
	a := &leaseAnswer{Lease: where, Exists: exists, Holder: r.Holder, Token: r.Token, TTL: "infinite",
		Verdict: r.Verdict}
	if r.TTL > 0 {
		a.TTL = r.TTL.String()
	}
	if !r.Acquired.IsZero() {
		a.Acquired = new(r.Acquired.UTC())
	}
	if !r.Renewed.IsZero() {
		a.Renewed = new(r.Renewed.UTC())
	}
	if r.Moved.Away() {
		a.Moved = &r.Moved
	}
	return a
}

func (a *leaseAnswer) text(now time.Time) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s%s\n", name, fmt.Sprintf(format, args...))
	}
	row("lease", "%s", a.Lease)
	switch m := a.Moved; {
	case m != nil && m.Reserved:
		row("moved", "not yet to here: it is at %s, and its move has begun %s", m.To, ago(m.At, now))
	case m != nil:
		row("moved", "to %s, %s; what follows is how it was then", m.To, ago(m.At, now))
	}
	switch {
	case !a.Exists:
		row("holder", "nobody: the lease does not exist yet")
	case a.Holder == "":
		row("holder", "nobody: the lease is free")
	default:
		row("holder", "%s, for %s at a time", a.Holder, a.TTL)
	}
	row("token", "%d", a.Token)
	if a.Acquired != nil {
		row("acquired", "%s, %s", a.Acquired.Format(time.RFC3339), ago(*a.Acquired, now))
	}
	if a.Renewed != nil {
		row("renewed", "%s, %s", a.Renewed.Format(time.RFC3339), ago(*a.Renewed, now))
	}
	if v := a.Verdict; v == nil {
		row("verdict", "none yet")
	} else {
		row("verdict", "token %d, by %s", v.Token, v.DecidedBy)
		row("", "%s", v.Reason)
		row("  survive", "%s", join(v.Survivors))
		row("  down", "%s", join(v.Down))
		if len(v.Left) > 0 {
			row("  left", "%s", join(v.Left))
		}
		if len(v.Heirs) > 0 {
			row("  heirs", "%s", join(v.Heirs))
		}
	}
	return b.String()
}

func join(ids []sbr.ID) string {
	var names []string
	for _, id := range ids {
		names = append(names, string(id))
	}
	return cmp.Or(strings.Join(names, " "), "-")
}

const leaseWatchHelp = `Watch prints the lease now and again after each change, until it is interrupted or --for is over. It changes nothing.
With -o json each change is one JSON object on a line of its own, with -o yaml one document, as sbr lease show prints it.`

func newLeaseWatch(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "watch", Short: "print a lease whenever it changes", Long: leaseWatchHelp,
		Example: "  sbr lease watch -f sbr.yaml --for 1m",
	}
	flags, output := addLease(c), addFormat(c)
	during := c.Flags().Duration("for", 0, "how long (default: until it is interrupted)")
	c.RunE = interruptibleVerb(func(ctx context.Context) error {
		if *during < 0 {
			return badInput{fmt.Errorf("--for %v: it must not be negative", *during)}
		}
		ctx, cancel := bounded(ctx, *during)
		defer cancel()
		return flags.with(ctx, func(t *target) error { return t.watch(ctx, s.out, *output) })
	})
	return c
}

func (t *target) watch(ctx context.Context, out io.Writer, output string) error {
	// The first read tells what is wrong; a watch would try again for ever.
	first, err := t.read(ctx)
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
		if failed = t.line(out, s, output); failed != nil {
			cancel() // nobody reads it any more
		}
	}
	show(first)
	err = lease.Follow(ctx, t.store, lease.Pace{}, nil, show)
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return nil // as it was asked for
	}
	return err
}

// line prints one change.
func (t *target) line(out io.Writer, s lease.Snapshot, output string) error {
	a := newLeaseAnswer(t.where, s, s.Version != "")
	if output != formatText {
		return writeChange(out, output, a)
	}
	what := "free"
	switch {
	case !a.Exists:
		what = "does not exist"
	case a.Moved != nil:
		what = "is at " + a.Moved.To
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

package main

import (
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
		return flags.with(c.Context(), func(t *target, store lease.Store) error {
			snap, err := t.read(c.Context(), store)
			if err != nil {
				return err
			}
			answer := newLeaseAnswer(t.where(store), snap, snap.Version != "")
			return s.print(*output, answer, func(to io.Writer) error { return answer.write(to, time.Now()) })
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
}

func newLeaseAnswer(where string, s lease.Snapshot, exists bool) *leaseAnswer {
	r := s.Record
	a := &leaseAnswer{Lease: where, Exists: exists, Holder: r.Holder, Token: r.Token, TTL: "infinite", Verdict: r.Verdict}
	if r.TTL > 0 {
		a.TTL = r.TTL.String()
	}
	for to, from := range map[**time.Time]time.Time{&a.Acquired: r.Acquired, &a.Renewed: r.Renewed} {
		if !from.IsZero() {
			at := from.UTC()
			*to = &at
		}
	}
	return a
}

// write prints the text form.
func (a *leaseAnswer) write(to io.Writer, now time.Time) error {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s%s\n", name, fmt.Sprintf(format, args...))
	}
	row("lease", "%s", a.Lease)
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
	_, err := io.WriteString(to, b.String())
	return err
}

func join(ids []sbr.ID) string {
	if len(ids) == 0 {
		return "-"
	}
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(id))
	}
	return b.String()
}

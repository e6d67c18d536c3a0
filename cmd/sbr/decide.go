package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/sbr"
)

const decideHelp = `Decide evaluates one strategy once, on paper: it reads what one member sees and answers what the strategy makes of it.

Input, YAML or JSON:
  strategy      keep-majority, static-quorum, keep-oldest, keep-referee, down-all or lease-majority
  settings      role, quorum-size, down-if-alone, acquire-lease-delay-for-minority, down-all-when-indirectly-connected,
                address, down-all-if-less-than-nodes; absent ones take their defaults
  self          the name of the member that looks
  members       a list of name, addr (host:port), status (joining, weakly-up, up, leaving, exiting, down; default up),
                roles, and age (1 is the oldest; without one a member is the youngest)
  unreachable   names; if absent, the subjects of reachability
  reachability  a list of observer and subject: who cannot reach whom
  seen-by       names of the members that share this view
  lease         granted, held or unknown; absent: not asked yet

The strategy is evaluated whether or not self would act on it; "responsible" says whether it would. Where the decision asks for
the lease and the input does not say how that went, "down" and "survivors" are those of a granted lease. "survivors" are the
members that are not downed and not on their way out already (exiting, down).`

const decideExample = `  echo '{"strategy": "keep-majority", "self": "A", "unreachable": ["C"],
         "members": [{"name": "A"}, {"name": "B"}, {"name": "C"}]}' | sbr decide -o json`

// decideAnswer is what decide prints.
type decideAnswer struct {
	Strategy      string   `json:"strategy"`
	Self          string   `json:"self"`
	Leader        string   `json:"leader"`
	Responsible   bool     `json:"responsible"`
	Decision      string   `json:"decision"`
	FinalDecision string   `json:"final-decision"`
	AcquireDelay  string   `json:"acquire-delay"`
	Minority      bool     `json:"minority"`
	Down          []string `json:"down"`
	Survivors     []string `json:"survivors"`
	Reason        string   `json:"reason"`
}

func newDecide(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "decide [-f FILE]", Short: "evaluate a strategy over one view of a cluster",
		Long: decideHelp, Example: decideExample, Args: cobra.NoArgs,
	}
	file, output := addFile(c), addFormat(c)
	c.RunE = verb(func() error {
		name, data, err := readInput(*file, s.in, maxDecideInput)
		if err != nil {
			return err
		}
		in, err := parseDecide(name, data)
		if err != nil {
			return badInput{err}
		}
		answer, view := in.decide()
		if *output == formatJSON {
			return writeJSON(s.out, answer)
		}
		return answer.write(s.out, &view)
	})
	return c
}

// decide evaluates the strategy. The input was checked, so nothing can fail.
func (in *decideInput) decide() (decideAnswer, sbr.View) {
	strategy, _ := in.strategy()
	view := in.view()
	threshold := float64(in.Settings.Threshold)
	d := sbr.Decide(strategy, &view, threshold)
	decision := d.Kind
	switch in.Lease {
	case leaseGranted:
		d.Final = d.Final.Granted()
	case leaseHeld, leaseUnknown: // unknown past the deadline is decided like held
		d = d.Reversed(&view, threshold)
	}
	answer := decideAnswer{
		Strategy: strings.ToLower(in.Strategy), Self: in.Self, Responsible: view.Responsible(),
		Decision: decision.String(), FinalDecision: d.Final.String(), AcquireDelay: d.Delay.String(), Minority: d.Minority,
		Down: make([]string, 0, len(d.Down)), Survivors: make([]string, 0, len(view.Members)), Reason: d.Reason + ".",
	}
	if leader := view.Leader(); leader != nil {
		answer.Leader = leader.Name
	}
	down := make(map[sbr.ID]bool, len(d.Down))
	for _, id := range d.Down {
		down[id] = true
		answer.Down = append(answer.Down, string(id))
	}
	for i := range view.Members {
		if m := &view.Members[i]; m.Downable() && !down[m.ID] {
			answer.Survivors = append(answer.Survivors, m.Name)
		}
	}
	return answer, view
}

// write prints the answer for people: the decision, why, and a table of the members.
func (a *decideAnswer) write(to io.Writer, view *sbr.View) error {
	p := paint(to)
	fmt.Fprintf(to, "%s: %s\n\n", p.bold(a.Strategy), p.bold(a.FinalDecision))
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if a.Decision != a.FinalDecision {
		fmt.Fprintf(t, "  decision\t%s, which became %s\n", a.Decision, a.FinalDecision)
	}
	fmt.Fprintf(t, "  because\t%s\n", a.Reason)
	if a.AcquireDelay != "0s" {
		fmt.Fprintf(t, "  asks for the lease\tafter %s\n", a.AcquireDelay)
	}
	acts := "acts"
	if !a.Responsible {
		acts = "does not act"
	}
	fmt.Fprintf(t, "  seen by\t%s, which %s (leader: %s)\n\n", a.Self, acts, a.Leader)
	if err := t.Flush(); err != nil {
		return err
	}
	return a.table(to, view, p)
}

func (a *decideAnswer) table(to io.Writer, view *sbr.View, p painter) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  MEMBER\tADDRESS\tSTATUS\tREACHABLE\tFATE")
	down := make(map[string]bool, len(a.Down))
	for _, name := range a.Down {
		down[name] = true
	}
	for i := range view.Members {
		m := &view.Members[i]
		reachable, fate := "yes", p.green("stays up")
		if m.Unreachable {
			reachable = "no"
		}
		switch {
		case down[m.Name]:
			fate = p.red("goes down")
		case !m.Downable():
			fate = "on its way out"
		}
		// The coloured column comes last: escape sequences would count as width.
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", m.Name, m.Addr, m.Status, reachable, fate)
	}
	return t.Flush()
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/downing"
)

const singletonsHelp = `Singletons asks a running sbr agent which programs are attached to it (sbr run --singleton), what its member does for them, and where they
run now, as far as it knows.

The phase is what this member does: idle (it runs elsewhere, or nowhere), taking (it asks the others, or waits for the removal margin), acquiring (it waits
for the lease), active (it runs here), resting (a pause before it is started again here), stopping, releasing (the lease is released).
` + agentHelp + `

Exit statuses: 0 an agent answered, also where nothing is attached; 1 none did; 2 bad usage.`

func newSingletons(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "singletons", Short: "list the programs that are attached to a running agent", Long: singletonsHelp, Args: cobra.NoArgs,
		Example: "  sbr singletons\n  sbr singletons -f sbr.yaml -o json",
	}
	flags, output := addAgent(c), addFormat(c)
	c.RunE = flags.asking(func(ctx context.Context, client *agentClient, _ []string) error {
		return showList(ctx, s, client, "singletons", *output, singletonsTable)
	})
	return c
}

// showList asks for a list, and shows it as a table, or with all keys that came.
func showList[T any](ctx context.Context, s streams, client *agentClient, what, output string, text func([]T, painter) string) error {
	data, _, err := client.get(ctx, "/"+what)
	if err != nil {
		return err
	}
	var all []T
	if err := json.Unmarshal(data, &all); err != nil {
		return client.notAnAgent("something that is not a list of %s", what)
	}
	answer := json.RawMessage(data) // by its address: it is indented anew
	return s.show(output, &answer, func(p painter) string { return text(all, p) })
}

func singletonsTable(all []downing.SingletonStatus, p painter) string {
	if len(all) == 0 {
		return "no program is attached\n"
	}
	rows := [][]string{{"SINGLETON", "PID", "PHASE", "TOKEN", "RUNS ON", "WAITING FOR"}}
	for i := range all {
		e := &all[i]
		token := "-"
		if e.Token != 0 {
			token = fmt.Sprint(e.Token)
		}
		phase := e.Phase
		if !e.Attached {
			phase += ", detached"
		}
		rows = append(rows, []string{
			clean(e.Name), fmt.Sprint(e.PID), clean(phase), token, cmp.Or(clean(e.Holder), "-"),
			cmp.Or(p.yellow(singletonWaits(e)), "-"),
		})
	}
	return table(rows...)
}

// singletonWaits says what the member waits for before it may run it; empty: for nothing.
func singletonWaits(e *downing.SingletonStatus) string {
	var all []string
	if len(e.WaitingFor) > 0 {
		all = append(all, strings.Join(e.WaitingFor, ","))
	}
	if e.Margin != "" {
		all = append(all, "removal margin "+e.Margin)
	}
	if e.LeaseHolder != "" {
		all = append(all, "the lease, held by "+e.LeaseHolder)
	}
	return clean(strings.Join(all, ", "))
}

// singletonText is a singleton in one line: where it runs, and what is waited for.
func singletonText(e *downing.SingletonStatus) string {
	text := clean(e.Name) + ": runs nowhere, as far as is known"
	switch {
	case e.Token != 0:
		text = fmt.Sprintf("%s: runs here, token %d", clean(e.Name), e.Token)
	case e.Holder != "":
		text = fmt.Sprintf("%s: runs on %s, token %d", clean(e.Name), clean(e.Holder), e.HolderToken)
	}
	text += ", " + clean(e.Phase)
	if waits := singletonWaits(e); waits != "" {
		text += ", waits for " + waits
	}
	return text
}

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
		Use: "singletons", Short: "list the programs that are attached to a running agent", Long: singletonsHelp,
		Args:    cobra.NoArgs,
		Example: "  sbr singletons\n  sbr singletons -f sbr.yaml -o json",
	}
	flags, output := addAgent(c), addFormat(c)
	c.RunE = flags.asking(func(ctx context.Context, client *agentClient, _ []string) error {
		all, answer, err := getList[downing.SingletonStatus](ctx, client, "singletons")
		if err != nil {
			return err
		}
		return s.show(*output, answer, func(p painter) string { return singletonsTable(all, p) })
	})
	return c
}

// getList asks for a list. answer is it with all keys that came.
func getList[T any](ctx context.Context, client *agentClient, what string) (all []T, answer any, err error) {
	data, _, err := client.get(ctx, "/"+what)
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, nil, client.notAnAgent("something that is not a list of %s", what)
	}
	return all, new(json.RawMessage(data)), nil // by its address: it is indented anew
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
			clean(e.Name), fmt.Sprint(e.PID), clean(phase), token, cmp.Or(singletonHolder(e), "-"),
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

// singletonHolder is the member that runs it; empty: none is known.
func singletonHolder(e *downing.SingletonStatus) string {
	if e.HolderUnreachable {
		return clean(e.Holder) + ", unreachable"
	}
	return clean(e.Holder)
}

// singletonText is a singleton in one line: where it runs, and what is waited for.
func singletonText(e *downing.SingletonStatus) string {
	text := clean(e.Name) + ": runs nowhere, as far as is known"
	switch {
	case e.Token != 0:
		text = fmt.Sprintf("%s: runs here, token %d", clean(e.Name), e.Token)
	case e.Holder != "":
		text = fmt.Sprintf("%s: runs on %s, token %d", clean(e.Name), singletonHolder(e), e.HolderToken)
	}
	text += ", " + clean(e.Phase)
	if waits := singletonWaits(e); waits != "" {
		text += ", waits for " + waits
	}
	return text
}

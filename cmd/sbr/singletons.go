package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/internal/agent/programs"
)

const singletonsHelp = `Singletons asks a running sbr agent which programs are attached to it (sbr run --singleton), what its member does for them, and where they
run now, as far as it knows.

The phase is what this member does: idle (it runs elsewhere, or nowhere), taking (it asks the others, or waits for the removal margin), acquiring (it waits
for the lease), active (it runs here), resting (it is about to be started again here), stopping, releasing (the lease is given back).
` + agentHelp + `

Exit statuses: 0 an agent answered, also where nothing is attached; 1 none did; 2 bad usage.`

func newSingletons(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "singletons", Short: "list the programs that are attached to a running agent", Long: singletonsHelp, Args: cobra.NoArgs,
		Example: "  sbr singletons\n  sbr singletons -f sbr.yaml -o json",
	}
	flags, output := addAgent(c), addFormat(c)
	c.RunE = verb(func() error {
		client, err := flags.client()
		if err != nil {
			return err
		}
		data, _, err := client.get(c.Context(), "/singletons")
		if err != nil {
			return err
		}
		var all []programs.Singleton
		if err := json.Unmarshal(data, &all); err != nil {
			return client.notAnAgent("something that is not a list of singletons")
		}
		if *output == formatJSON { // as it came
			_, err = s.out.Write(data)
			return err
		}
		return s.show(*output, json.RawMessage(data), func(p painter) string { return singletonsTable(all, p) })
	})
	return c
}

func singletonsTable(all []programs.Singleton, p painter) string {
	if len(all) == 0 {
		return "no program is attached\n"
	}
	rows := [][]string{{"SINGLETON", "PID", "PHASE", "TOKEN", "RUNS ON", "WAITING FOR"}}
	for _, e := range all {
		token := "-"
		if e.Token != 0 {
			token = fmt.Sprint(e.Token)
		}
		phase := e.Phase
		if !e.Attached {
			phase += ", detached"
		}
		waiting := clean(strings.Join(e.WaitingFor, ","))
		if e.Margin != "" {
			waiting = strings.TrimPrefix(waiting+", removal margin "+clean(e.Margin), ", ")
		}
		rows = append(rows, []string{
			clean(e.Name), fmt.Sprint(e.PID), clean(phase), token, cmp.Or(clean(e.Holder), "-"), cmp.Or(p.yellow(waiting), "-"),
		})
	}
	return table(rows...)
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/sharding"
)

const shardsHelp = `Shards asks a Go service that runs shards (package sharding) which member runs each of them, where
it is reached, and under which token. The service has to serve sharding.Handler at /shards below the --url. An sbr
agent runs no shards.

The state is running, or moving: nobody is known to run it. The member that coordinates says more: moving also
where its member has to hand over, unowned (nobody was told to run it), waiting (for a removal margin, for a
lease, or for a member that does not answer or does not stop). A member that waits for a lease says who holds
it. Until a verdict a member that has failed still has its shards: they are running, unreachable.

Exit statuses: 0 the service answered; 1 it did not; 2 bad usage.`

const shardsExample = `  sbr shards --url http://127.0.0.1:8081
  sbr shards --url http://127.0.0.1:8081 --key apples
  sbr shards --url https://orders.example.com --ca-file ca.pem -o json`

func newShards(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "shards --url URL", Short: "list which member runs which shard", Long: shardsHelp,
		Example: shardsExample, Args: cobra.NoArgs,
	}
	flags, output := addAgentURL(c), addFormat(c)
	key := c.Flags().String("key", "", "show the shard of this key alone (sharding.ShardOf, of numbered shards)")
	c.Flags().Lookup("url").Usage = "where the service serves /shards"
	c.Flags().Lookup("token-file").Usage = "file with a token, which is sent as Authorization: Bearer"
	c.RunE = flags.asking(func(ctx context.Context, client *agentClient, _ []string) error {
		if flags.url == "" {
			return badInput{seeHelp(c, fmt.Errorf("--url is missing: where the service serves /shards"))}
		}
		client.who = "service"
		all, answer, err := getList[sharding.Table](ctx, client, "shards")
		if err != nil {
			return err
		}
		if *key != "" {
			ofKey(all, *key)
			answer = all
		}
		return s.show(*output, answer, func(p painter) string { return shardsTable(all, p) })
	})
	return c
}

// ofKey leaves in each table the shard of a key alone.
func ofKey(all []sharding.Table, key string) {
	for i := range all {
		t := &all[i]
		t.Shards = slices.DeleteFunc(t.Shards, func(r sharding.Row) bool {
			return r.Shard != sharding.ShardOf(key, len(t.Shards))
		})
	}
}

func shardsTable(all []sharding.Table, p painter) string {
	var who strings.Builder
	rows := [][]string{{"TYPE", "SHARD", "MEMBER", "ENDPOINT", "TOKEN", "STATE"}}
	for _, t := range all {
		fmt.Fprintf(&who, "%s: coordinated by %s\n", clean(t.Type),
			cmp.Or(clean(t.Coordinator), "a member that is not known yet"))
		for _, name := range t.Silent {
			fmt.Fprintf(&who, "%s\n", p.yellow(clean(name)+" does not answer the coordinator"))
		}
		for _, name := range t.Strangers {
			fmt.Fprintf(&who, "%s\n", p.yellow(clean(name)+" is configured with other shards: it gets none"))
		}
		t.Sort()
		for i := range t.Shards {
			r := &t.Shards[i]
			token, state := "-", clean(r.Says())
			if r.Token != 0 {
				token = fmt.Sprint(r.Token)
			}
			if !r.Well() {
				state = p.yellow(state)
			}
			member, endpoint := cmp.Or(clean(r.Name), "-"), cmp.Or(clean(r.Endpoint), "-")
			rows = append(rows, []string{clean(t.Type), clean(r.Shard), member, endpoint, token, state})
		}
	}
	return table(rows...) + who.String()
}

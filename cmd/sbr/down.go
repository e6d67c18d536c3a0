package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/web"
)

// downTimeout is how long sbr down waits: longer than an agent with default settings tries the lease.
const downTimeout = 30 * time.Second

const downHelp = `Down removes a member from the cluster for good, on the decision of an operator: a running sbr agent asks the lease for a verdict that leaves the member out.
Without a lease (active-strategy) it gives an order, which only the first member of a side can. So it is as safe as what the resolver
decides by itself, which serf force-leave is not: should the member still run, it reads the verdict and goes down.

The agent asked must be another member's. MEMBER is a node name, or an incarnation where two members have one name. The reason is kept in the verdict.

A member that can be reached is downed only with --yes: its resolver ends it and its work at once, with exit status 70. Where it can be asked,
serf leave is better. --yes is needed as well where no other member would be left. While other members cannot be reached the agent refuses:
the resolver is about to decide. A downed member comes back only when it is started again, as a new incarnation.
` + agentHelp + `

Exit statuses: 0 the member is downed; 1 it is not (refused), or the outcome is unknown; 2 bad usage.`

const downExample = `  sbr down n4 --reason 'disk is broken'
  sbr down n4 --yes --url http://n1.example.com:7380 --token-file token -o json`

func newDown(s streams) *cobra.Command {
	c := &cobra.Command{Use: "down MEMBER", Short: "down a member on the decision of an operator",
		Long: downHelp, Example: downExample, Args: cobra.ExactArgs(1)}
	c.ValidArgsFunction = cobra.NoFileCompletions
	flags, output := addAgent(c), addFormat(c)
	timeout := c.Flags().Lookup("timeout")
	flags.timeout, timeout.DefValue = downTimeout, downTimeout.String()
	var request web.DownRequest
	c.Flags().StringVar(&request.Reason, "reason", "", "why, in one line: it is kept in the verdict")
	_ = c.RegisterFlagCompletionFunc("reason", cobra.NoFileCompletions)
	yes := c.Flags().Bool("yes", false, "also if the member can be reached, or is the last other one")
	c.RunE = flags.asking(func(ctx context.Context, client *agentClient, args []string) error {
		request.Member = args[0]
		return down(ctx, s, client, request, *yes, *output)
	})
	return c
}

// downResult is the answer of `sbr down -o json`.
type downResult struct {
	System string `json:"system"`
	// Member is the member that goes down; By is the member whose agent was asked.
	Member string `json:"member"`
	By     string `json:"by"`
	web.DownAnswer
}

func down(ctx context.Context, s streams, client *agentClient, request web.DownRequest, yes bool,
	output string) error {
	a, err := client.status(ctx)
	if err != nil {
		return err
	}
	result := downResult{System: a.System, Member: request.Member, By: a.Member}
	if why := notDowned(a, request.Member, yes); why != "" {
		result.DownAnswer = web.DownAnswer{Outcome: web.OutcomeRefused, Message: why}
	} else if result.DownAnswer, err = client.down(ctx, request); err != nil {
		return err
	}
	if result.Outcome != web.OutcomeDowned {
		return s.message(output, result, result.Message, false)
	}
	done := request.Member +
		" is downed: where it still runs it ends, and it comes back only as a new incarnation"
	return s.message(output, result, done, true)
}

// notDowned says what speaks against downing a member; empty for nothing. What the agent finds out by itself
// is left to it.
func notDowned(a *agentAnswer, name string, yes bool) string {
	if a.unwatched() {
		return unwatched
	}
	names := func(m downing.MemberStatus) bool { return m.Name == name || m.Incarnation == name }
	i := slices.IndexFunc(a.Members, names)
	if i < 0 {
		return fmt.Sprintf("%s is no member: see sbr members", name)
	}
	others := 0
	for _, m := range a.Members {
		if !names(m) && m.Name != a.Member && m.Status != "down" {
			others++
		}
	}
	switch m := a.Members[i]; {
	case m.Name == a.Member:
		return fmt.Sprintf("%s is the member of this agent: stop the agent instead, or ask the agent of another member (--url)", m.Name)
	case yes || m.Status == "down":
		return ""
	case m.Reachable:
		return fmt.Sprintf("%s can be reached: its resolver would end it and its work at once: run serf leave on it, or give --yes", m.Name)
	case others == 0:
		return fmt.Sprintf("%s is the last other member: %s would go on alone: give --yes", m.Name, a.Member)
	default:
		return ""
	}
}

// down asks for a member to be downed. Its errors are one line each.
func (c *agentClient) down(ctx context.Context, request web.DownRequest) (answer web.DownAnswer, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return answer, err
	}
	response, data, err := c.ask(ctx, http.MethodPost, "/down", body)
	if err != nil {
		return answer, fmt.Errorf("it is not known whether %s is downed: %w: look at sbr status",
			request.Member, err)
	}
	if json.Unmarshal(data, &answer) == nil && answer.Outcome != "" {
		return answer, nil
	}
	switch response.StatusCode {
	case http.StatusForbidden, http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return answer, fmt.Errorf("%s: %s", c.url, clean(strings.TrimSpace(string(data[:min(len(data), 200)]))))
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return answer, fmt.Errorf("%s cannot down members: its agent is older than this sbr", c.url)
	case http.StatusOK:
		return answer, c.notAnAgent("something that is no answer to this")
	default:
		return answer, c.refused(response, data)
	}
}

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/serf-sbr/serf-sbr/downing"
)

const membersHelp = `Members asks a running sbr agent who is in the cluster, as its member sees it.

The side of a member is "this" if it can be reached; "indirect" if it cannot, but what it says of others still arrives (there is a
way around the cut); "other" if it cannot; "none" if it was downed: it is listed until it is back, or a newer
verdict does not name it.
` + agentHelp + `

Exit statuses: 0 an agent answered, also where no member fits; 1 none did; 2 bad usage.`

const membersExample = `  sbr members
  sbr members --unreachable
  sbr members --role web -o json
  sbr members --watch`

func newMembers(s streams) *cobra.Command {
	c := &cobra.Command{Use: "members", Short: "list the members as a running agent sees them",
		Long: membersHelp, Example: membersExample, Args: cobra.NoArgs}
	var only memberFilter
	c.Flags().BoolVar(&only.unreachable, "unreachable", false, "only members that cannot be reached")
	c.Flags().StringVar(&only.role, "role", "", "only members with this role")
	c.RunE = s.showAgent(c, only.view(), nil)
	return c
}

// memberFilter says which members are listed. The zero value lists all.
type memberFilter struct {
	unreachable bool
	role        string
}

// memberAnswer is one member of `sbr members -o json`.
type memberAnswer struct {
	downing.MemberStatus
	Side string `json:"side"`
}

// members returns the members that fit, in the agent's order, which is that of the addresses.
func (f *memberFilter) members(a *agentAnswer) []memberAnswer {
	heard := make(map[string]bool)
	for _, r := range a.Reports {
		heard[r.Observer] = true
	}
	all := make([]memberAnswer, 0, len(a.Members))
	for _, m := range slices.Concat(a.Members, a.Downed) {
		if f.unreachable && m.Reachable || f.role != "" && !slices.Contains(m.Roles, f.role) {
			continue
		}
		side := "other"
		switch {
		case m.Status == statusDown:
			side = "none"
		case m.Reachable:
			side = "this"
		case heard[m.Name]:
			side = "indirect"
		}
		all = append(all, memberAnswer{m, side})
	}
	return all
}

func (f *memberFilter) view() agentView {
	return agentView{
		text: func(a *agentAnswer, p painter) string {
			switch {
			case a.unwatched():
				return "no member is seen: " + unwatched + "\n"
			case a.alone():
				return fmt.Sprintf("no member is seen: %s is %s\n", a.name(), a.State)
			}
			text := membersTable(f.members(a), p)
			if a.MembersAsOf != nil {
				text += p.yellow(fmt.Sprintf("as of %s: the Serf agent beside %s does not answer",
					ago(*a.MembersAsOf, a.now), clean(a.Member))) + "\n"
			}
			return text
		},
		line: f.line,
		json: func(a *agentAnswer) any {
			return struct {
				System      string         `json:"system"`
				Member      string         `json:"member"`
				Members     []memberAnswer `json:"members"`
				MembersAsOf *time.Time     `json:"members-as-of,omitempty"`
			}{a.System, a.Member, f.members(a), a.MembersAsOf}
		},
	}
}

func membersTable(all []memberAnswer, p painter) string {
	if len(all) == 0 {
		return "no member fits\n"
	}
	rows := [][]string{{"MEMBER", "INCARNATION", "ADDRESS", "ROLES", "STATUS", "REACHABLE", "SIDE"}}
	for _, m := range all {
		reachable, side := "yes", p.green(m.Side)
		if !m.Reachable {
			reachable, side = "no", p.red(m.Side)
		}
		rows = append(rows, []string{
			clean(m.Name), clean(m.Incarnation), cmp.Or(clean(m.Address), "-"),
			cmp.Or(clean(strings.Join(m.Roles, ",")), "-"),
			clean(m.Status), reachable, side,
		})
	}
	return table(rows...)
}

// line names the members that are not as they should be.
func (f *memberFilter) line(a *agentAnswer) string {
	if a.unwatched() {
		return unwatched
	}
	all := f.members(a)
	var out []string
	for _, m := range all {
		if !m.Reachable || m.Status != "up" {
			out = append(out, fmt.Sprintf("%s (%s, %s)", m.Name, m.Status, m.Side))
		}
	}
	line := count(len(all), "member")
	if len(out) > 0 {
		line += ": " + namesText(out)
	}
	return line
}

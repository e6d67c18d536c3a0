package strategies_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var update = flag.Bool("update", false, "write docs/strategies-table.md anew")

const tablePath = "../docs/strategies-table.md"

// TestTable renders what every strategy decides in typical situations, from the real code, and compares it with the page in docs.
// After a change: go test ./strategies -run TestTable -update, and read the difference.
func TestTable(t *testing.T) {
	got := renderTable()
	if *update {
		require.NoError(t, os.WriteFile(tablePath, []byte(got), 0o644))
	}
	want, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "docs/strategies-table.md is not what the code decides: go test ./strategies -run TestTable -update")
}

// situation is a partition in the notation of draw, seen from one side.
type situation struct {
	title   string
	members string
	side    int
	reports string
	role    string
}

var situations = []situation{
	{title: "Nobody is unreachable", members: "A B C D E"},
	{title: "3 against 2, the larger side", members: "A B C | D E"},
	{title: "3 against 2, the smaller side", members: "A B C | D E", side: 1},
	{title: "3 against 2, the larger side, without n1", members: "C D E | A B"},
	{title: "3 against 2, the smaller side, with n1", members: "C D E | A B", side: 1},
	{title: "2 against 2, with the lowest address", members: "A B | C D"},
	{title: "2 against 2, without the lowest address", members: "A B | C D", side: 1},
	{title: "4 against 1, the oldest member alone", members: "A | B C D E"},
	{title: "4 against 1, the others", members: "A | B C D E", side: 1},
	{title: "4 against 1, a younger member alone or crashed", members: "A B C D | E"},
	{title: "4 against 1, the lone younger member", members: "A B C D | E", side: 1},
	{title: "1 against 1, with the lowest address", members: "A | B"},
	{title: "1 against 1, without it", members: "A | B", side: 1},
	{title: "Three parts, the one with n1", members: "A B | C D | E"},
	{title: "Three parts, one without n1", members: "A B | C D | E", side: 1},
	{title: "6 members, one more than a quorum of 3 allows", members: "A B C D | E F"},
	{title: "3 against 2, and one is joining over there", members: "C D E | A B Fj"},
	{title: "3 against 2, and two of the three are leaving", members: "Al Bl C | D E"},
	{title: "n2 and n3 cannot reach each other, the rest reaches both", members: "A B C D E", reports: "B<>C"},
	{title: "The same with 3 members", members: "A B C", reports: "B<>C"},
	{title: "3 against 2, and n2 and n3 cannot reach each other", members: "A B C | D E", reports: "B<>C"},
	{title: "Role db: 1 against 2 of those that have it", members: "A* B C | D* E*", role: "r"},
	{title: "Role db: 2 against 1 of those that have it", members: "A* B C | D* E*", side: 1, role: "r"},
	{title: "Role db: nobody has it", members: "A B | C", role: "r"},
}

// column is a strategy of the table; role is what a situation limits it to.
type column struct {
	key, settings string
	of            func(role string) sbr.Strategy
}

var columns = []column{
	{"keep-majority", "", func(role string) sbr.Strategy { return strategies.KeepMajority{Role: role} }},
	{"static-quorum", "`quorum-size: 3`", func(role string) sbr.Strategy {
		if role != "" {
			return strategies.StaticQuorum{QuorumSize: 2, Role: role}
		}
		return strategies.StaticQuorum{QuorumSize: 3}
	}},
	{"keep-oldest", "`down-if-alone: on`", func(role string) sbr.Strategy { return strategies.KeepOldest{DownIfAlone: true, Role: role} }},
	{"keep-referee", "`address: n1`", func(string) sbr.Strategy { return strategies.KeepReferee{Address: "n1", DownAllIfLessThanNodes: 1} }},
	{"down-all", "", func(string) sbr.Strategy { return strategies.DownAll{} }},
	{"lease-majority", "`acquire-lease-delay-for-minority: 2s`", func(role string) sbr.Strategy {
		return strategies.LeaseMajority{Role: role, AcquireLeaseDelayForMinority: 2 * time.Second}
	}},
}

// view draws the situation with members n1, n2, … and, for a role, "db".
func (s situation) view() sbr.View {
	v := draw(s.members).from(s.side)
	for _, r := range parseReports(s.reports) {
		v.Reports = append(v.Reports, sbr.Report{Observer: numbered(r.Observer), Subject: numbered(r.Subject)})
	}
	for i := range v.Members {
		m := &v.Members[i]
		m.ID = numbered(m.ID)
		m.Name = string(m.ID)
		if len(m.Roles) > 0 {
			m.Roles = []string{"db"}
		}
	}
	v.Self = numbered(v.Self)
	return v
}

func numbered(id sbr.ID) sbr.ID { return sbr.ID(fmt.Sprintf("n%d", id[0]-'A'+1)) }

// picture writes the members side by side, the deciding side in bold: "**n1 n2 n3** · n4 n5".
func (s situation) picture() string {
	var sides []string
	for i, side := range strings.Split(s.members, "|") {
		var words []string
		for w := range strings.FieldsSeq(side) {
			m := member(w)
			word := string(numbered(m.ID))
			if m.Status != sbr.Up {
				word += " (" + m.Status.String() + ")"
			}
			if len(m.Roles) > 0 {
				word += "\\*"
			}
			words = append(words, word)
		}
		text := strings.Join(words, " ")
		if i == s.side {
			text = "**" + text + "**"
		}
		sides = append(sides, text)
	}
	return strings.Join(sides, " · ")
}

func (s situation) decide(c column) sbr.Decision {
	v := s.view()
	role := ""
	if s.role != "" {
		role = "db"
	}
	return sbr.Decide(c.of(role), &v, 0.5)
}

// cell says in few words what becomes of the deciding side.
func cell(d sbr.Decision) string {
	down := strings.ReplaceAll(names(d.Down), " ", ", ")
	switch d.Final {
	case sbr.None:
		return "nothing"
	case sbr.DownUnreachable:
		return "**stays**, downs " + down
	case sbr.DownReachable:
		return "goes down"
	case sbr.DownAll:
		return "all go down"
	case sbr.DownIndirectlyConnected:
		return "downs " + down
	case sbr.AcquireLeaseAndDownUnreachable:
		if d.Delay > 0 {
			return fmt.Sprintf("asks for the lease after %v", d.Delay)
		}
		return "asks for the lease at once"
	case sbr.AcquireLeaseAndDownIndirectlyConnected:
		return "asks for the lease at once, to down " + down
	default:
		return d.Final.String()
	}
}

func renderTable() string {
	var b strings.Builder
	b.WriteString(tableHead)
	b.WriteString("| Situation | Members |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.key)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, s := range situations {
		fmt.Fprintf(&b, "| %s | %s |", s.title, s.picture())
		for _, c := range columns {
			fmt.Fprintf(&b, " %s |", cell(s.decide(c)))
		}
		b.WriteString("\n")
	}
	for _, c := range columns {
		renderColumn(&b, c)
	}
	return b.String()
}

// renderColumn writes one strategy with the names and the reasons that logs and `sbr decide` use.
func renderColumn(b *strings.Builder, c column) {
	fmt.Fprintf(b, "\n## %s\n\n", c.key)
	if c.settings != "" {
		fmt.Fprintf(b, "With %s.\n\n", c.settings)
	}
	b.WriteString("| Situation | Members | Decision | Reason |\n|---|---|---|---|\n")
	for _, s := range situations {
		d := s.decide(c)
		decision := "`" + d.Kind.String() + "`"
		if d.Final != d.Kind {
			decision += ", then `" + d.Final.String() + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", s.title, s.picture(), decision, d.Reason)
	}
}

const tableHead = "<!-- Written by the code: go test ./strategies -run TestTable -update. Changes by hand are lost. -->\n" + `
# What each strategy decides

Each row is a partition as one side sees it once it has been stable (` + "`stable-after`" + `); the deciding side is **bold**. Every side decides for
itself, so look up both rows to see how a partition ends.

- n1 has the lowest address, is the oldest member and is the referee.
- *stays, downs …*: this side goes on and removes the others. *goes down*: this side ends itself. *all go down*: this side ends itself and, if it
  can, everybody else.
- *asks for the lease*: the side that gets the lease stays and downs the other one; a side that is denied goes down.
- *downs …* alone: these members are indirectly connected (some members reach them and some do not); they go down and the rest stays.
- Joining members go down with their side but are not counted; members marked \* have the role db, and in the rows about it the
  strategies count only those (static-quorum with ` + "`quorum-size: 2`" + `). keep-referee and down-all know no role.
- The settings are the defaults: ` + "`down-all-when-indirectly-connected: 0.5`" + ` turns a decision about indirectly connected members that would down
  half of the members or more into *all go down*.

`

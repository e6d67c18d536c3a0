package explore

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

const truthPage = "../../docs/truth-tables.md"

// truthTable is one strategy, asked about every cut.
type truthTable struct {
	title, text string
	special     string // what the marked members are; empty: nothing is marked
	marks       int    // how many members are marked; -1: any number, the role
	strategy    func(n, marked int) sbr.Strategy
	member      func(m *sbr.Member, marked bool)
}

func truthTables() []truthTable {
	fixed := func(s sbr.Strategy) func(int, int) sbr.Strategy { return func(int, int) sbr.Strategy { return s } }
	plain := func(*sbr.Member, bool) {}
	role := func(m *sbr.Member, marked bool) {
		if marked {
			m.Roles = []string{"db"}
		}
	}
	oldest := func(m *sbr.Member, marked bool) {
		if m.Born += 10; marked {
			m.Born = 1
		}
	}
	quorum := func(n, _ int) sbr.Strategy { return strategies.StaticQuorum{QuorumSize: n/2 + 1} }
	referee := func(_, marked int) sbr.Strategy {
		return strategies.KeepReferee{Address: walkName(marked), DownAllIfLessThanNodes: 1}
	}
	delay := 2 * time.Second
	return []truthTable{
		{"keep-majority", "", "", 0, fixed(strategies.KeepMajority{}), plain},
		{"static-quorum", "The quorum is more than half of the members.", "", 0, quorum, plain},
		{"keep-oldest", "With `down-if-alone: on`.", "oldest", 1, fixed(strategies.KeepOldest{DownIfAlone: true}), oldest},
		{"keep-oldest, down-if-alone: off", "", "oldest", 1, fixed(strategies.KeepOldest{}), oldest},
		{"keep-referee", "", "referee", 1, referee, plain},
		{"down-all", "", "", 0, fixed(strategies.DownAll{}), plain},
		{"lease-majority", "", "", 0, fixed(strategies.LeaseMajority{AcquireLeaseDelayForMinority: delay}), plain},
		{"keep-majority with a role", "", "role", -1, fixed(strategies.KeepMajority{Role: "db"}), role},
		{"lease-majority with a role", "", "role", -1, fixed(strategies.LeaseMajority{Role: "db", AcquireLeaseDelayForMinority: delay}), role},
	}
}

// truthCase is a cut, and what comes of it.
type truthCase struct {
	sizes, lowest, special string // the features that a row may name
	decisions, left        string
}

// cases asks about every cut into so many sides of every cluster of so many members.
func (tt *truthTable) cases(t *testing.T, n, sides int) (all []truthCase) {
	t.Helper()
	for _, p := range Partitions(n) {
		if len(p) != sides {
			continue
		}
		for mask := range 1 << n {
			if marked := walkIDs(uint8(mask)); tt.marks < 0 || len(marked) == tt.marks {
				all = append(all, tt.caseOf(t, p, n, uint8(mask)))
			}
		}
	}
	return all
}

func (tt *truthTable) caseOf(t *testing.T, p Partition, n int, marked uint8) truthCase {
	t.Helper()
	// The larger side first; of two that are as large, the one with more marks, then the one with the lowest address.
	in := func(s []int) (c int) {
		for _, i := range s {
			c += int(marked >> i & 1)
		}
		return c
	}
	// Where a role counts, its members are all that counts.
	size := func(s []int) int { return len(s) }
	if tt.marks < 0 {
		size = in
	}
	lowest := tt.firstCounted(n, marked)
	place := func(s []int) int {
		if slices.Contains(s, lowest) {
			return 0
		}
		return 1
	}
	p = slices.Clone(p)
	slices.SortFunc(p, func(a, b []int) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(in(b), in(a)), cmp.Compare(place(a), place(b)))
	})
	c := truthCase{lowest: "–", special: "any"}
	var sizes, decisions, left []string
	for g, s := range p {
		name := fmt.Sprint(size(s))
		sizes = append(sizes, name)
		if slices.Contains(s, lowest) {
			c.lowest = ordinal(g)
		}
		kind, delay := tt.decide(t, s, n, marked)
		switch {
		case kind == sbr.DownUnreachable:
			decisions, left = append(decisions, "stays"), append(left, tt.sideOf(name))
		case kind == sbr.DownReachable:
			decisions = append(decisions, "goes down")
		case kind == sbr.DownAll:
			decisions = append(decisions, "all go down")
		case delay == 0:
			decisions = append(decisions, "asks at once")
		default:
			decisions = append(decisions, "asks after "+delay.String())
		}
	}
	c.sizes = strings.Join(sizes, " · ")
	if tt.marks == 1 {
		c.special = ordinal(slices.IndexFunc(p, func(s []int) bool { return in(s) == 1 }))
	}
	c.decisions, c.left = strings.Join(decisions, " · "), strings.Join(left, ", ")
	switch {
	case strings.Contains(c.decisions, "asks"):
		c.left = "the side that gets the lease"
	case c.left == "":
		c.left = "nobody"
	}
	return c
}

func (tt *truthTable) sideOf(size string) string {
	if tt.marks < 0 {
		return "the side with " + size
	}
	return "the side of " + size
}

// firstCounted is the lowest address among those that the strategy counts; -1 if it counts nobody.
func (tt *truthTable) firstCounted(n int, marked uint8) int {
	for i := range n {
		if tt.marks >= 0 || marked>>i&1 != 0 {
			return i
		}
	}
	return -1
}

// decide asks every member of a side: they must agree.
func (tt *truthTable) decide(t *testing.T, side []int, n int, marked uint8) (kind sbr.Kind, delay time.Duration) {
	t.Helper()
	for k, self := range side {
		var members []sbr.Member
		for i := range n {
			m := walkNode(i)
			m.Unreachable = !slices.Contains(side, i)
			tt.member(&m, marked>>i&1 != 0)
			members = append(members, m)
		}
		v := sbr.NewView(walkID(self), members, nil, nil)
		d := sbr.Decide(tt.strategy(n, slices.IndexFunc(members, func(m sbr.Member) bool { return marked>>walkIndex(m.ID)&1 != 0 })), &v, 0.5)
		if k == 0 {
			kind, delay = d.Final, d.Delay
		}
		require.Equal(t, kind, d.Final)
		require.Equal(t, delay, d.Delay)
	}
	return kind, delay
}

func ordinal(g int) string { return []string{"first", "second", "third"}[g] }

// rows collapses cases: a feature on which nothing depends is left out. Cases with equal features must have equal ends.
func rows(t *testing.T, cases []truthCase) (lines []truthCase) {
	t.Helper()
	bySizes := make(map[string][]truthCase)
	var order []string
	for _, c := range cases {
		if bySizes[c.sizes] == nil {
			order = append(order, c.sizes)
		}
		bySizes[c.sizes] = append(bySizes[c.sizes], c)
	}
	slices.Sort(order)
	for _, sizes := range order {
		lines = append(lines, collapse(t, bySizes[sizes])...)
	}
	return lines
}

func collapse(t *testing.T, cases []truthCase) []truthCase {
	t.Helper()
	for _, drop := range []func(*truthCase){
		func(c *truthCase) { c.lowest, c.special = "any", "any" },
		func(c *truthCase) { c.special = "any" },
		func(c *truthCase) { c.lowest = "any" },
		func(*truthCase) {},
	} {
		var kept []truthCase
		ends := make(map[truthCase]truthCase)
		same := true
		for _, c := range cases {
			drop(&c)
			key := c
			key.decisions, key.left = "", ""
			if old, ok := ends[key]; !ok {
				ends[key] = c
				kept = append(kept, c)
			} else if old != c {
				same = false
			}
		}
		if same {
			slices.SortStableFunc(kept, func(a, b truthCase) int {
				return cmp.Or(strings.Compare(b.special, a.special), strings.Compare(a.lowest, b.lowest))
			})
			return kept
		}
	}
	require.FailNow(t, "the end depends on something that is no feature")
	return nil
}

// write is the section of the page.
func (tt *truthTable) write(t *testing.T, b *strings.Builder) {
	t.Helper()
	fmt.Fprintf(b, "\n## %s\n\n", tt.title)
	if tt.text != "" {
		fmt.Fprintf(b, "%s\n\n", tt.text)
	}
	var two, three []truthCase
	for n := 2; n <= 5; n++ {
		two = append(two, tt.cases(t, n, 2)...)
	}
	for n := 3; n <= 4; n++ {
		three = append(three, tt.cases(t, n, 3)...)
	}
	cases := slices.Concat(rows(t, two), rows(t, three))
	lowest := slices.ContainsFunc(cases, func(c truthCase) bool { return c.lowest != "any" })
	special := slices.ContainsFunc(cases, func(c truthCase) bool { return c.special != "any" })
	head := []string{"Sides"}
	if tt.marks < 0 {
		head[0] = "With the role"
	}
	if lowest {
		head = append(head, "Lowest address")
	}
	if special {
		head = append(head, strings.ToUpper(tt.special[:1])+tt.special[1:])
	}
	head = append(head, "Each side", "Left")
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, c := range cases {
		cells := []string{c.sizes}
		if lowest {
			cells = append(cells, c.lowest)
		}
		if special {
			cells = append(cells, c.special)
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(append(cells, c.decisions, c.left), " | "))
	}
}

const truthIntro = `<!-- Written by the code: go test ./simulator/explore -run TestTruthTables -update. Changes by hand are lost. -->

# Truth tables

What becomes of a cluster of two to five members that is cut in two, and of three or four that are cut in three, by strategy. All
members are up, the cut is clean and everybody has noticed it; every cut was asked about, and every member of a side decides the
same. Rows that end alike are one. [What each strategy decides](strategies-table.md) has more situations: joining and leaving members,
indirect connections.

- *Sides*: their sizes, the larger first; of two that are as large, the one with the oldest member or the referee, or else with the lowest
  address, is first.
- *Lowest address*, *oldest*, *referee*: the side that has that member, by its place in *sides*; *any*: it makes no difference.
- *With the role*: where a strategy counts only members with a role, how many of those are on each side; how many others are there makes no
  difference. The lowest address is that among them.
- *Each side*, in the order of *sides*: *stays* and downs the others, *goes down*, *all go down* (itself, and everybody else if it can),
  *asks* for the lease.
- *Left*: who is up in the end. With a lease it is the side that gets it: the one that asks first, if it reaches the store.
`

// The page says what the strategies decide.
func TestTruthTables(t *testing.T) {
	var b strings.Builder
	b.WriteString(truthIntro)
	for _, tt := range truthTables() {
		tt.write(t, &b)
	}
	if *update {
		require.NoError(t, os.WriteFile(truthPage, []byte(b.String()), 0o644))
		return
	}
	page, err := os.ReadFile(truthPage)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(page), "go test ./simulator/explore -run TestTruthTables -update")
}

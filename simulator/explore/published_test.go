package explore

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

var deep = flag.Bool("deep", false, "explore also what takes minutes instead of seconds")

const exploredPage = "testdata/explored-states.md"

// published is a row of the page.
type published struct {
	Exhaustive
	long bool // only with -deep
}

// publishedRows are what is explored, with the default rules where nothing else is said.
func publishedRows() []published {
	rows := []published{
		{Exhaustive: Exhaustive{Members: 2, Faults: Faults{Lost: 2, Crashes: 1}, NoStore: 2, LateCut: true}},
		{Exhaustive: Exhaustive{Members: 2, Faults: Faults{Lost: 1, Pauses: 1}, LateCut: true}},
		{Exhaustive: Exhaustive{Members: 3, Faults: Faults{Lost: 1, Crashes: 1}}},
		{Exhaustive: Exhaustive{Members: 3, Faults: Faults{Lost: 1, Crashes: 1}, LateCut: true}},
		{Exhaustive: Exhaustive{Members: 3, Faults: Faults{Lost: 1, Crashes: 1}, Watch: true}},
		{Exhaustive: Exhaustive{Members: 3, Faults: Faults{Lost: 1}, NoStore: 3}},
		{Exhaustive: Exhaustive{Members: 3, Faults: Faults{Pauses: 1}}},
		{Exhaustive: Exhaustive{Members: 4, Faults: Faults{Crashes: 1}}},
		{Exhaustive: Exhaustive{Members: 4, Faults: Faults{Lost: 1}}},
		{Exhaustive: Exhaustive{Members: 4, Faults: Faults{Lost: 1, Crashes: 1}}},
		{Exhaustive: Exhaustive{Members: 4, Faults: Faults{Lost: 1, Crashes: 1}, Watch: true}, long: true},
		{Exhaustive: Exhaustive{Members: 4, Faults: Faults{Lost: 1}, LateCut: true}, long: true},
	}
	for k := range rows {
		rows[k].Resolver, rows[k].Strategy = sbr.DefaultConfig(),
			strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	}
	suspend := published{Exhaustive: rows[5].Exhaustive}
	suspend.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend
	return append(rows, suspend)
}

// key is what the row is about: its first columns.
func (p *published) key() string {
	rest := "–"
	var extra []string
	if p.NoStore > 0 {
		extra = append(extra, fmt.Sprintf("up to %d without the store", p.NoStore))
	}
	if p.LateCut {
		extra = append(extra, "detection late")
	}
	if p.Watch {
		extra = append(extra, "watched")
	}
	if p.Resolver.WhenLeaseUnknown == sbr.UnknownSuspend {
		extra = append(extra, "when-lease-unknown: suspend")
	}
	if len(extra) > 0 {
		rest = strings.Join(extra, ", ")
	}
	return fmt.Sprintf("| %d | %d | %d | %d | %s |", p.Members, p.Lost, p.Crashes, p.Pauses, rest)
}

// explore makes the walks of a row, and returns its other columns.
func (p *published) explore(t *testing.T) string {
	t.Helper()
	families, err := p.Plan()
	require.NoError(t, err)
	var sum FamilyResult
	partitions := make(map[string]bool)
	for _, f := range families {
		r := f.Run(context.Background())
		require.Empty(t, r.Broken, f.Form)
		require.True(t, r.Complete, f.Form)
		require.Equal(t, len(f.Walks), r.Walked+r.Covered)
		sum.WalkCounts = sum.Add(r.WalkCounts)
		sum.Walked, sum.Covered = sum.Walked+r.Walked, sum.Covered+r.Covered
		for _, w := range f.Walks {
			partitions[Partition(w.Sides).String()] = true
		}
	}
	var cells []string
	for _, n := range []int{len(partitions), sum.Walked, sum.Covered, sum.States, sum.Edges, sum.Rests} {
		cells = append(cells, grouped(n))
	}
	return " " + strings.Join(cells, " | ") + " |"
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Small clusters keep every promise in every state that they can reach, and the page says how many those are.
// Rows of the long run are explored with -deep only.
func TestPublished_ExploredStates(t *testing.T) {
	page, err := os.ReadFile(exploredPage)
	if !*update {
		require.NoError(t, err)
	}
	rows := publishedRows()
	lines := make([]string, len(rows))
	t.Run("rows", func(t *testing.T) {
		for k := range rows {
			p := &rows[k]
			t.Run(strings.Trim(p.key(), "| "), func(t *testing.T) {
				if (p.long || testing.Short() && p.Members > 3) && !*deep {
					lines[k] = lineWith(string(page), p.key())
					require.NotEmpty(t, lines[k],
						"the page has no row for it: go test ./simulator/explore -run TestPublished -deep -update")
					return
				}
				t.Parallel()
				lines[k] = p.key() + p.explore(t)
			})
		}
	})
	if t.Failed() {
		return
	}
	want := exploredIntro + strings.Join(lines, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile(exploredPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "go test ./simulator/explore -run TestPublished -update")
}

// lineWith is the line of the page that begins with the key.
func lineWith(page, key string) string {
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, key) {
			return line
		}
	}
	return ""
}

const exploredIntro = `<!-- Written by the code: go test ./simulator/explore -run TestPublished -update. Changes by hand are lost. -->

# What was explored

Each row is a cluster that is cut once, of which everything was tried: every way to cut it, every order in which the sides decide, every
order of deadlines, messages, requests and answers, and each fault at every moment. In none of the states is a promise broken.
The rules are the defaults with lease-majority. ` + "`sbr explore`" + ` does the same.

- Sides decide at the same moment, or 2 s, or 75 s one after another: while the race of the one before may be under way, and after the
  winner has given the lease back. All members of a side notice the cut at one moment, unless the row says that detection is late.
- *Lost*: so many messages, requests or answers come late: at any later time, or never. *Crashes*, *pauses*: of any member at any moment.
- *Without the store*: every choice of so many members and of fewer never reaches the lease store. *Detection late*: what is lost may
  also be the news of the cut, so one member notices another one later than the rest. *Watched*: members watch the lease; elsewhere not.
- *Cuts* are the ways to cut the cluster. *Walks* are the searches that were made, one for a cut and an order of its sides; *covered* are
  those of which another one shows, by what the strategy was asked, that they would be the same but for the names.
- *States* are different; *rests* are those in which nothing more happens by itself.

Rows with up to three members, and three of those with four, are compared in the normal tests; the others by the long run
only: ` + "`go test ./simulator/explore -run TestPublished -deep -timeout 60m`" + `.

| Members | Lost | Crashes | Pauses | And | Cuts | Walks | Covered | States | Edges | Rests |
|---|---|---|---|---|---|---|---|---|---|---|
`

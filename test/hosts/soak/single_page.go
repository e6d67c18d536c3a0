//go:build linux

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// singleRow is one cause under one guard.
type singleRow struct {
	Cause cause         `json:"cause"`
	Guard cluster.Guard `json:"guard"`
	Gap   figures       `json:"gap"`
	Since figures       `json:"since-fault"`
	// Beyond is what of Since came after the verdict and the margin.
	Beyond figures `json:"beyond-margin"`
	// Bound is that of Since, Over how many were above.
	Bound float64 `json:"bound,omitempty"`
	Over  int     `json:"over"`
}

// singleSummary is what a run has shown of singletons.
type singleSummary struct {
	Rows []singleRow `json:"rows"`
	// Ledger is the sum over all stages; its lists are empty but for those of what must not be.
	Ledger ledger.Report `json:"ledger"`
	// Overlaps counts what would have been double work without the fence, by guard.
	Overlaps map[cluster.Guard]overlaps `json:"overlaps"`
	Scenes   map[scene]int              `json:"scenes"`
	// Planned is about rounds of planned changes; nil: there were none.
	Planned *plannedSummary       `json:"planned,omitempty"`
	Guards  map[cluster.Guard]int `json:"guards"`
}

// overlaps are those of some rounds.
type overlaps struct {
	Rounds  int        `json:"rounds"`
	With    int        `json:"with"` // rounds with any
	Count   int        `json:"count"`
	Sum     ledger.Sum `json:"sum"`
	Refused int        `json:"refused"`
}

var guards = []cluster.Guard{cluster.ByMembers, cluster.ByBoth}

// summarizeSingle sums up rounds with singletons; nil: there were none.
func summarizeSingle(results []result, reports []ledger.Report) *singleSummary {
	s := &singleSummary{Overlaps: make(map[cluster.Guard]overlaps), Scenes: make(map[scene]int), Guards: make(map[cluster.Guard]int)}
	moves := make(map[cluster.Guard]map[cause][]move)
	for _, g := range guards {
		moves[g] = make(map[cause][]move)
	}
	for _, r := range results {
		if r.Single == nil {
			continue
		}
		g := r.Plan.Single.Guard
		s.Scenes[r.Plan.Single.Scene]++
		s.Guards[g]++
		o := s.Overlaps[g]
		o.add(r.Single)
		s.Overlaps[g] = o
		for _, m := range r.Single.Moves {
			moves[g][m.Cause] = append(moves[g][m.Cause], m)
		}
	}
	if len(s.Scenes) == 0 {
		return nil
	}
	s.Planned = summarizePlanned(results)
	for _, c := range causes {
		for _, g := range guards {
			s.Rows = append(s.Rows, singleRowOf(c, g, moves[g][c]))
		}
	}
	for _, r := range reports {
		s.Ledger.Lines += r.Lines
		s.Ledger.Accepted += r.Accepted
		s.Ledger.Refused += r.Refused
		s.Ledger.Runs += r.Runs
		s.Ledger.Violations = append(s.Ledger.Violations, r.Violations...)
		s.Ledger.Shared = append(s.Ledger.Shared, r.Shared...)
	}
	return s
}

func (o *overlaps) add(r *singleResult) {
	o.Rounds++
	if r.Overlaps > 0 {
		o.With++
	}
	o.Count += r.Overlaps
	o.Sum.Total += r.Overlap.Total
	o.Sum.Max = max(o.Sum.Max, r.Overlap.Max)
	o.Sum.Refused += r.Overlap.Refused
	o.Refused += r.Refused
}

func singleRowOf(c cause, g cluster.Guard, moves []move) singleRow {
	x := singleRow{Cause: c, Guard: g}
	var gaps, since, beyond []float64
	for _, m := range moves {
		gaps = append(gaps, m.Gap)
		if m.Bound == 0 {
			continue
		}
		since = append(since, m.Since)
		if m.Beyond > 0 {
			beyond = append(beyond, m.Beyond)
		}
		x.Bound = max(x.Bound, m.Bound)
		if m.Since > m.Bound {
			x.Over++
		}
	}
	x.Gap, x.Since, x.Beyond = distribution(gaps), distribution(since), distribution(beyond)
	return x
}

// broken reports whether the fence has let through what it must not, or could not tell runs apart.
func (s *singleSummary) broken() bool { return s != nil && !s.Ledger.Clean() }

// late reports whether planned changes took longer than is promised.
func (s *singleSummary) late() bool { return s != nil && s.Planned.late() }

func (s *singleSummary) movesTable() table {
	t := table{{"what happened", "kept in one place by", "moves", "without work, p50 / p99 / max", "from the fault to work, p50 / p99 / max", "computed bound", "above it", "after verdict and margin"}}
	for _, x := range s.Rows {
		if x.Gap.Count == 0 {
			continue
		}
		bound, over := "", ""
		if x.Since.Count > 0 {
			bound, over = short(x.Bound), fmt.Sprintf("%d of %d", x.Over, x.Since.Count)
		}
		t = append(t, []string{string(x.Cause), string(x.Guard), strconv.Itoa(x.Gap.Count), x.Gap.three(), x.Since.three(), bound, over, x.Beyond.three()})
	}
	return t
}

func (s *singleSummary) overlapTable() table {
	t := table{{"kept in one place by", "rounds", "rounds with an overlap", "overlaps", "in all", "the longest", "writes in them that the fence refused", "refused in all"}}
	for _, g := range guards {
		o := s.Overlaps[g]
		t = append(t, []string{
			string(g), strconv.Itoa(o.Rounds), strconv.Itoa(o.With), strconv.Itoa(o.Count), short(o.Sum.Total.Seconds()), short(o.Sum.Max.Seconds()),
			strconv.Itoa(o.Sum.Refused), strconv.Itoa(o.Refused),
		})
	}
	return t
}

func (s *singleSummary) orderTable() table {
	return table{
		{"what", "value"},
		{"entries that reached the ledger", fmt.Sprintf("%d: %d accepted, %d refused; %d runs", s.Ledger.Lines, s.Ledger.Accepted, s.Ledger.Refused, s.Ledger.Runs)},
		{"accepted with an older token after a newer one", strconv.Itoa(len(s.Ledger.Violations))},
		{"tokens that several members had", strconv.Itoa(len(s.Ledger.Shared))},
	}
}

func (s *singleSummary) write(w io.Writer) error {
	tables := []table{s.orderTable(), s.movesTable(), s.overlapTable()}
	if s.Planned != nil {
		tables = []table{s.orderTable(), s.Planned.table(), s.Planned.phaseTable()}
	}
	for _, t := range tables {
		if err := t.text(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if s.Planned != nil {
		for _, line := range s.Planned.slow() {
			fmt.Fprintf(w, "SLOW: %s\n", line)
		}
	}
	return nil
}

// texts are what a page says besides its figures.
type texts struct {
	intro, times, overlaps, outro string
	// flags and file are those of the command that writes it.
	flags, file string
	// scenes are counted; nil: the page has a table of its own for them.
	scenes []scene
}

// singlePage is docs/exactly-one-hosts.md.
func (s *summary) singlePage() string {
	return s.loadPage(texts{singleIntro, singleTimes, singleOverlaps, singleOutro, "--singleton", "docs/exactly-one-hosts.md", scenes})
}

// opening is how a page about what is written to ledgers begins: what it is about, and the last run.
func (s *summary) opening(t texts) string {
	x := s.Single
	about := append(x.orderTable(), table{
		{"date", s.Date},
		{"command", fmt.Sprintf("`make soak ROUNDS=%d SEED=%d ARGS=\"%s --parallel %d --write %s\"`", s.Planned, s.Seed, t.flags, s.Parallel, t.file)},
		{"versions", strings.Join(s.Versions, "; ")},
		{"beside the stock agent / beside Debian's / own node", fmt.Sprintf("%d / %d / %d rounds", s.Modes[moduleMode], s.Modes[debianMode], s.Modes[ownMode])},
	}...)
	if t.scenes != nil {
		about = append(about, table{
			{"without a lease / with one", fmt.Sprintf("%d / %d rounds", x.Guards[cluster.ByMembers], x.Guards[cluster.ByBoth])},
			{"rounds of each kind", x.scenesText(t.scenes)},
		}...)
	}
	about = append(about, []string{"processors busy, mean over the rounds", fmt.Sprintf("%.0f %%", 100*s.Busy)})
	return t.intro + fmt.Sprintf("## The last run\n\n**%s.**\n\n", s.headline()) + about.markdown() + s.failures()
}

// loadPage is a page about what is written to ledgers while things go wrong.
func (s *summary) loadPage(t texts) string {
	var b strings.Builder
	x := s.Single
	b.WriteString(s.opening(t))
	b.WriteString("\n## How long nobody works\n\n" + x.movesTable().markdown() + t.times)
	b.WriteString("\n## What the fence is for\n\n" + x.overlapTable().markdown() + t.overlaps)
	b.WriteString(t.outro)
	return b.String()
}

func (s *singleSummary) scenesText(of []scene) string {
	var texts []string
	for _, x := range of {
		texts = append(texts, fmt.Sprintf("%s %d", x, s.Scenes[x]))
	}
	return strings.Join(texts, ", ")
}

var singleIntro = "# Exactly one, on hosts\n\n" + `What came of many random rounds in which one program ran under ` + "`sbr run --singleton`" + ` on five real hosts: network namespaces, real packets that the
kernel drops, a real etcd and kube-apiserver, and a ledger on a host of its own: an append-only file behind HTTP with a [fence](exactly-one.md#the-fence), to which the program writes every ` +
	writeEvery.String() + `.
What a host, a cut and a round are says [reliability](reliability.md). Source: ` + "`test/hosts/soak --singleton`" + `, which writes this page.

`

const singleTimes = `
- **Without work**: from the last write of the old run to the first accepted one of the new.
- **From the fault**: from the moment at which the hosts were cut, frozen or killed to the first accepted write of the new run. It is computed for faults at one instant only: detection + ` + "`stable-after`" + ` +
  the removal margin + 200 ms, and with a lease its ` + "`heartbeat-timeout`" + `, which is 10 s here.
- **After verdict and margin**: the part of that which came once the verdict was written and the removal margin over: what it takes to notice, to ask the others and to start. Without a lease only.
- A planned hand-over: ` + "`sbr run`" + ` gets SIGTERM. Then it starts again, and the older member takes the program back: that counts, too.
  The longest are about as long as hand-over-retry-interval, 1 s, or as the lease's heartbeat-timeout, 10 s; the machine was busy, and what held them up was not looked into.
- A fault on other hosts only: without a lease the holder stops when it cannot be sure of its place for ` + "`stable-after`" + ` and half the margin, and starts again once the verdict is there.
  With settings as quick as these that is sometimes the case just before the verdict.
- After everything is healed: nobody could run it before.
`

const singleOverlaps = `
An overlap is a time in which two runs tried to write. Without a fence all of it would have been written. A host that stood still, was replaced and goes on writes until it
has learned that: that is what the refused writes are. In half of these rounds the program goes on 100 to 500 ms before everything else on its host, on purpose. An overlap without a length is
a single late write.
`

const singleOutro = `
## What a round is

1. The program runs. ` + "`sbr run`" + ` is stopped where that is; it runs elsewhere, and goes back once it can.
2. One of: a cut with up to two further faults, as in [reliability](reliability.md#what-a-round-is), where the losers sometimes do not reach the ledger either; a host stands still with everything
   on it (SIGSTOP), is replaced and goes on; a host ends at once (SIGKILL for everything on it); all hosts are restarted in good order; ` + "`sbr agent`, `sbr run`" + ` or the program is
   killed. In three of four rounds it is the holder's host that is hit, or is on the side that is likely to lose.
3. Everything is healed. All five must be members again, and the program must run.

Beyond what makes any round fail, a round fails if the ledger has accepted an older token after a newer one, if two members had one token, if after a fault at one instant the program does not run
again while that lasts, if it does not run after everything is healed, or if a rolling update downs anybody.

## What it has found

Mended since:

- Without a lease, a cluster whose members had all gone down without a verdict began its tokens anew. The fence refused whatever was written from then on, and two members had the same token.

## Again

` + "```text\nmake soak ROUNDS=100 SEED=1 ARGS=--singleton\ngo run -C test ./hosts/soak --seed 1 --round 31 --singleton\n```" + `

Both need root, iproute2 and nftables.
`

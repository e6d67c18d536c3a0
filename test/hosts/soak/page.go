//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table is one that is shown on a terminal and on the page.
type table [][]string

func (t table) text(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range t {
		fmt.Fprintln(out, strings.Join(cells, "\t"))
	}
	return out.Flush()
}

func (t table) markdown() string {
	var b strings.Builder
	for i, cells := range t {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

// three are p50, p99 and max of a distribution, empty if nothing was measured.
func (f figures) three() string {
	if f.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%s / %s / %s", short(f.P50), short(f.P99), short(f.Max))
}

func rowsTable(first string, rows []row) table {
	t := table{{first, "rounds", "one side", "nobody", "nothing decided", "failed", "double-active, store reached", "double-active, cut off", "resolution", "nobody active"}}
	for _, x := range rows {
		if x.Rounds == 0 {
			continue
		}
		t = append(t, []string{
			x.Fault, strconv.Itoa(x.Rounds), strconv.Itoa(x.Outcomes[oneSide]), strconv.Itoa(x.Outcomes[nobody]), strconv.Itoa(x.Outcomes[nothing]), strconv.Itoa(x.Failed),
			x.Active.three(), x.CutOff.three(), x.Resolution.three(), x.Nobody.three(),
		})
	}
	return t
}

func (s *summary) classTable() table {
	t := table{{"loser", "losers", "p50", "p99", "max", "bound"}}
	add := func(name string, f figures, bound string) {
		if f.Count == 0 {
			t = append(t, []string{name, "0", "", "", "", bound})
			return
		}
		t = append(t, []string{name, strconv.Itoa(f.Count), short(f.P50), short(f.P99), short(f.Max), bound})
	}
	add(string(reaches), s.Classes[reaches], "p99 at most "+short(quick.Seconds()))
	add("cut off from the store, clean cut", s.Bounded, short(s.Bound)+", computed")
	add("cut off from the store, all", s.Classes[cutOff], "")
	add("stood still, from when it went on", s.Classes[stoodStill], "")
	add("loses packets", s.Classes[lossyClass], "")
	return t
}

// write prints the summary.
func (s *summary) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%s\n\n", s.headline())
	if s.Single == nil {
		fmt.Fprintf(w, "two sides up: %d rounds; chain of verdicts broken: %d rounds; not all members again: %d rounds\n\n", s.TwoSides, s.Broken, s.NotWhole)
	}
	if s.Single == nil || s.Single.Planned == nil {
		fmt.Fprintln(w, "Double-active time (p50, p99, max below: of each row)")
		for _, t := range []table{s.classTable(), rowsTable("shape", append(s.Shapes, s.All)), rowsTable("further fault", s.Faults)} {
			if err := t.text(w); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
	}
	if s.Single != nil {
		if err := s.Single.write(w); err != nil {
			return err
		}
	}
	if s.slow() {
		fmt.Fprintf(w, "TOO SLOW: the p99 of losers that reach the store is above %v\n", quick)
	}
	if s.Single.late() {
		fmt.Fprintf(w, "TOO SLOW: the p99 of planned changes of one member is above %v\n", handOverTime)
	}
	for _, round := range slices.Sorted(maps.Keys(s.Problems)) {
		fmt.Fprintf(w, "FAILED: round %d: %s\n", round, s.Problems[round])
	}
	return nil
}

func (s *summary) headline() string {
	text := fmt.Sprintf("%d rounds of seed %d in %v, %d at a time: %d failed", s.Played, s.Seed, time.Duration(s.Seconds*float64(time.Second)).Round(time.Second), s.Parallel, len(s.Problems))
	if s.Played < s.Planned {
		text += fmt.Sprintf("; %d were planned", s.Planned)
	}
	return text
}

// failures are the rounds that failed, with a heading; empty: there were none.
func (s *summary) failures() string {
	if len(s.Problems) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n**Rounds that failed:**\n\n")
	for _, round := range slices.Sorted(maps.Keys(s.Problems)) {
		fmt.Fprintf(&b, "- round %d: %s\n", round, strings.ReplaceAll(s.Problems[round], "\n", "; "))
	}
	return b.String()
}

// page is docs/reliability.md.
func (s *summary) page() string {
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "## The last run\n\n**%s.** %d verdicts were written, %d incarnations were downed.\n\n", s.headline(), s.Verdicts, s.Restarts)
	about := table{
		{"what", "value"},
		{"date", s.Date},
		{"seed", strconv.FormatUint(s.Seed, 10)},
		{"command", fmt.Sprintf("`make soak ROUNDS=%d SEED=%d ARGS=\"%s--parallel %d --write docs/reliability.md\"`", s.Planned, s.Seed, s.Family.flag(), s.Parallel)},
		{"versions", strings.Join(s.Versions, "; ")},
		{"beside the stock agent / beside Debian's / own node", fmt.Sprintf("%d / %d / %d rounds", s.Modes[moduleMode], s.Modes[debianMode], s.Modes[ownMode])},
		{"processors busy, mean over the rounds", fmt.Sprintf("%.0f %%", 100*s.Busy)},
		{"rounds with two sides up / a broken chain of verdicts / members missing at the end", fmt.Sprintf("%d / %d / %d", s.TwoSides, s.Broken, s.NotWhole)},
		{"rounds at whose end somebody waited alone, suspended", strconv.Itoa(s.Stranded)},
		{"back as a member after the heal, p50 / p99 / max", s.Rejoin.three()},
	}
	b.WriteString(about.markdown())
	b.WriteString(s.failures())
	b.WriteString("\n## Double-active time\n\n")
	b.WriteString(s.classTable().markdown())
	b.WriteString("\nThe bound is that of `sbr explain timing` for these settings and a clean cut; it says nothing where the cut changes or processes are killed or stopped.\n")
	b.WriteString("\n## By shape of the cut\n\nTimes are p50 / p99 / max.\n\n" + rowsTable("shape", append(s.Shapes, s.All)).markdown())
	b.WriteString("\n## By what else went wrong\n\nA round with two faults counts in two rows.\n\n" + rowsTable("fault", s.Faults).markdown())
	b.WriteString(outro)
	return b.String()
}

const intro = "# Reliability\n\n" + `What came of many random rounds of faults on real hosts. A host is a network namespace with an address of its own; a cut is packets that the
kernel drops at the receiver. Each of five hosts runs an unmodified ` + "`serf agent`" + ` with ` + "`sbr agent`" + ` beside it; in some rounds the agent is Debian's older
0.9.4, in some ` + "`sbr agent`" + ` is the node itself. A real etcd and kube-apiserver are on a sixth host. Source: ` + "`test/hosts/soak`" + `, which writes this page.

`

const outro = `
## What a round is

1. Five members are up. The network is cut, in one of the shapes above, and up to two further faults come, before, while and after the sides race for the
   lease: a random part of the hosts loses the store, processes are stopped (SIGSTOP) or killed and started again under the same name, the API server is killed and
   started again, etcd stands still, the cut heals or changes. To every third round a deed of operators or platforms is added: what Serf calls failed is force-left
   or pruned, once or by a cron; an agent starts again without its state folder; the rights on the lease are taken away for a while; the store forgets: the lease is
   deleted, replaced by an older one, or etcd is restored from a snapshot, before the cut, in it, or right after the verdict. In every sixth an operator
   downs a member (` + "`sbr down`" + `) through the agent of another one, in the cut or after the verdict: whether that is granted or refused, two sides are never up.
2. The harness waits until one side is up, or nobody is. In every third round the losers are started again while the cut lasts; what was stopped goes on now or after the heal.
3. Everything is healed, whatever ended is started again, and all five must be members. The next round begins there, with the same lease.

What happens follows from seed and round alone; who wins depends on the machine as well. The settings are quick ones: ` + "`stable-after` 4 s, `min-members` 3, probes every 300 ms,\n`heartbeat-timeout`" + ` 20 s. With the defaults resolutions take about 20 s more; what a loser that watches the lease needs does not depend on them.

A round fails if any of this is not so:

- At the end of the cut exactly one side is up. Nobody may be where the store was cut off from everyone or did not answer while it was asked, where everybody who
  could reach it was killed or stopped, or a whole side was, and where the view never became stable or most members were
  [indirectly connected](concepts.md#indirectly-connected); everybody may be where the cut healed in time. A member that is left alone, and cannot learn its fate without the
  store or is too few to arm after a restart, may wait, suspended.
- Losers that are started again while the cut lasts, however many, are not ready as long as they are cut off from those who are up.
- No incarnation that was downed is seen at work, or as a member, ever again.
- The chain of verdicts, read from the lease object by a watch from the first round on, is unbroken: tokens grow by one, nobody who was downed holds the lease or survives a later verdict,
  and under one token there is one verdict. The record goes back only where the round made the store forget it, and is told what it held, or the next verdict.
- ` + "`sbr agent`" + ` never ends with status 2: its unit would not start it again.
- Each process that was downed ran its hook once and ended with status 70, and no other ended so.
- After the heal all five are members again within two minutes.
- At a clean cut a loser is down within the computed bound: that for losers that have to ask, or for those that are cut off from the store.

## What is measured

- **Double-active time**: from the time at which the winner says in the lease that it acquired it, which is before the write is committed, to the on-down hook of a loser that the verdict
  names. Zero if the loser was down already. Losers are told apart by what they had to learn the verdict by: the store; nothing, because they could not reach
  it (cut off, API server away, etcd stopped); or, having stood still, what they found when they went on, which is when their time begins.
- **Resolution**: from the last cut to the last hook of those that had to stop: on-down for losers, on-resume for winners. What stood still does not count.
- **Nobody active**: for how long all members were suspended, down, stopped or killed at once, up to the resolution.
- **Processors busy**: by /proc/stat. On a busy machine times say something about the machine.

## What it has found

Each of these was a round that failed, or a figure that was odd, and is mended:

- Losers that a supervisor started again while the cut lasted, as many as min-members, were a second cluster beside the one that had won. Newcomers now look for
  the cluster that the last verdict has left; beside a stock agent the first version of that was passed by.
- The on-down hook did not run when the process stood still between the decision and the hook: its time-out had passed on the clock.
- An agent whose serf agent stood still went on to answer probes, and the members beside it waited for reports that could not come.
- A member that was killed, adopted its incarnation and found nobody left called itself suspended for a reason that had passed.

## Again

` + "```text\nmake soak ROUNDS=200 SEED=1\nmake soak ROUNDS=60 SEED=1 ARGS=\"--family force-leave\"\n" +
	"make soak ROUNDS=40 SEED=1 ARGS=\"--family record\"\ngo run -C test ./hosts/soak --seed 1 --round 17\n```" + `

The families play nothing but clean cuts: one with a cron on each host that force-leaves what Serf calls failed, with ` + "`stable-after`" + ` 5 s and 20 s and the other settings
as they are by default; one with a store that forgets. ` + "`make starts`" + ` plays each way in which a cluster has to find itself again (` + "`RUN=TestStarts/power`" + ` chooses) and says
of each whether it ended with one cluster.

Both need root, iproute2 and nftables. The second plays one round; a round that fails is reported with its command and the folder of its logs.
`

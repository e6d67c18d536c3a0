package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/sbr/timing"
)

// timingAnswer is the JSON form of a timing.Report.
type timingAnswer struct {
	Detection struct {
		Serf      sidesAnswer `json:"serf"`
		OwnProbes sidesAnswer `json:"own-probes"`
		Both      sidesAnswer `json:"both"`
	} `json:"detection"`
	LargestGap          string      `json:"largest-gap"`
	Decision            sidesAnswer `json:"decision"`
	Resolution          string      `json:"resolution"`
	ResolutionStoreDown string      `json:"resolution-store-down"`
	DoubleActive        struct {
		Watching string `json:"watching"`
		Asking   string `json:"asking"`
		CutOff   string `json:"cut-off"`
	} `json:"double-active"`
	RecommendedStableAfter   string `json:"recommended-stable-after"`
	RecommendedMinorityDelay string `json:"recommended-minority-delay"`
}

type sidesAnswer struct {
	Majority spanAnswer `json:"majority"`
	Lone     spanAnswer `json:"lone"`
}

type spanAnswer struct {
	Fastest string `json:"fastest"`
	Worst   string `json:"worst"`
}

func newTimingAnswer(r *timing.Report) (a timingAnswer) {
	span := func(s timing.Span) spanAnswer { return spanAnswer{s.Fastest.String(), s.Worst.String()} }
	sides := func(s timing.Sides) sidesAnswer { return sidesAnswer{span(s.Majority), span(s.Lone)} }
	a.Detection.Serf, a.Detection.OwnProbes, a.Detection.Both = sides(r.Serf), sides(r.Probes), sides(r.Detection)
	a.LargestGap = r.LargestGap.String()
	a.Decision = sides(r.Decision)
	a.Resolution, a.ResolutionStoreDown = r.Resolution.String(), r.ResolutionStoreDown.String()
	a.DoubleActive.Watching = r.DoubleActive.Watching.String()
	a.DoubleActive.Asking = r.DoubleActive.Asking.String()
	a.DoubleActive.CutOff = r.DoubleActive.CutOff.String()
	a.RecommendedStableAfter, a.RecommendedMinorityDelay = r.StableAfter.String(), r.MinorityDelay.String()
	return a
}

// write prints the effective configuration, and as comments what it is and what follows from it.
func (c *configCheck) write(to io.Writer, name string, f *config.File, r *timing.Report) error {
	p := paint(to)
	var b bytes.Buffer
	fmt.Fprintln(&b, p.bold("# "+name+" is valid: "+strategyLine(f)+"."))
	b.Write(f.Redacted().Effective())
	fmt.Fprintln(&b)
	fmt.Fprintln(&b, p.bold(fmt.Sprintf("# Times of a clean cut, %d members, Serf profile %s:", c.members, c.profile)))
	for line := range strings.Lines(timingTable(f, r)) {
		b.WriteString("#   " + line)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(&b, p.yellow("# warning: "+w.String()))
	}
	_, err := to.Write(b.Bytes())
	return err
}

func timingTable(f *config.File, r *timing.Report) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(label string, cells ...string) { fmt.Fprintf(t, "%s\t%s\n", label, strings.Join(cells, "\t")) }
	row("", "larger half", "a lone node")
	for _, line := range r.Rows(f.SplitBrainResolver.NeedsLease()) {
		row(line.Label, line.Cells...)
	}
	_ = t.Flush() // a strings.Builder takes everything
	return b.String()
}

func span(s timing.Span) string { return s.String() }

// short rounds for people.
func short(d time.Duration) string { return timing.Short(d) }

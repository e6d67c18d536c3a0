package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// write prints the explanation: a table, then where each line of it comes from, a timeline, warnings.
func (x *explanation) write(to io.Writer) error {
	p := paint(to)
	var b bytes.Buffer
	fmt.Fprintln(&b, p.bold(fmt.Sprintf("Times of a clean cut: %d members, %s, Serf profile %s.", x.Members, strings.ToLower(x.Strategy), x.Profile)))
	fmt.Fprintf(&b, "The larger half has %d; a lone node is cut off from all others. All times count from the cut.\n\n", x.Larger)
	x.table(&b)
	for i, s := range x.Steps {
		fmt.Fprintf(&b, "\n%s %s\n", p.bold(fmt.Sprintf("%d. %s.", i+1, capital(s.Name))), s.Text)
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, sum := range s.Sums {
			fmt.Fprintf(t, "   %s\t%s\n", sum.Of, sum)
		}
		_ = t.Flush() // a bytes.Buffer takes everything
		fmt.Fprintf(&b, "   change it with %s\n", strings.Join(s.Keys, ", "))
	}
	b.WriteString("\n" + x.timeline)
	for _, w := range x.Warnings {
		fmt.Fprintln(&b, p.yellow("warning: "+w.Key+": "+w.Text))
	}
	_, err := to.Write(b.Bytes())
	return err
}

func (x *explanation) table(to io.Writer) {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tLARGER HALF\tA LONE NODE")
	for i, s := range x.Steps {
		fmt.Fprintf(t, "%2d %s\t%s\n", i+1, s.Name, strings.Join(s.cells, "\t"))
	}
	_ = t.Flush() // its caller's buffer takes everything
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// String is the sum in words: part + part = total.
func (s sum) String() string {
	var b strings.Builder
	for i, p := range s.Parts {
		switch {
		case p.d < 0:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		b.WriteString(exact(p.d.Abs()) + " " + p.Name)
	}
	return b.String() + " = " + exact(s.is)
}

// exact shows milliseconds: the parts must add up to the eye, too.
func exact(d time.Duration) string { return d.Round(time.Millisecond).String() }

// columns is the width of the timeline.
const columns = 64

// timeline draws the worst case of both sides to scale.
func (e *explainer) timeline() string {
	if e.r.Resolution <= 0 {
		return ""
	}
	scale := e.r.Resolution / columns
	var b strings.Builder
	fmt.Fprintf(&b, "The worst case; a column is %s:\n\n", scale.Round(10*time.Millisecond))
	for _, side := range []string{larger, lonely} {
		s := e.latest(side)
		parts := append(s.Parts, part{d: e.r.Resolution - s.is, mark: markTelling})
		fmt.Fprintf(&b, "  %-13s%s\n", side, bar(parts, scale))
	}
	legend := "  . not noticed   = stable-after   "
	if strings.ContainsRune(b.String(), markUnstable) {
		legend += "~ keeps changing   "
	}
	if e.delay() > 0 {
		legend += "- minority delay   > lease, and "
	} else {
		legend += "> "
	}
	return b.String() + "\n" + legend + "telling the side\n"
}

// bar rounds where the parts end, not how long they are: so the bars of both sides stay in step.
func bar(parts []part, scale time.Duration) string {
	var b strings.Builder
	var until time.Duration
	for _, p := range parts {
		until += p.d
		for n := int((until + scale/2) / scale); b.Len() < n; {
			b.WriteByte(p.mark)
		}
	}
	return b.String()
}

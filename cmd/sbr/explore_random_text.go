package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
)

// reportOptions say how a result is written, and what counts as broken.
type reportOptions struct {
	format  format
	require bool
	files   bool // the scenarios of failures are in files
}

// writeReport writes a result. The error says that something is broken, or could not be written.
func writeReport(to io.Writer, r *explore.Report, o reportOptions) error {
	var err error
	switch o.format {
	case formatJSON:
		err = writeJSON(to, r)
	case formatJUnit:
		err = o.junit(to, r)
	default:
		err = o.text(to, r)
	}
	if err != nil {
		return err
	}
	return o.verdict(r)
}

// text is for people: what was broken first, what it was worth last.
func (o *reportOptions) text(to io.Writer, r *explore.Report) error {
	var b bytes.Buffer
	p := paint(to)
	for _, f := range r.Failures {
		o.textFailure(&b, p, f)
	}
	o.textTransitions(&b, p, r)
	if r.Excepted > 0 {
		fmt.Fprintf(&b, "excepted: in %s the store lost a verdict that no survivor could tell again\n", count(r.Excepted, "run"))
	}
	fmt.Fprintf(&b, "singletons: %s\nshards: %s\n", &r.Singletons, &r.Shards)
	fmt.Fprintf(&b, "%s\n", o.textSummary(p, r))
	_, err := to.Write(b.Bytes())
	return err
}

func (o *reportOptions) textFailure(b *bytes.Buffer, p painter, f *explore.Failure) {
	fmt.Fprintf(b, "%s  %s\n", p.red("FAIL"), f.Text)
	fmt.Fprintf(b, "      in %s; smallest scenario: %s, %s, seed %d\n",
		count(f.Runs, "run"), count(uint64(f.Members), "member"), count(uint64(f.Steps), "step"), f.Seed)
	if !o.files {
		for line := range strings.Lines(f.Scenario) {
			b.WriteString("        | " + line)
		}
	}
	fmt.Fprintf(b, "      replay: %s\n\n", p.bold(f.Replay))
}

// textTransitions lists what was never taken, and what is new. After a few runs much was never taken: then it is only counted, unless
// that is what was asked for.
func (o *reportOptions) textTransitions(b *bytes.Buffer, p painter, r *explore.Report) {
	const limit = 20
	if n := len(r.Never); n > 0 && (n <= limit || o.require) {
		b.WriteString("transitions that were never taken:\n")
		for _, name := range r.Never {
			fmt.Fprintf(b, "  %s\n", p.yellow(name))
		}
		b.WriteByte('\n')
	}
	if len(r.New) > 0 {
		b.WriteString("transitions that the list does not know:\n")
		for _, name := range r.New[:min(len(r.New), limit)] {
			fmt.Fprintf(b, "  %s (%s)\n", p.yellow(name), times(r.Coverage[name]))
		}
		if more := len(r.New) - limit; more > 0 {
			fmt.Fprintf(b, "  and %d more\n", more)
		}
		b.WriteByte('\n')
	}
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return thousands(n) + " times"
}

// textSummary is the last line, and the one before it.
func (o *reportOptions) textSummary(p painter, r *explore.Report) string {
	known := len(explore.KnownTransitions())
	taken := fmt.Sprintf("transitions: %d of %d known ones taken", known-len(r.Never), known)
	if n := len(r.Provoked); n > 0 {
		taken += fmt.Sprintf(", %d of them only when provoked", n)
	}
	taken += fmt.Sprintf(", %d new", len(r.New))
	if o.require && len(r.Never) > 0 {
		taken = p.red(taken)
	}
	span := seedSpan{r.From, r.To}
	which := "seeds " + span.String()
	if r.From == r.To {
		which = "seed " + span.String()
	}
	line := p.green("nothing broken in " + thousandsOf(r.Runs, "run"))
	if r.Failed > 0 {
		line = p.red(fmt.Sprintf("%s of %s failed", thousands(r.Failed), thousandsOf(r.Runs, "run")))
	}
	took := time.Duration(r.Elapsed)
	return fmt.Sprintf("%s\n%s (%s) in %v, %s a second", taken, line, which, took, thousands(perSecond(r.Runs, took)))
}

func thousandsOf(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return thousands(n) + " " + what
}

// verdict is the error of a result in which something is broken.
func (o *reportOptions) verdict(r *explore.Report) error {
	var problems []error
	if r.Failed > 0 {
		problems = append(problems, fmt.Errorf("%s of %s failed", thousands(r.Failed), count(r.Runs, "run")))
	}
	if o.require && len(r.Never) > 0 {
		problems = append(problems, fmt.Errorf("%s never taken", count(uint64(len(r.Never)), "known transition")))
	}
	if r.Interrupted {
		problems = append(problems, fmt.Errorf("interrupted after %s", count(r.Runs, "run")))
	}
	if len(problems) > 0 {
		return internal{errors.Join(problems...)}
	}
	return nil
}

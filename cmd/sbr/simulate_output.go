package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
)

// simulateWriter writes the results of runs, one after the other.
type simulateWriter interface {
	result(r *played) error
	end(s summary) error
}

// summary is what all runs came to.
type summary struct {
	files        int
	runs, failed uint64
	seeds        seedRange
	took         time.Duration
}

func newSimulateWriter(f simulateFormat, to io.Writer) simulateWriter {
	switch format(f) {
	case formatJSON:
		return &simulateJSON{to: to}
	case formatJUnit:
		return &simulateJUnit{to: to}
	default:
		return &simulateText{to: to, painter: paint(to)}
	}
}

// simulateText is for people: a line for each run, and why it failed.
type simulateText struct {
	to io.Writer
	painter
}

func (w *simulateText) result(r *played) error {
	var b bytes.Buffer
	word := w.green("PASS")
	if !r.Passed {
		word = w.red("FAIL")
	}
	fmt.Fprintf(&b, "%s  %s, seed %d: %s up", word, r.Scenario, r.Seed, names(r.Survivors))
	if len(r.Down) > 0 {
		fmt.Fprintf(&b, ", %s down", names(r.Down))
	}
	for _, x := range r.Singletons {
		fmt.Fprintf(&b, ", %s on %s", x.Name, cmp.Or(x.On, "nobody"))
	}
	switch r.ResolvedAfter {
	case "":
		b.WriteString(", not resolved")
	case "0s":
	default:
		fmt.Fprintf(&b, ", resolved after %s", r.ResolvedAfter)
	}
	b.WriteByte('\n')
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "      %s\n", f)
	}
	if !r.Passed {
		fmt.Fprintf(&b, "      replay: %s\n", w.bold(r.replay()))
	}
	_, err := w.to.Write(b.Bytes())
	return err
}

func (w *simulateText) end(s summary) error {
	line := fmt.Sprintf("%d of %s passed", s.runs-s.failed, count(s.runs, "run"))
	if s.failed > 0 {
		line = w.red(line)
	} else {
		line = w.green(line)
	}
	_, err := fmt.Fprintf(w.to, "\n%s (%s, %s)\n", line, count(uint64(s.files), "scenario"), s.seeds.words())
	return err
}

func (r seedRange) words() string {
	if r.from == r.to {
		return "seed " + r.String()
	}
	return "seeds " + r.String()
}

// names shows a few names, and how many there are of many.
func names(list []string) string {
	const limit = 8
	switch {
	case len(list) == 0:
		return "nobody"
	case len(list) > limit:
		return fmt.Sprintf("%s … (%d)", strings.Join(list[:limit], " "), len(list))
	default:
		return strings.Join(list, " ")
	}
}

func count(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// simulateJSON is one array, written as it grows: the events of many runs need not fit into memory.
type simulateJSON struct {
	to    io.Writer
	begun bool
}

func (w *simulateJSON) result(r *played) error {
	before := "[\n"
	if w.begun {
		before = ",\n"
	}
	w.begun = true
	var b bytes.Buffer
	b.WriteString(before)
	if err := writeJSON(&b, r.Result); err != nil {
		return err
	}
	_, err := w.to.Write(bytes.TrimRight(b.Bytes(), "\n"))
	return err
}

func (w *simulateJSON) end(summary) error {
	_, err := io.WriteString(w.to, "\n]\n")
	return err
}

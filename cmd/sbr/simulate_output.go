package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	htmlreport "github.com/serf-sbr/serf-sbr/simulator/report"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
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
}

func newSimulateWriter(output string, to io.Writer, p painter, o simulateOptions) simulateWriter {
	switch output {
	case formatJSON:
		return &simulateJSON{to: to}
	case formatJUnit:
		return &simulateJUnit{to: to}
	default:
		return &simulateText{to: to, painter: p, simulateOptions: o, stats: newSimulateStats()}
	}
}

// simulateText is for people: a line for each file, and each failed run with the reasons.
type simulateText struct {
	to io.Writer
	painter
	simulateOptions
	file  *fileLine
	stats *simulateStats
}

// fileLine is what the runs of one file came to.
type fileLine struct {
	file            *scenarioFile
	first, last     *played
	runs, failed    uint64
	resolved        int
	shortest, worst time.Duration // to a resolution
	outcomes        []string
	count           map[string]int
}

func (w *simulateText) result(r *played) error {
	var b bytes.Buffer
	if w.file == nil || w.file.file != r.file {
		w.endFile(&b)
		w.file = newFileLine(r)
	}
	w.file.add(r)
	w.stats.add(r)
	if !r.Passed || w.verbose {
		w.run(&b, r)
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := w.to.Write(b.Bytes())
	return err
}

// run is the line of one run, and why it failed.
func (w *simulateText) run(b *bytes.Buffer, r *played) {
	one := newFileLine(r)
	one.add(r)
	w.line(b, one)
	for _, f := range r.Failures {
		fmt.Fprintf(b, "      %s\n", f)
	}
	if !r.Passed {
		fmt.Fprintf(b, "      replay: %s\n", w.bold(r.replay()))
	}
}

func (w *simulateText) word(passed bool) string {
	if passed {
		return w.green("PASS")
	}
	return w.red("FAIL")
}

// outcome says which nodes are up and which are down at the end.
func outcome(r *played) string {
	parts := []string{names(r.Survivors) + " up"}
	if len(r.Down) > 0 {
		parts = append(parts, names(r.Down)+" down")
	}
	for _, x := range r.Singletons {
		parts = append(parts, x.Name+" on "+cmp.Or(x.On, "nobody"))
	}
	return strings.Join(parts, ", ")
}

func newFileLine(first *played) *fileLine {
	return &fileLine{file: first.file, first: first, count: make(map[string]int)}
}

func (l *fileLine) add(r *played) {
	l.last = r
	l.runs++
	if !r.Passed {
		l.failed++
	}
	is := outcome(r)
	if l.count[is]++; l.count[is] == 1 {
		l.outcomes = append(l.outcomes, is)
	}
	if m := &r.Measures; m.Settled {
		if l.resolved++; l.resolved == 1 || m.Resolved < l.shortest {
			l.shortest = m.Resolved
		}
		l.worst = max(l.worst, m.Resolved)
	}
}

// endFile writes the line of a file: for one run that of the run, which a failed or verbose one has already.
func (w *simulateText) endFile(b *bytes.Buffer) {
	l := w.file
	if l != nil && (l.runs > 1 || l.failed == 0 && !w.verbose) {
		w.line(b, l)
	}
	w.file = nil
}

// line says of runs of a file how many failed, the commonest outcomes, and how long they took.
func (w *simulateText) line(b *bytes.Buffer, l *fileLine) {
	const most = 3
	seeds := seedRange{from: l.first.Seed, to: l.last.Seed}
	fmt.Fprintf(b, "%s  %s, %s: ", w.word(l.failed == 0), l.first.Scenario, seeds.words())
	if l.failed > 0 && l.runs > 1 {
		fmt.Fprintf(b, "%d of %d failed; ", l.failed, l.runs)
	}
	slices.SortStableFunc(l.outcomes, func(x, y string) int { return l.count[y] - l.count[x] })
	if len(l.outcomes) == 1 {
		b.WriteString(l.outcomes[0])
	} else {
		for i, is := range l.outcomes[:min(len(l.outcomes), most)] {
			fmt.Fprintf(b, "%s%d times %s", map[bool]string{true: "", false: "; "}[i == 0], l.count[is], is)
		}
		if more := len(l.outcomes) - most; more > 0 {
			fmt.Fprintf(b, "; %d other outcomes", more)
		}
	}
	switch {
	case l.worst > 0 && l.shortest == l.worst:
		fmt.Fprintf(b, ", resolved after %v", l.worst)
	case l.worst > 0:
		fmt.Fprintf(b, ", resolved after %v to %v", l.shortest, l.worst)
	}
	switch open := l.runs - uint64(l.resolved); {
	case open == 1 && l.runs == 1:
		b.WriteString(", not resolved")
	case open > 0:
		fmt.Fprintf(b, ", %d not resolved", open)
	}
	b.WriteByte('\n')
}

func (w *simulateText) end(s summary) error {
	var b bytes.Buffer
	w.endFile(&b)
	if s.runs > 1 {
		b.WriteString("\n" + w.stats.table())
	}
	if w.full {
		b.WriteString("\n" + w.stats.full())
	}
	line := fmt.Sprintf("%d of %s passed", s.runs-s.failed, count(s.runs, "run"))
	if s.failed > 0 {
		line = w.red(line)
	} else {
		line = w.green(line)
	}
	fmt.Fprintf(&b, "\n%s (%s, %s)\n", line, count(s.files, "scenario"), s.seeds.words())
	_, err := w.to.Write(b.Bytes())
	return err
}

// names shows a few names, and how many there are of many.
func names(list []string) string { return cmp.Or(first(8, list, " "), "nobody") }

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

// simulateHTML writes the page that --html asks for, once all runs are over. A run that the page draws is
// played once more, with its history: that costs less than a history of every run would.
type simulateHTML struct {
	path string
	page *htmlreport.Page
}

// newSimulateHTML finds out at once whether the file can be written: not only after an hour of runs.
func newSimulateHTML(path string) (*simulateHTML, error) {
	if path == "-" {
		return nil, badInput{errors.New("--html: standard output is for the results: give the name of a file")}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, badInput{fmt.Errorf("--html: %w", err)}
	}
	return &simulateHTML{path: path, page: htmlreport.New()}, f.Close()
}

func (w *simulateHTML) result(r *played) error {
	run := htmlreport.Run{Result: r.Result, File: r.file.path, Sentence: r.file.sentence, Replay: r.replay()}
	return w.page.Add(run, func() scenario.Result {
		return scenario.Caught(r.Scenario, r.Seed, func() scenario.Result {
			return scenario.Run(r.file.Scenario, r.Seed)
		})
	})
}

func (w *simulateHTML) end(summary) error {
	f, err := os.Create(w.path)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	to := bufio.NewWriter(f)
	if err := errors.Join(w.page.Write(to), to.Flush(), f.Close()); err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	return nil
}

// sentence is the comment on top of a scenario file, which says what the scenario shows.
func sentence(data []byte) string {
	var lines []string
	for line := range bytes.Lines(data) {
		text, is := strings.CutPrefix(strings.TrimSpace(string(line)), "#")
		if !is {
			break
		}
		if text = strings.TrimSpace(text); !strings.HasPrefix(text, "yaml-language-server:") {
			lines = append(lines, text)
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

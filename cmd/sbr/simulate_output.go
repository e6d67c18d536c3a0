package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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

func newSimulateWriter(output string, to io.Writer) simulateWriter {
	switch output {
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

// simulateHTML writes the page that --html asks for, once all runs are over. A run that the page tells of is played once more, with
// its history: that costs less than a history of every run would.
type simulateHTML struct {
	path   string
	keeper *htmlreport.Keeper
	runs   []htmlreport.Run
}

// newSimulateHTML finds out at once whether the file can be written: not only after an hour of runs.
func newSimulateHTML(path string, total uint64) (*simulateHTML, error) {
	if path == "-" {
		return nil, badInput{errors.New("--html: standard output is for the results: give the name of a file")}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, badInput{fmt.Errorf("--html: %w", err)}
	}
	return &simulateHTML{path: path, keeper: htmlreport.NewKeeper(int(total))}, f.Close()
}

func (w *simulateHTML) result(r *played) error {
	run := htmlreport.Run{Result: r.Result, Sentence: r.file.sentence, Replay: r.replay()}
	run.Events = nil // the history says more
	if w.keeper.Keep(&r.Result) {
		again, history := record(r)
		if history != nil && again.TraceHash != r.TraceHash {
			return fmt.Errorf("%s, seed %d: played twice, and the runs differ: %s and %s", r.file.path, r.Seed, r.TraceHash, again.TraceHash)
		}
		run.History = history
	}
	w.runs = append(w.runs, run)
	return nil
}

// record plays a run once more. One that panics has no history.
func record(r *played) (again scenario.Result, history *scenario.History) {
	defer func() {
		if recover() != nil {
			history = nil // the result says what happened
		}
	}()
	return scenario.Record(r.file.Scenario, r.Seed)
}

func (w *simulateHTML) end(summary) error {
	f, err := os.Create(w.path)
	if err != nil {
		return fmt.Errorf("--html: %w", err)
	}
	to := bufio.NewWriter(f)
	if err := errors.Join(htmlreport.Write(to, w.runs), to.Flush(), f.Close()); err != nil {
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

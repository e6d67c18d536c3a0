package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	htmlreport "github.com/serf-sbr/serf-sbr/simulator/report"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
	"github.com/serf-sbr/serf-sbr/simulator/world"
)

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
func record(r *played) (again scenario.Result, history *world.History) {
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

// simulateWriters write the same results to several places.
type simulateWriters []simulateWriter

func (w simulateWriters) result(r *played) error {
	for _, to := range w {
		if err := to.result(r); err != nil {
			return err
		}
	}
	return nil
}

func (w simulateWriters) end(s summary) error {
	for _, to := range w {
		if err := to.end(s); err != nil {
			return err
		}
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

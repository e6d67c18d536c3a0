//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/ledger"
)

// phases are the parts of the time without work at a planned change, in seconds, by the logs of the two hosts.
type phases struct {
	// Stop is from when `sbr run` tells the program to end until it has, Tell until its agent knows that, Agree until the other agent starts the next run, Start until the
	// program runs there. Rest is what comes before and after: the last write before it was told, the first of the new one.
	Stop  float64 `json:"stop"`
	Tell  float64 `json:"tell"`
	Agree float64 `json:"agree"`
	Start float64 `json:"start"`
	Rest  float64 `json:"rest"`
}

func (p *phases) String() string {
	return fmt.Sprintf("stop %s, tell %s, agree %s, start %s, rest %s", short(p.Stop), short(p.Tell), short(p.Agree), short(p.Start), short(p.Rest))
}

// logLine is what counts of a line of `sbr agent` or `sbr run`.
type logLine struct {
	Time    time.Time `json:"time"`
	Message string    `json:"msg"`
	Token   uint64    `json:"token"`
}

// hostLog is what both have logged on a host, in order.
type hostLog struct{ agent, run []logLine }

// readLog reads the lines of a log that are objects.
func readLog(path string) (lines []logLine, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(raw) {
		var l logLine
		if line[0] == '{' && json.Unmarshal(line, &l) == nil {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// lastOf returns the time of the last line that is wanted.
func lastOf(lines []logLine, want func(l *logLine) bool) (at time.Time, ok bool) {
	for i := range slices.Backward(lines) {
		if want(&lines[i]) {
			return lines[i].Time, true
		}
	}
	return at, false
}

// phasesOf tells the parts of a gap apart; nil: the logs do not show all of them. token is that of the new run.
func phasesOf(old, next *hostLog, token uint64, gap float64) *phases {
	ended := func(l *logLine) bool { return strings.HasPrefix(l.Message, "sbr: the program has ended") }
	runs, found := lastOf(next.run, func(l *logLine) bool { return l.Message == "sbr: running the program" && l.Token == token })
	starts, ok := lastOf(next.agent, func(l *logLine) bool { return l.Message == "sbr: a singleton starts" && l.Token == token })
	found = found && ok
	over, ok := lastOf(old.agent, func(l *logLine) bool {
		return !l.Time.After(starts) && strings.HasPrefix(l.Message, "sbr: run ") && strings.Contains(l.Message, "has ended")
	})
	found = found && ok
	const blur = 2 * time.Millisecond // two processes log what one of them tells the other
	gone, ok := lastOf(old.run, func(l *logLine) bool { return ended(l) && !l.Time.After(over.Add(blur)) })
	found = found && ok
	told, ok := lastOf(old.run, func(l *logLine) bool { return l.Message == "sbr: stopping the program" && !l.Time.After(gone) })
	if !found || !ok {
		return nil
	}
	return &phases{
		Stop: gone.Sub(told).Seconds(), Tell: over.Sub(gone).Seconds(), Agree: starts.Sub(over).Seconds(), Start: runs.Sub(starts).Seconds(),
		Rest: gap - runs.Sub(told).Seconds(),
	}
}

// explain fills in the phases of the changes of a round.
func (g *game) explain(moves []move, changes []ledger.Change, lines []ledger.Line) error {
	logs := make(map[string]*hostLog)
	for _, name := range hosts {
		h := g.lab.Host(name)
		agent, err := readLog(h.File("sbr.log"))
		run, runErr := readLog(h.File("run.log"))
		if err := errors.Join(err, runErr); err != nil {
			return err
		}
		logs[name] = &hostLog{agent, run}
	}
	for i := range moves {
		m := &moves[i]
		c := slices.IndexFunc(changes, func(c ledger.Change) bool { return c.From == m.From && c.To == m.To && c.Gap.Seconds() == m.Gap })
		first := slices.IndexFunc(lines, func(l ledger.Line) bool { return l.At == changes[c].At && l.Member == m.To })
		m.Phases = phasesOf(logs[m.From], logs[m.To], lines[first].Token, m.Gap)
	}
	return nil
}

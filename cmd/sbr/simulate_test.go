package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

func someScenario(t *testing.T, text string) *scenarioFile {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	return newScenarioFile("x.yaml", nil, s)
}

// Results come in the order of files and seeds, whichever core is done first.
func TestSimulate_ResultsAreInOrder(t *testing.T) {
	a, b := someScenario(t, "name: a\nrun-for: 100s"), someScenario(t, "name: b\nrun-for: 1s")
	var got []string
	play([]*scenarioFile{a, b}, seedRange{from: 3, to: 42}, (*scenario.Prepared).Judge, func(r *played) bool {
		got = append(got, fmt.Sprintf("%s %d", r.Scenario, r.Seed))
		return true
	})
	require.Len(t, got, 80)
	for i := range 40 {
		require.Equal(t, fmt.Sprintf("a %d", i+3), got[i])
		require.Equal(t, fmt.Sprintf("b %d", i+3), got[40+i])
	}
}

// A caller that takes no more results ends the runs: nothing is left waiting.
func TestSimulate_StopsWhenNobodyReads(t *testing.T) {
	n := 0
	play([]*scenarioFile{someScenario(t, "run-for: 1s")}, seedRange{from: 1, to: maxRuns},
		(*scenario.Prepared).Judge, func(*played) bool {
			n++
			return n < 3
		})
	require.Equal(t, 3, n)
}

func TestSimulate_WriteErrorIsReported(t *testing.T) {
	for _, f := range []string{formatText, formatJSON, formatJUnit} {
		err := simulate(streams{in: strings.NewReader("run-for: 1s"), out: broken{}, err: new(bytes.Buffer)},
			[]string{"-"}, seedRange{from: 1, to: 500}, f, simulateOptions{})
		require.ErrorIs(t, err, errBroken, f)
	}
}

var errBroken = errors.New("no space left")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestSimulate_APanicIsAFailedRun(t *testing.T) {
	var r *played
	panics := func(*scenario.Prepared, uint64) scenario.Result { panic("out of cheese") }
	play([]*scenarioFile{someScenario(t, "run-for: 1s")}, seedRange{from: 7, to: 7}, panics,
		func(one *played) bool { r = one; return true })
	require.False(t, r.Passed)
	require.Equal(t, []string{"internal error: the run panicked: out of cheese"}, r.Failures)
	require.EqualValues(t, 7, r.Seed)
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"name: x\n# late":                 "",
		"# One line.\nname: x":            "One line.",
		"# Two\n#  lines.\r\nname: x":     "Two lines.",
		"#\n# After a gap.\n\n# Another.": "After a gap.",
		"# yaml-language-server: $schema=x\n#Tight.": "Tight.",
	} {
		require.Equal(t, want, sentence([]byte(text)), "%q", text)
	}
}

// A run that panics is in the report, without a history; a run that plays differently the second time is an
// error.
func TestSimulateHTML_RunsThatCannotBeTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	w, err := newSimulateHTML(path)
	require.NoError(t, err)
	panics := &played{file: &scenarioFile{path: "x.yaml"},
		Result: scenario.Result{Scenario: "x", Failures: []string{"internal error: it panicked"}}}
	require.NoError(t, w.result(panics))
	require.NoError(t, w.end(summary{}))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "internal error: it panicked")

	s := someScenario(t, "run-for: 10s")
	r := &played{file: s, Result: scenario.Judge(s.Scenario, 1)}
	r.TraceHash = "another"
	require.ErrorContains(t, w.result(r), "x.yaml, seed 1: played twice, and the runs differ: another and ")
}

// Rubbish costs no memory to speak of: it is refused by its size, or by its number of values, before anything
// is built from it.
func TestSimulate_JunkCostsLittle(t *testing.T) {
	for name, text := range map[string]string{
		"50 MB":             strings.Repeat("# nothing\n", 5_000_000),
		"50 MB on one line": "name: " + strings.Repeat("x", 50_000_000),
		"100,000 steps":     "run-for: 60s\nsteps:\n" + strings.Repeat("- {at: 1s, heal: true}\n", 100_000),
		"short steps":       "run-for: 60s\nsteps:\n" + strings.Repeat("- {}\n", 100_000),
		"deep":              strings.Repeat("[", 1_000_000),
		"deep maps":         strings.Repeat("{a: ", 250_000),
		"indented":          strings.Repeat("- ", 500_000),
		"commas":            "[" + strings.Repeat(",", 1_000_000),
		"aliases":           "a: &a [" + strings.Repeat("x, ", 1000) + "]\nb: &b [" + strings.Repeat("*a, ", 1000) + "]\nc: [" + strings.Repeat("*b, ", 1000) + "]\n",
		"anchors":           strings.Repeat("&a ", 300_000),
		"quotes":            strings.Repeat(`"`, 1_000_000),
		"questions":         strings.Repeat("? ", 500_000),
		"zeros":             strings.Repeat("\x00", 1_000_000),
		"one huge key":      strings.Repeat("k", 1_000_000) + ": 1\n",
		"one huge name":     "run-for: 60s\nsteps: [{at: 1s, crash: " + strings.Repeat("n", 900_000) + "}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "junk.yaml")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			var out, errOut bytes.Buffer
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status := run([]string{"simulate", path}, streams{in: strings.NewReader(""), out: &out, err: &errOut})
			runtime.ReadMemStats(&after)
			require.Equal(t, exitBadInput, status, errOut.String())
			require.Empty(t, out.String())
			require.Equal(t, 1, strings.Count(errOut.String(), "\n"), errOut.String())
			require.Contains(t, errOut.String(), "junk.yaml")
			require.Less(t, errOut.Len(), 500)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), "bytes taken in all")
		})
	}
}

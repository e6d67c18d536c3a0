package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

func someScenario(t *testing.T, text string) *scenarioFile {
	t.Helper()
	s, err := scenario.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	return &scenarioFile{path: "x.yaml", Scenario: s}
}

// Results come in the order of files and seeds, whichever core is done first.
func TestSimulate_ResultsAreInOrder(t *testing.T) {
	a, b := someScenario(t, "name: a\nrun-for: 100s"), someScenario(t, "name: b\nrun-for: 1s")
	var got []string
	play([]*scenarioFile{a, b}, seedRange{3, 42}, scenario.Judge, func(r *played) bool {
		got = append(got, fmt.Sprintf("%s %d", r.Scenario, r.Seed))
		return true
	})
	require.Len(t, got, 80)
	for i := range 40 {
		require.Equal(t, fmt.Sprintf("a %d", i+3), got[i])
		require.Equal(t, fmt.Sprintf("b %d", i+3), got[40+i])
	}
}

// Whoever takes no more results ends the runs: nothing is left waiting.
func TestSimulate_StopsWhenNobodyReads(t *testing.T) {
	n := 0
	play([]*scenarioFile{someScenario(t, "run-for: 1s")}, seedRange{1, maxRuns}, scenario.Judge, func(*played) bool {
		n++
		return n < 3
	})
	require.Equal(t, 3, n)
}

func TestSimulate_WriteErrorIsReported(t *testing.T) {
	for _, f := range []simulateFormat{simulateFormat(formatText), simulateFormat(formatJSON), simulateFormat(formatJUnit)} {
		err := simulate(streams{in: strings.NewReader("run-for: 1s"), out: broken{}, err: new(bytes.Buffer)}, []string{"-"}, seedRange{1, 500}, f)
		require.ErrorIs(t, err, errBroken, f)
	}
}

var errBroken = errors.New("no space left")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestSimulate_APanicIsAFailedRun(t *testing.T) {
	r := playOne(someScenario(t, "run-for: 1s"), 7, func(*scenario.Scenario, uint64) scenario.Result { panic("out of cheese") })
	require.False(t, r.Passed)
	require.Equal(t, []string{"internal error: the run panicked: out of cheese"}, r.Failures)
	require.EqualValues(t, 7, r.Seed)
}

// What the schema that Jenkins publishes for its JUnit plugin asks of a report: the order and the names of the elements, the attributes
// that are required, numbers where it wants numbers; and sums that are right, which GitLab and GitHub show.
func TestSimulate_JUnitIsWhatServersRead(t *testing.T) {
	var out bytes.Buffer
	w := &simulateJUnit{to: &out}
	file := someScenario(t, "run-for: 1s")
	nasty := "<&\"'> \x00\x1b ]]> \xff"
	for seed := range uint64(3) {
		r := &played{Result: scenario.Result{Scenario: nasty, Seed: seed, Passed: seed > 0}, file: file, took: time.Millisecond}
		if !r.Passed {
			r.Failures = []string{nasty, "second"}
		}
		require.NoError(t, w.result(r))
	}
	require.NoError(t, w.end(summary{runs: 3, failed: 1, took: time.Second}))

	allowed := map[string]struct{ parent, required string }{
		"testsuites": {"", "name tests failures errors time"},
		"testsuite":  {"testsuites", "name tests failures errors skipped time"},
		"testcase":   {"testsuite", "name classname file time"},
		"failure":    {"testcase", "message type"},
	}
	count := make(map[string]int)
	var open []string
	for dec := xml.NewDecoder(&out); ; {
		tok, err := dec.Token()
		if tok == nil {
			require.ErrorContains(t, err, "EOF")
			break
		}
		require.NoError(t, err)
		switch e := tok.(type) {
		case xml.StartElement:
			rule, ok := allowed[e.Name.Local]
			require.True(t, ok, e.Name.Local)
			parent := ""
			if len(open) > 0 {
				parent = open[len(open)-1]
			}
			require.Equal(t, rule.parent, parent)
			var names []string
			for _, a := range e.Attr {
				names = append(names, a.Name.Local)
				switch a.Name.Local {
				case "tests", "failures", "errors", "skipped":
					require.Regexp(t, `^\d+$`, a.Value)
				case "time":
					require.Regexp(t, `^\d+\.\d{3}$`, a.Value)
				}
			}
			require.Equal(t, rule.required, strings.Join(names, " "))
			open = append(open, e.Name.Local)
			count[e.Name.Local]++
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	require.Equal(t, map[string]int{"testsuites": 1, "testsuite": 1, "testcase": 3, "failure": 1}, count)
}

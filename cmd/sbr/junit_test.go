package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// validJUnit checks that a report is XML, and that its sums are right, which no schema says. test/formats has
// the schema.
func validJUnit(t *testing.T, report []byte) (cases, failures int) {
	t.Helper()
	require.True(t, utf8.Valid(report))
	var all junitSuites
	require.NoError(t, xml.Unmarshal(report, &all))
	for _, s := range all.Suites {
		var failed uint64
		for _, c := range s.Cases {
			if c.Failure != nil {
				failed++
			}
		}
		require.EqualValues(t, len(s.Cases), s.Tests, s.Name)
		require.Equal(t, failed, s.Failures, s.Name)
		cases, failures = cases+len(s.Cases), failures+int(failed)
	}
	return cases, failures
}

// junitReport writes the report of some runs.
func junitReport(t *testing.T, runs ...*played) []byte {
	t.Helper()
	var out bytes.Buffer
	w := &simulateJUnit{to: &out}
	for _, r := range runs {
		require.NoError(t, w.result(r))
	}
	require.NoError(t, w.end(summary{}))
	return out.Bytes()
}

func failedRun(file *scenarioFile, name string, seed uint64, failures ...string) *played {
	return &played{Result: scenario.Result{Scenario: name, Seed: seed, Passed: len(failures) == 0,
		Failures: failures}, file: file, took: time.Millisecond}
}

// Names and failures come from files and from panics: whatever is in them, the report stays one, and people
// can read the rest of it.
func TestSimulate_JUnitWithHostileText(t *testing.T) {
	file := someScenario(t, "run-for: 1s")
	for _, hostile := range []string{
		"<&\"'>", "]]>", "<![CDATA[", "<!-- -->", "\x00\x01\x1b[31m\x7f", "\xff\xfe", "\u202e\u2028", "\ufffe\uffff", "🙂👩‍👩‍👧", " ", "\t\r\n", "&#0;", strings.Repeat("x", 1<<20),
	} {
		report := junitReport(t, failedRun(file, hostile, 1), failedRun(file, hostile, 2, "a "+hostile, hostile),
			failedRun(&scenarioFile{path: hostile}, "b", 1, "c"))
		cases, failures := validJUnit(t, report)
		require.Equal(t, 3, cases)
		require.Equal(t, 2, failures)
	}
}

func TestSimulate_JUnitTellsWhatFailedAndHowToReplayIt(t *testing.T) {
	var all junitSuites
	require.NoError(t, xml.Unmarshal(junitReport(t,
		failedRun(&scenarioFile{path: "dir/x y.yaml"}, "a name", 7, "first", "second")), &all))
	require.Equal(t, []junitProperty{{"file", "dir/x y.yaml"}}, all.Suites[0].Properties)
	c := all.Suites[0].Cases[0]
	require.Equal(t, "a name, seed 7", c.Name)
	require.Equal(t, "a name", c.ClassName)
	require.Equal(t, "0.001", c.Time)
	require.Equal(t, "first", c.Failure.Message)
	require.Equal(t, "simulation", c.Failure.Type)
	require.Equal(t, "first\nsecond\nreplay: sbr simulate 'dir/x y.yaml' --seeds 7\ntrace-hash: \n",
		c.Failure.Text)
}

// GitLab takes cases with the same class and name for one, and drops all but the first.
func TestSimulate_JUnitKeepsFilesWithTheSameNameApart(t *testing.T) {
	a, b := &scenarioFile{path: "a.yaml"}, &scenarioFile{path: "b.yaml"}
	cases, _ := validJUnit(t, junitReport(t, failedRun(a, "split", 1), failedRun(b, "split", 1)))
	require.Equal(t, 2, cases)
}

// A report of many runs is written while they go on, and takes no more memory than a part of it.
func TestSimulate_JUnitIsWrittenAsItComes(t *testing.T) {
	var out counter
	w := &simulateJUnit{to: &out}
	a, b := &scenarioFile{path: "a.yaml"}, &scenarioFile{path: "b.yaml"}
	require.NoError(t, w.result(failedRun(a, "a", 1)))
	require.NoError(t, w.result(failedRun(b, "b", 1)))
	require.Positive(t, out, "a suite is written as soon as the next begins")
	for seed := range uint64(3 * junitPart) {
		before := out
		require.NoError(t, w.result(failedRun(b, "b", seed+2, "no")))
		require.LessOrEqual(t, len(w.suite.Cases), junitPart)
		if len(w.suite.Cases) == 1 && seed > 1 {
			require.Greater(t, out, before, "a long suite is written in parts")
		}
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// Any write may fail, also the last.
func TestSimulate_JUnitReportsWriteErrors(t *testing.T) {
	a, b := &scenarioFile{path: "a.yaml"}, &scenarioFile{path: "b.yaml"}
	write := func(left int) error {
		w := &simulateJUnit{to: &full{left: left}}
		return errors.Join(w.result(failedRun(a, "a", 1)), w.result(failedRun(b, "b", 1)), w.end(summary{}))
	}
	const writes = 4 // the head, two suites, the end
	for left := range writes {
		require.ErrorIs(t, write(left), errBroken, "after %d", left)
	}
	require.NoError(t, write(writes))
}

// full takes so many writes, and then fails once.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left--; f.left == -1 {
		return 0, errBroken
	}
	return len(p), nil
}

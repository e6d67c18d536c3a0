package main

import (
	"bytes"
	"errors"
	"fmt"
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
	play([]*scenarioFile{someScenario(t, "run-for: 1s")}, seedRange{from: 1, to: maxRuns}, (*scenario.Prepared).Judge, func(*played) bool {
		n++
		return n < 3
	})
	require.Equal(t, 3, n)
}

func TestSimulate_WriteErrorIsReported(t *testing.T) {
	for _, f := range []string{formatText, formatJSON, formatJUnit} {
		err := simulate(streams{in: strings.NewReader("run-for: 1s"), out: broken{}, err: new(bytes.Buffer)}, []string{"-"}, seedRange{from: 1, to: 500}, f, simulateOptions{})
		require.ErrorIs(t, err, errBroken, f)
	}
}

var errBroken = errors.New("no space left")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestSimulate_APanicIsAFailedRun(t *testing.T) {
	var r *played
	panics := func(*scenario.Prepared, uint64) scenario.Result { panic("out of cheese") }
	play([]*scenarioFile{someScenario(t, "run-for: 1s")}, seedRange{from: 7, to: 7}, panics, func(one *played) bool { r = one; return true })
	require.False(t, r.Passed)
	require.Equal(t, []string{"internal error: the run panicked: out of cheese"}, r.Failures)
	require.EqualValues(t, 7, r.Seed)
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

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
	panics := &played{file: &scenarioFile{path: "x.yaml"}, Result: scenario.Result{Scenario: "x", Failures: []string{"internal error: it panicked"}}}
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

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const good = `The sum is wrong.
It is off by one.
promise: S1
checker: S1 chain
quick: true
-- add.go --
func Add(a, b int) int {
	return a + b
-- becomes --
func Add(a, b int) int {
	return a + b + 1
`

func TestParseMutant_ReadsTheWholeOfIt(t *testing.T) {
	m, err := parseMutant("sum", []byte(good))
	require.NoError(t, err)
	require.Equal(t, &mutant{
		Name: "sum", What: "The sum is wrong. It is off by one.", Promise: "S1", Checkers: []string{"S1", "chain"},
		Quick: true,
		Edits: []edit{{File: "add.go", Old: "func Add(a, b int) int {\n\treturn a + b\n",
			New: "func Add(a, b int) int {\n\treturn a + b + 1\n"}},
	}, m)
}

func TestParseMutant_RefusesWhatItDoesNotUnderstand(t *testing.T) {
	const edits = "-- a.go --\nx\n-- becomes --\ny\n"
	for name, tc := range map[string]struct{ text, want string }{
		"no sentence":           {"promise: S1\n" + edits, "opens with a sentence"},
		"no promise":            {"It is wrong.\n" + edits, `promise is ""`},
		"unknown promise":       {"It is wrong.\npromise: S9\n" + edits, `promise is "S9"`},
		"unknown key":           {"It is wrong.\npromise: S1\ncaught: yes\n" + edits, "come before the keys"},
		"promise twice":         {"It is wrong.\npromise: S1\npromise: S2\n" + edits, "comes once"},
		"a flag that is no":     {"It is wrong.\npromise: S1\nhang: false\n" + edits, "true or absent"},
		"blind without why":     {"It is wrong.\npromise: S1\nsimulator: blind\n" + edits, "and why"},
		"blind with a checker":  {"It is wrong.\npromise: S1\nchecker: S1\nsimulator: blind, so\n" + edits, "names a checker"},
		"no edit":               {"It is wrong.\npromise: S1\n", "pairs of parts"},
		"half an edit":          {"It is wrong.\npromise: S1\n-- a.go --\nx\n", "pairs of parts"},
		"no replacement":        {"It is wrong.\npromise: S1\n-- a.go --\nx\n-- b.go --\ny\n", "after `-- a.go --` must come `-- becomes --`"},
		"no original":           {"It is wrong.\npromise: S1\n-- a.go --\n-- becomes --\ny\n", "are missing"},
		"no change":             {"It is wrong.\npromise: S1\n-- a.go --\nx\n-- becomes --\nx\n", "changes nothing"},
		"a file somewhere else": {"It is wrong.\npromise: S1\n-- ../a.go --\nx\n-- becomes --\ny\n", "not a path inside the module"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseMutant("m", []byte(tc.text))
			require.ErrorIs(t, err, errMutant)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// A mutant whose lines are gone, or not the only ones of their kind, must not be quietly tried without its
// bug.
func TestApply_TheLinesMustBeThereExactlyOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
	}{
		"once":                  {"package a\n\nx\nz\n", ""},
		"gone":                  {"package a\n\nw\n", "0 times, not once: copy the present lines"},
		"part of a longer line": {"package a\n\n\tx\n", "0 times"},
		"twice":                 {"package a\n\nx\nz\nx\n", "2 times"},
		"twice in a row":        {"package a\n\nx\nx\n", "2 times"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte(tc.text), 0o600))
			m := &mutant{Name: "m", Edits: []edit{{File: "a.go", Old: "x\n", New: "y\n"}}}
			files, err := m.apply(root)
			if tc.want != "" {
				require.ErrorIs(t, err, errMutant)
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, map[string][]byte{"a.go": []byte("package a\n\ny\nz\n")}, files)
		})
	}
}

func TestApply_SeveralEditsOfOneFile(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("a\nb\nc\n"), 0o600))
	m := &mutant{Name: "m", Edits: []edit{{File: "a.go", Old: "a\n", New: "A\n"},
		{File: "a.go", Old: "c\n", New: ""}}}
	files, err := m.apply(root)
	require.NoError(t, err)
	require.Equal(t, "A\nb\n", string(files["a.go"]))
	m.Edits = []edit{{File: "gone.go", Old: "a\n", New: "A\n"}}
	_, err = m.apply(root)
	require.ErrorContains(t, err, "name the file where the code lives now")
}

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// toy is a module with one function, whose tests see a little of it.
var toy = map[string]string{
	"go.mod": "module toy\n\ngo 1.24\n",
	"add.go": "package toy\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
	"add_test.go": `package toy

import "testing"

func TestAdd(t *testing.T) {
	t.Run("two and two", func(t *testing.T) {
		if n := Add(2, 2); n != 4 {
			t.Fatalf("S1 broken at 1.000s: it is %d", n)
		}
	})
}
`,
}

// toyHunter hunts in the toy, with its tests as the simulator's.
func toyHunter(t *testing.T, files map[string]string, limit time.Duration) *hunter {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	return &hunter{
		tree:  &tree{root: root, module: "toy", scratch: t.TempDir()},
		steps: []step{{name: "toy", tier: simulator, run: tests(limit, "./...")}},
		mode:  whole,
	}
}

func adds(what string) *mutant {
	return &mutant{Name: "m", What: "It is wrong.", Promise: "S1",
		Edits: []edit{{File: "add.go", Old: "\treturn a + b\n", New: "\t" + what + "\n"}}}
}

func TestHunt_WhatBecomesOfAMutant(t *testing.T) {
	h := toyHunter(t, toy, 3*time.Second)
	cases := map[string]struct {
		mutant *mutant
		change func(*mutant)
		by     string
		err    string
		status int
	}{
		"caught":                    {mutant: adds("return a + b + 1"), by: "toy: TestAdd/two_and_two", status: exitCaught},
		"caught by a panic":         {mutant: adds(`panic("no")`), by: "toy: TestAdd/two_and_two", status: exitCaught},
		"survives":                  {mutant: adds("return a * b"), status: exitSurvived},
		"does not compile":          {mutant: adds("return c"), err: "undefined: c", status: exitBad},
		"does not apply":            {mutant: adds("return 5"), change: func(m *mutant) { m.Edits[0].Old = "\treturn a - b\n" }, err: "does not apply", status: exitBad},
		"hangs":                     {mutant: adds("select {}"), err: "ran out of time", status: exitBad},
		"hangs, as it says":         {mutant: adds("select {}"), change: func(m *mutant) { m.Hangs = true }, by: "toy: TestAdd/two_and_two", status: exitCaught},
		"its checker reports it":    {mutant: adds("return 5"), change: func(m *mutant) { m.Checkers = []string{"S1"} }, by: "toy: TestAdd/two_and_two", status: exitCaught},
		"another checker does":      {mutant: adds("return 5"), change: func(m *mutant) { m.Checkers = []string{"S2"} }, by: "toy: TestAdd/two_and_two", status: exitSurvived},
		"another file is not there": {mutant: adds("return 5"), change: func(m *mutant) { m.Edits[0].File = "sub.go" }, err: "does not apply", status: exitBad},
	}
	names := slices.Sorted(maps.Keys(cases))
	var mutants []*mutant
	for _, name := range names {
		if change := cases[name].change; change != nil {
			change(cases[name].mutant)
		}
		mutants = append(mutants, cases[name].mutant)
	}
	found := h.all(t.Context(), mutants, 2, func(finding) {})
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			tc := cases[name]
			require.Equal(t, tc.status, status(found[i:i+1]), "%+v", found[i])
			if tc.err != "" {
				require.ErrorContains(t, found[i].Err, tc.err)
				return
			}
			require.NoError(t, found[i].Err)
			if tc.by == "" {
				require.Nil(t, found[i].By)
				return
			}
			require.Equal(t, tc.by, found[i].By.Caught)
		})
	}
	text, err := os.ReadFile(filepath.Join(h.root, "add.go"))
	require.NoError(t, err)
	require.Equal(t, toy["add.go"], string(text), "the tree is never touched")
	left, err := os.ReadDir(h.scratch)
	require.NoError(t, err)
	require.Empty(t, left, "nothing is left behind")
}

// A suite that fails anyway proves nothing.
func TestHunt_TheTreeItselfMustPass(t *testing.T) {
	asItIs := func(files map[string]string) error {
		h := toyHunter(t, files, time.Minute)
		return h.asItIs(t.Context(), h.steps[0])
	}
	require.NoError(t, asItIs(toy))
	broken := map[string]string{"go.mod": toy["go.mod"], "add_test.go": toy["add_test.go"],
		"add.go": "package toy\n\nfunc Add(a, b int) int { return 5 }\n"}
	require.ErrorContains(t, asItIs(broken), "mend that first")
	broken["add.go"] = "package toy\n"
	require.ErrorContains(t, asItIs(broken), "undefined: Add")
	delete(broken, "add_test.go")
	require.ErrorContains(t, asItIs(broken), "no test ran")
}

// Mode each asks the simulator too where a cheaper step was enough, unless the mutant says that it is blind.
func TestFinding_WhatTheSimulatorMustSee(t *testing.T) {
	steps := []step{{tier: unit}, {tier: simulator}}
	f := &finding{mutant: adds("return 5")}
	require.True(t, f.wants(steps[0], whole))
	f.caught(catch{result: result{Caught: "a: TestA"}, Tier: unit})
	require.False(t, f.wants(steps[1], whole))
	require.Empty(t, f.survived())
	require.True(t, f.wants(steps[1], each))
	require.Equal(t, "no", f.alone())
	f.Blind = "it has no eyes"
	require.False(t, f.wants(steps[1], each))
	require.Equal(t, "blind: it has no eyes", f.alone())
	f.Blind = ""
	f.caught(catch{result: result{Caught: "b: TestB"}, Tier: simulator})
	require.False(t, slices.ContainsFunc(steps, func(s step) bool { return f.wants(s, each) }))
	require.Equal(t, "a: TestA", f.By.Caught)
	require.Equal(t, 1, seenAlone([]finding{*f, {mutant: f.mutant}}))
}

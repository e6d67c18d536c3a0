package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func library(t *testing.T) []*mutant {
	t.Helper()
	all, err := loadMutants("testdata")
	require.NoError(t, err)
	return all
}

// The mutants are kept up with the code: one whose lines have changed is no proof any more.
func TestLibrary_EveryMutantApplies(t *testing.T) {
	all := library(t)
	require.GreaterOrEqual(t, len(all), 45)
	seen := make(map[string]string)
	for _, m := range all {
		files, err := m.apply(filepath.Join("..", ".."))
		assert.NoError(t, err, m.Name) // all at once
		for name, text := range files {
			key := name + "\n" + string(text)
			require.Empty(t, seen[key], "%s is the same bug", m.Name)
			seen[key] = m.Name
		}
	}
}

// Every promise that a checker of the simulator can call broken has a mutant at which that checker does.
func TestLibrary_EveryCheckerIsShownToFire(t *testing.T) {
	shown := make(map[string]bool)
	for _, m := range library(t) {
		for _, name := range m.Checkers {
			shown[name] = true
		}
	}
	named := checkerNames(t, filepath.Join("..", "..", "simulator", "internal", "world"))
	require.GreaterOrEqual(t, len(named), 9)
	for name, file := range named {
		require.True(t, shown[name], "%s reports %q: write a mutant that says `checker: %s`", file, name, name)
	}
}

// checkerNames are the promises in the calls of World.violate and slot.broken, and where one of them is.
func checkerNames(t *testing.T, dir string) map[string]string {
	t.Helper()
	named := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			promise, literal := call.Args[0].(*ast.BasicLit)
			switch {
			case !ok:
			case f.Sel.Name == "broken":
				require.True(t, literal, "%s: the promise must be written out, so that it can be found", path)
				named["X"+promise.Value], named["Y"+promise.Value] = path, path
			case f.Sel.Name == "violate" && literal: // slot.broken alone puts a name together
				name, err := strconv.Unquote(promise.Value)
				require.NoError(t, err)
				named[name] = path
			}
			return true
		})
		return nil
	}))
	return named
}

// Five mutants against the cheap steps: the runner works on this very tree.
func TestQuick_AllAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and tests the core six times: run without -short")
	}
	quick := slices.DeleteFunc(library(t), func(m *mutant) bool { return !m.Quick })
	require.Len(t, quick, 5)
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitCaught, run(t.Context(), []string{"--quick"}, &stdout, &stderr), "%s%s",
		&stdout, &stderr)
	require.Contains(t, stdout.String(), "5 of 5 mutants caught")
	for _, m := range quick {
		require.Regexp(t, `(?m)^`+m.Name+` +`+m.Promise+` +sbr`, stdout.String())
	}
}

func TestRun_BadUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"an argument":     {"verdict-not-obeyed"},
		"an unknown flag": {"--all"},
		"an unknown tier": {"--tier", "serf"},
		"no such mutant":  {"--only", "no-such-mutant"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, exitBad, run(t.Context(), args, &stdout, &stderr))
			require.Empty(t, stdout.String())
			require.NotEmpty(t, stderr.String())
		})
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// result is what one step of the suite said of the tree.
type result struct {
	// Caught names what failed, "package: test". Empty: all passed.
	Caught string
	// Hung says that it failed by running out of time.
	Hung bool
	// Broken are the promises that checkers of the simulator reported as broken, in the order in which they
	// did first.
	Broken []string
}

// checkerReport is how a checker says it (world.Violation).
var checkerReport = regexp.MustCompile(`\b([A-Za-z0-9-]+) broken (?:at \d|in \d+ more ways)`)

func brokenIn(output []byte) (promises []string) {
	for _, m := range checkerReport.FindAllSubmatch(output, -1) {
		if p := string(m[1]); !slices.Contains(promises, p) {
			promises = append(promises, p)
		}
	}
	return promises
}

// testEvent is a line of `go test -json`.
type testEvent struct {
	Action, Package, Test, Output string
}

// readTests understands the output of `go test -json`, which ended well or did not. That a package failed is
// not enough: a test must have.
func readTests(module string, stdout []byte, ok bool) (result, error) {
	var output bytes.Buffer
	var failed []testEvent
	running := make(map[string][]string) // tests that have not ended, by package
	ran, timedOut := 0, false
	for line := range bytes.Lines(stdout) {
		var e testEvent
		if err := json.Unmarshal(line, &e); err != nil {
			output.Write(line) // the go command's own words
			continue
		}
		switch e.Action {
		case "run":
			running[e.Package] = append(running[e.Package], e.Test)
		case "output", "build-output":
			output.WriteString(e.Output)
			timedOut = timedOut || strings.HasPrefix(e.Output, "panic: test timed out after")
		case "pass", "skip", "fail":
			if e.Test != "" {
				ran++
				running[e.Package] = slices.DeleteFunc(running[e.Package], func(t string) bool { return t == e.Test })
			}
			if e.Action == "fail" {
				failed = append(failed, e)
			}
		}
	}
	if ok {
		if ran == 0 {
			return result{}, fmt.Errorf("no test ran:\n%s", tail(output.Bytes()))
		}
		return result{}, nil
	}
	name := strings.TrimPrefix(culprit(failed, running), module+"/")
	if name == "" {
		return result{}, fmt.Errorf("it failed, but no test did:\n%s", tail(output.Bytes()))
	}
	return result{Caught: name, Hung: timedOut, Broken: brokenIn(output.Bytes())}, nil
}

// culprit is the innermost of the tests that failed first, or the test that took its whole package down.
func culprit(failed []testEvent, running map[string][]string) string {
	var first *testEvent
	for i := range failed {
		e := &failed[i]
		if e.Test != "" && (first == nil || e.Package == first.Package &&
			strings.HasPrefix(e.Test, first.Test+"/")) {
			first = e
		}
	}
	if first != nil {
		return first.Package + ": " + first.Test
	}
	for _, e := range failed {
		if tests := running[e.Package]; len(tests) > 0 {
			return e.Package + ": " + tests[len(tests)-1]
		}
	}
	return ""
}

// tail is the end of an output, for an error.
func tail(output []byte) string {
	const lines = 15
	all := strings.Split(strings.TrimSpace(string(output)), "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}

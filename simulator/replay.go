package simulator

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"runtime"
	"strings"

	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// replay is the command that plays one test with one seed. An empty package is that of the folder.
func replay(test, pkg string, seed uint64) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s=%d go test -run %s %s", seedsVariable, seed, scenario.ShellWord(strings.Join(parts, "/")), pkg), " ")
}

// testPackage is the import path of the test that is running, by the function that testing has called; empty
// if there is none.
func testPackage() string {
	const deep = 200
	counters := make([]uintptr, deep)
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters)])
	last := ""
	for {
		f, more := frames.Next()
		if f.Function == "testing.tRunner" {
			return packageOf(last)
		}
		last = f.Function
		if !more {
			return ""
		}
	}
}

// packageOf is the import path in the full name of a function. Tests beside their package have the path of
// that package.
func packageOf(function string) string {
	folder, name := path.Split(function)
	name, _, _ = strings.Cut(name, ".")
	if plain, err := url.PathUnescape(name); err == nil { // dots in a path are written %2e
		name = plain
	}
	return folder + strings.TrimSuffix(name, "_test")
}

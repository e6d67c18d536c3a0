package simulator

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/serf-sbr/serf-sbr/simulator/internal/shrink"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// promises says in words what a broken promise is about.
var promises = map[string]string{
	"S1":       "two sides of one partition never both stay up",
	"S2":       "who was downed never takes part again",
	"S3":       "the lease has one holder at a time",
	"S4":       `"don't know" is never read as "granted"`,
	"S5":       "the survivors of a verdict all reach each other",
	"L1":       "a side that reaches the lease store in time survives",
	"L2":       "the partition is resolved in the time that the settings allow",
	"L3":       "nothing is written to the lease store while the cluster is whole",
	"stable":   "nobody decides before its view is stable",
	"chain":    "the survivors of the verdicts only shrink",
	"token":    "the fencing token only grows, one by one",
	"liveness": "deadlines move on",
	"X1":       "a singleton is never active twice",
	"X2":       "tokens of singletons grow with each start",
	"X3":       "a fence keeps out exactly what comes from an older run",
	"X4":       "a singleton runs again within the bound, on the oldest member that would run it",
	"X5":       "who was downed runs nothing",
	"X6":       "questions are answered once, and runs stopped once",
	"Y1":       "a shard is never active twice",
	"Y2":       "tokens of shards grow with each start",
	"Y3":       "a fence keeps out exactly what comes from an older run of a shard",
	"Y4":       "shards run again within the bound, on members that would run them, and come to rest there",
	"Y5":       "who was downed runs no shards",
	"Y6":       "questions about shards are answered once, and their runs stopped once",
	// What "explained" is about its text says itself.
}

// report says all about the lowest seed that failed.
func report(t TB, f *failures, o options) string {
	var b strings.Builder
	seed := f.result.Seed
	fmt.Fprintf(&b, "simulator: scenario %q fails with seed %d", f.scenario.Name, seed)
	if n := o.seeds.count(); n > 1 {
		fmt.Fprintf(&b, ", and with %d of %d in all: %s", len(f.seeds), n, some(f.seeds))
	}
	b.WriteByte('\n')
	failing(&b, f.result.Failures)

	small := Shrink(f.scenario, seed, o.shrinkTries(len(names(f.scenario))), func() {})
	text := scenario.Format(small)
	again, err := scenario.Parse("small.yaml", text)
	if err != nil {
		fmt.Fprintf(&b, "its scenario cannot be written as a file: %v\n", err)
		again = small
	}
	result := scenario.Judge(again, seed)
	path, err := keep(t, seed, result.Failures, text)
	fmt.Fprintf(&b, "the smallest scenario found that fails in this way (%s instead of %s):\n", Size(again),
		Size(f.scenario))
	indent(&b, string(text))
	b.WriteString("it fails with seed " + fmt.Sprint(seed) + ":\n")
	failing(&b, result.Failures)
	if err != nil {
		fmt.Fprintf(&b, "it could not be kept: %v\n", err)
	} else {
		fmt.Fprintf(&b, "replay it:\n    %s\n", scenario.Replay(path, seed))
	}
	fmt.Fprintf(&b, "replay this test:\n    %s\n", replay(t.Name(), testPackage(), seed))
	return b.String()
}

// Shrink returns the smallest scenario it finds that fails with the seed as s does: it breaks the same
// promise, or misses the same expectation. Times that s leaves to the seed are those that it draws. tries
// bounds the runs of the search (zero: 1000), tried is called after each. An s that does not fail comes back.
func Shrink(s *scenario.Scenario, seed uint64, tries int, tried func()) *scenario.Scenario {
	drawn := s.Drawn(seed)
	fails := shrink.Same(drawn, seed)
	return shrink.Shrink(drawn, func(c *scenario.Scenario) bool {
		defer tried()
		return fails(c)
	}, shrink.Options{Tries: tries})
}

// failing lists failures, and what the promises among them are.
func failing(b *strings.Builder, lines []string) {
	said := make(map[string]bool)
	for _, line := range lines {
		indent(b, line)
		promise, _, _ := strings.Cut(line, " broken ")
		if text := promises[promise]; text != "" && !said[promise] {
			said[promise] = true
			indent(b, fmt.Sprintf("  (%s: %s)", promise, text))
		}
	}
}

func indent(b *strings.Builder, text string) {
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		b.WriteString("    " + line)
	}
}

// some shows a few seeds of many.
func some(seeds []uint64) string {
	const limit = 10
	if len(seeds) > limit {
		return strings.Trim(fmt.Sprint(seeds[:limit]), "[]") + " …"
	}
	return strings.Trim(fmt.Sprint(seeds), "[]")
}

// Size says how many steps and members a scenario has.
func Size(s *scenario.Scenario) string {
	return count(len(s.Steps), "step") + ", " + count(len(names(s)), "member")
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// keep writes the scenario where it outlives the test, and says why it failed on top.
func keep(t TB, seed uint64, failures []string, text []byte) (path string, err error) {
	why := "# Fails with seed " + fmt.Sprint(seed)
	if len(failures) > 0 {
		first, _, _ := strings.Cut(failures[0], "\n")
		why += ": " + first
	}
	data := append([]byte(why+"\n"), text...)
	name := fmt.Sprintf("sbr-%s-seed-%d", fileName(t.Name()), seed)
	a, ok := t.(interface{ ArtifactDir() string })
	// otherwise the folder ends with the test
	if f := flag.Lookup("test.artifacts"); ok && f != nil && f.Value.String() == "true" {
		path = filepath.Join(a.ArtifactDir(), name+".yaml")
		return path, os.WriteFile(path, data, 0o600)
	}
	f, err := os.CreateTemp("", name+"-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return f.Name(), err
}

// fileName keeps of the name of a test what a file may be called.
func fileName(test string) string {
	const limit = 80
	name := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-+@", r)) {
			return r
		}
		return '_'
	}, test)
	return name[:min(len(name), limit)]
}

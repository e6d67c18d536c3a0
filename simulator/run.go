package simulator

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// TB is what Run needs of a test. *testing.T satisfies it.
type TB interface {
	Helper()
	Name() string
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Source gives the scenario of each seed. *Scenario is one; see also File and Fixed. Build is called from
// several goroutines.
type Source interface {
	Build(seed uint64) (*scenario.Scenario, error)
}

// File is a scenario file; it is read when it is built. The error names every problem of it.
func File(path string) Source { return file(path) }

type file string

// Build reads the file; the seed makes no difference to it.
func (f file) Build(uint64) (*scenario.Scenario, error) {
	data, err := os.ReadFile(string(f))
	if err != nil {
		return nil, err
	}
	return scenario.Parse(string(f), data)
}

// Fixed is a scenario that is the same for all seeds.
func Fixed(s *scenario.Scenario) Source { return fixed{s} }

type fixed struct{ s *scenario.Scenario }

// Build checks the scenario and returns it.
func (f fixed) Build(uint64) (*scenario.Scenario, error) { return f.s, f.s.Validate() }

// Option changes how Run plays.
type Option func(*options)

type options struct {
	seeds seeds
	tries int
}

// Seeds plays the seeds from one to another, both included, instead of 1 to 100. SBR_SEEDS in the environment
// comes first.
func Seeds(from, to uint64) Option { return func(o *options) { o.seeds = seeds{from, to} } }

// ShrinkTries bounds how many runs the search for the smallest failing scenario may take. Without it they are
// 1000, and fewer for more than 20 members, of which each run takes longer.
func ShrinkTries(n int) Option { return func(o *options) { o.tries = n } }

func (o *options) shrinkTries(members int) int {
	const (
		tries = 1000
		quick = 20 // members
		least = 10
	)
	if o.tries > 0 {
		return o.tries
	}
	return max(least, min(tries, tries*quick/max(members, 1)))
}

// Run plays a scenario with many seeds, on all cores, and fails the test if a promise is broken or an
// expectation is not met with any of them. Mistakes in the scenario fail the test before anything is played.
//
// Of the lowest seed that fails the test says what failed, the smallest scenario that fails in the same way,
// and two commands: the first plays this test with that seed alone, the second plays the small scenario with
// sbr simulate, with exactly the same failures. The small scenario is also a file: among the test's artifacts
// under go test -artifacts, otherwise in the folder for temporary files.
//
// SBR_SEEDS in the environment, such as 7 or 1-5000, says which seeds every Run plays. Chance decides nothing
// but through the seed.
func Run(t TB, s Source, opts ...Option) {
	t.Helper()
	o := options{seeds: seeds{1, 100}}
	for _, opt := range opts {
		opt(&o)
	}
	if err := o.seeds.fromEnvironment(); err != nil {
		t.Fatalf("simulator: %v", err)
		return
	}
	found, err := playAll(s, o.seeds)
	switch {
	case err != nil:
		t.Fatalf("simulator: %v", err)
	case found.seeds == nil:
		t.Logf("simulator: passed with %s", o.seeds)
	default:
		t.Fatalf("%s", report(t, found, o))
	}
}

// failures are the seeds that failed, upwards, and the first of them.
type failures struct {
	seeds    []uint64
	scenario *scenario.Scenario
	result   scenario.Result
}

// playAll plays all seeds. The error is that of the lowest seed whose scenario cannot be built.
func playAll(s Source, all seeds) (*failures, error) {
	type played struct {
		scenario *scenario.Scenario
		result   scenario.Result
		err      error
	}
	var found failures
	for p := range cores.InOrder(all.count(), func(i uint64) (p played) {
		if p.scenario, p.err = build(s, all.from+i); p.err == nil {
			p.result = scenario.Judge(p.scenario, all.from+i)
		}
		return p
	}) {
		switch {
		case p.err != nil:
			return &found, p.err
		case p.result.Passed:
			continue
		case found.seeds == nil:
			found.scenario, found.result = p.scenario, p.result
		}
		found.seeds = append(found.seeds, p.result.Seed)
	}
	return &found, nil
}

// build plans one seed. A panic while it is planned is an error, one while it is played is a failure: both
// name the seed.
func build(s Source, seed uint64) (sc *scenario.Scenario, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("planning it panicked: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			err = fmt.Errorf("with seed %d: %w", seed, err)
		}
	}()
	return s.Build(seed)
}

// seedsVariable is read by Run. It is no flag: a flag of a package's tests is unknown to those of all others,
// so that it could not be given to go test ./..., and it may clash with a flag of the user's.
const seedsVariable = "SBR_SEEDS"

// maxSeeds bounds one range: more is a slip of the finger.
const maxSeeds = 10_000_000

// seeds is a range, both ends included.
type seeds struct{ from, to uint64 }

func (s seeds) count() uint64 { return s.to - s.from + 1 }

// String is for people.
func (s seeds) String() string {
	if s.from == s.to {
		return fmt.Sprintf("seed %d", s.from)
	}
	return fmt.Sprintf("seeds %d-%d", s.from, s.to)
}

func (s seeds) validate() error {
	switch {
	case s.from > s.to:
		return fmt.Errorf("seeds must go upwards: %d-%d", s.to, s.from)
	case s.to-s.from >= maxSeeds:
		return fmt.Errorf("at most %d seeds are played at once", maxSeeds)
	default:
		return nil
	}
}

// fromEnvironment takes over what the environment says, if it says anything.
func (s *seeds) fromEnvironment() error {
	text := os.Getenv(seedsVariable)
	if text == "" {
		return s.validate()
	}
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	from, errA := strconv.ParseUint(a, 10, 64)
	to, errB := strconv.ParseUint(b, 10, 64)
	if errA != nil || errB != nil {
		return fmt.Errorf("%s is %.40q: it must be a seed such as 7, or a range such as 1-200", seedsVariable, text)
	}
	*s = seeds{from, to}
	if err := s.validate(); err != nil {
		return fmt.Errorf("%s: %w", seedsVariable, err)
	}
	return nil
}

// replay is the command that plays one test with one seed. An empty package is that of the folder.
func replay(test, pkg string, seed uint64) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s=%d go test -run %s %s", seedsVariable,
		seed, scenario.ShellWord(strings.Join(parts, "/")), pkg), " ")
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

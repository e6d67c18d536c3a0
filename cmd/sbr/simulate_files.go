package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/serf-sbr/serf-sbr/simulator/explore"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// seedRange is the value of --seeds: A-B, both included, or one seed.
type seedRange struct {
	from, to uint64
	endless  bool // A- is taken as well: all seeds from A on
}

// maxRuns bounds a range that has an end: more is a slip of the finger.
const maxRuns = 10_000_000

// open says that there is no last seed.
func (r *seedRange) open() bool { return r.endless && r.to == explore.MaxSeed }

// count is how many seeds there are; unbounded for all from one on.
func (r *seedRange) count() uint64 {
	if r.open() {
		return math.MaxUint64
	}
	return r.to - r.from + 1
}

// String, Set and Type make it a flag value.
func (r *seedRange) String() string {
	switch {
	case r.open():
		return fmt.Sprintf("%d-", r.from)
	case r.from == r.to:
		return strconv.FormatUint(r.from, 10)
	default:
		return fmt.Sprintf("%d-%d", r.from, r.to)
	}
}

func (r *seedRange) Set(s string) error {
	a, b, found := strings.Cut(s, "-")
	kinds := "a seed such as 7, or a range such as 1-200"
	if r.endless {
		kinds = "a seed such as 7, a range such as 1-200, or all from one on, such as 1-"
	}
	switch {
	case !found:
		b = a
	case b == "" && r.endless:
		b = strconv.FormatUint(explore.MaxSeed, 10)
	}
	from, errA := strconv.ParseUint(a, 10, 64)
	to, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA != nil || errB != nil:
		return errors.New("must be " + kinds)
	case r.endless && max(from, to) > explore.MaxSeed:
		return fmt.Errorf("must be at most %d", uint64(explore.MaxSeed))
	case from > to:
		return fmt.Errorf("must go upwards: %d-%d", to, from)
	case !r.endless && to-from >= maxRuns:
		return fmt.Errorf("must be at most %d seeds", maxRuns)
	}
	r.from, r.to = from, to
	return nil
}

func (*seedRange) Type() string { return "A-B" }

// words is "seed 7" or "seeds 1-200".
func (r *seedRange) words() string {
	if r.from == r.to {
		return "seed " + r.String()
	}
	return "seeds " + r.String()
}

// loadScenarios reads all files. The error names every problem of every file.
func loadScenarios(paths []string, stdin io.Reader) ([]*scenarioFile, error) {
	var files []*scenarioFile
	var problems []error
	for _, path := range paths {
		found, err := scenarioPaths(path)
		if err != nil {
			problems = append(problems, err)
		}
		for _, p := range found {
			name, data, err := readInput(p, stdin, scenario.MaxBytes)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			s, err := scenario.Parse(name, data)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			files = append(files, newScenarioFile(p, data, s))
		}
	}
	return files, errors.Join(problems...)
}

// scenarioPaths are the files that an argument stands for: itself, or what is in a folder, in the order of
// their names.
func scenarioPaths(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	if path == "" {
		return nil, errors.New("an argument is empty: give the name of a file or a folder")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		hidden := p != path && strings.HasPrefix(d.Name(), ".")
		switch {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return fs.SkipDir
		case !d.IsDir() && !hidden && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(p)):
			files = append(files, p)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no scenario in it: no file ends in .yaml, .yml or .json", path)
	}
	return files, err
}

// relaxCollector lets the collector run less often, for verbs that play many small runs on all cores: with
// Go's default it takes a fifth of their time and most of what a second core would give (BenchmarkCores).
// What that may cost in memory is bounded. GOGC and GOMEMLIMIT in the environment have the last word.
func relaxCollector() {
	const percent, limit = 800, 3 << 29
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

package faults

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// T lets a cell use require away from the goroutine of its test. Its clean-ups run in reverse order, as those
// of a test do.
type T struct {
	mu       sync.Mutex
	problems []string
	cleanups []func()
}

// Errorf notes a problem.
func (t *T) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// FailNow ends the goroutine of the cell.
func (t *T) FailNow() { runtime.Goexit() }

// Cleanup has f called by Finish.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Cleaned notes the error of a clean-up, which must not be cut short.
func (t *T) Cleaned(err error) {
	if err != nil {
		t.Errorf("cleaning up: %v", err)
	}
}

// Finish runs the clean-ups.
func (t *T) Finish() {
	for last := t.pop(); last != nil; last = t.pop() {
		last()
	}
}

func (t *T) pop() (last func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.cleanups); n > 0 {
		last, t.cleanups = t.cleanups[n-1], t.cleanups[:n-1]
	}
	return last
}

// Problems returns what was noted.
func (t *T) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.problems)
}

// BrokenPromises are the problems that nothing excuses.
func (t *T) BrokenPromises() []string {
	return slices.DeleteFunc(t.Problems(), func(problem string) bool {
		return !strings.HasPrefix(problem, "S3") && !strings.HasPrefix(problem, "S4")
	})
}

package kubernetes_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// cellT lets a cell use require away from the goroutine of its test. Its clean-ups run in reverse order, as those of a test do.
type cellT struct {
	mu       sync.Mutex
	problems []string
	cleanups []func()
}

func (t *cellT) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

func (t *cellT) FailNow() { runtime.Goexit() }

func (t *cellT) cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// check is for clean-ups, which must not be cut short.
func (t *cellT) check(err error) {
	if err != nil {
		t.Errorf("cleaning up: %v", err)
	}
}

func (t *cellT) finish() {
	for last := t.pop(); last != nil; last = t.pop() {
		last()
	}
}

func (t *cellT) pop() (last func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.cleanups); n > 0 {
		last, t.cleanups = t.cleanups[n-1], t.cleanups[:n-1]
	}
	return last
}

// brokenPromises are the problems that nothing excuses.
func (t *cellT) brokenPromises() []string {
	return slices.DeleteFunc(slices.Clone(t.problems), func(problem string) bool {
		return !strings.HasPrefix(problem, "S3") && !strings.HasPrefix(problem, "S4")
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// finding is what became of one mutant.
type finding struct {
	*mutant
	// By is the step that caught it, in the order cheap to dear; nil: it survived. Alone is the step of the
	// simulator that did, where that was measured.
	By, Alone *catch
	// Silent are the checkers that the mutant names and that have not reported it.
	Silent []string
	Took   time.Duration
	// Err says that nothing was found out: the mutant is bad, or a tool failed.
	Err error
}

// catch is a step that failed, and what failed in it.
type catch struct {
	result
	Step string
	Tier tier
}

// hunter runs the steps of a suite against mutants.
type hunter struct {
	*tree
	steps []step
	mode  mode

	mu    sync.Mutex
	sound map[string]func() error // by step: whether it passes on the tree as it is, found out once
}

// mode says what is asked of the suite.
type mode string

const (
	// whole runs from cheap to dear, up to the first failure.
	whole mode = "suite"
	// each is whole, and measures what the simulator finds by itself where a cheaper step has caught a mutant
	// already.
	each mode = "each"
)

// asItIs is an error unless a step passes on the tree as it is: else nothing that it finds is the mutant's.
func (h *hunter) asItIs(ctx context.Context, s step) error {
	h.mu.Lock()
	check := h.sound[s.name]
	if check == nil {
		check = sync.OnceValue(func() error { return h.baseline(ctx, s) })
		if h.sound == nil {
			h.sound = make(map[string]func() error)
		}
		h.sound[s.name] = check
	}
	h.mu.Unlock()
	return check()
}

func (h *hunter) baseline(ctx context.Context, s step) error {
	switch r, err := s.run(ctx, h.tree); {
	case err != nil:
		return fmt.Errorf("the tree as it is: %s: %w", s.name, err)
	case r.Caught != "":
		return fmt.Errorf("the tree as it is fails %s: mend that first, nothing can be said of mutants before",
			r.Caught)
	}
	return nil
}

// all hunts the mutants with so many workers, and hands each finding to done, one at a time, as they come. It
// returns them in the order of the mutants.
func (h *hunter) all(ctx context.Context, mutants []*mutant, workers int, done func(finding)) []finding {
	found := make([]finding, len(mutants))
	next := make(chan int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range max(workers, 1) {
		wg.Go(func() {
			for i := range next {
				f := h.hunt(ctx, mutants[i])
				mu.Lock()
				found[i] = f
				done(f)
				mu.Unlock()
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	wg.Wait()
	return found
}

func (h *hunter) hunt(ctx context.Context, m *mutant) finding {
	started := time.Now()
	f := finding{mutant: m, Silent: slices.Clone(m.Checkers)}
	f.Err = h.try(ctx, &f)
	f.Took = time.Since(started)
	return f
}

func (h *hunter) try(ctx context.Context, f *finding) (err error) {
	files, err := f.apply(h.root)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(h.scratch, f.Name+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	t, err := h.with(files, scratch)
	if err != nil {
		return err
	}
	if err := t.compiles(ctx, f.packages()...); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return f.bad("%v", err)
	}
	for _, s := range h.steps {
		if !f.wants(s, h.mode) {
			continue
		}
		r, err := s.run(ctx, t)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", f.Name, s.name, err)
		}
		if r.Caught == "" {
			continue
		}
		if err := h.asItIs(ctx, s); err != nil {
			return err
		}
		if r.Hung && !f.Hangs {
			return f.bad("%s ran out of time: write `hang: true` if that is how this bug shows, or make it end",
				r.Caught)
		}
		f.caught(catch{result: r, Step: s.name, Tier: s.tier})
	}
	return nil
}

// wants reports whether there is something left to learn from a step.
func (f *finding) wants(s step, m mode) bool {
	switch {
	case len(s.of) > 0 && !slices.ContainsFunc(s.of, f.changes):
		return false
	case f.By == nil:
		return true
	case s.tier != simulator:
		return false
	default:
		return m == each && f.Alone == nil && f.Blind == "" || len(f.Silent) > 0
	}
}

func (f *finding) caught(c catch) {
	if f.By == nil {
		f.By = &c
	}
	if f.Alone == nil && c.Tier == simulator {
		f.Alone = &c
	}
	f.Silent = slices.DeleteFunc(f.Silent, func(name string) bool { return slices.Contains(c.Broken, name) })
}

// survived says in words why a mutant that could be tried is not well caught. Empty: it is.
func (f *finding) survived() string {
	switch {
	case f.By == nil:
		return "SURVIVED: no test fails; write the one that does"
	case len(f.Silent) > 0:
		return "not reported by the checker of " + strings.Join(f.Silent, " and ")
	default:
		return ""
	}
}

// leastAlone is how many of all mutants the simulator must find without the tests of the resolver: it is
// there to prove the resolver.
const leastAlone = 30

// seenAlone counts the mutants that it did find.
func seenAlone(found []finding) (n int) {
	for i := range found {
		if found[i].Alone != nil {
			n++
		}
	}
	return n
}

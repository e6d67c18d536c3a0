package walk

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

const (
	maxBroken  = 3
	maxTold    = 40      // steps to rest that a report tells
	maxWay     = 1 << 12 // steps from a state to rest: more go round in circles
	checkEvery = 1 << 10 // states between two looks at the context
	reportEach = 1 << 15 // states between two reports of progress
)

// Model is what is walked: states, and what leads from one to another. States are values; what they share is never changed in place.
type Model[S any] interface {
	// First is where everything begins.
	First() S
	// AppendKey appends what distinguishes a state from all that may go on differently.
	AppendKey(b []byte, s *S) []byte
	// Moves appends what can happen next, Waits last. Whatever is not in it, cannot be.
	Moves(to []Move, s *S) []Move
	Do(s *S, mv Move)
	// Fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
	Fair(s *S) (mv Move, ok bool)
	// Stuck reports whether waiting changes nothing.
	Stuck(s *S) bool
	// Now is the time in a state.
	Now(s *S) time.Duration
	// Describe says what a move is, in a line; Standing what everybody does.
	Describe(s *S, mv Move) string
	Standing(s *S) string
	// Telling is the same model, which says what its machines do.
	Telling(say func(text string)) Model[S]
}

// Search is a walk over the states of a model under way. The model tells it what it finds.
type Search[S any] struct {
	model    Model[S]
	options  *Options
	seen     map[key]struct{}
	settled  map[key]time.Duration
	stack    []*frame[S]
	depth    int
	buf      []byte
	sizes    Counts
	settling int
	mute     bool
	report   Report
}

type key [2]uint64

// frame is a state on the way from the first one to the present one, and the moves that were tried from it.
type frame[S any] struct {
	state S
	moves []Move
	next  int
}

// NewSearch returns a search that has not begun. It keeps o.
func NewSearch[S any](o *Options) *Search[S] {
	return &Search[S]{options: o, seen: map[key]struct{}{}, settled: map[key]time.Duration{}}
}

// Muted returns one that takes nothing in: that of Model.Telling.
func Muted[S any](o *Options) *Search[S] { return &Search[S]{options: o, mute: true} }

// Run visits every state of m that can be reached, depth first, each once. It looks at ctx now and then, and returns what it has when that is cancelled.
func (w *Search[S]) Run(ctx context.Context, m Model[S]) Report {
	w.model = m
	w.report = Report{Name: w.options.Name, Complete: true}
	w.frame(0).state = m.First()
	w.enter(ctx, w.stack[0])
	for w.depth = 1; w.depth > 0 && w.report.Complete; {
		f := w.stack[w.depth-1]
		if f.next == len(f.moves) {
			w.depth--
			continue
		}
		mv := f.moves[f.next]
		f.next++
		w.sizes.Edges++
		child := w.frame(w.depth)
		child.state = f.state
		found := len(w.report.Broken)
		m.Do(&child.state, mv)
		if len(w.report.Broken) == found && w.enter(ctx, child) {
			w.depth++
		}
		w.report.Complete = w.report.Complete && len(w.report.Broken) < maxBroken
	}
	w.report.Counts = w.counted()
	return w.report
}

// Started counts a step that starts a run.
func (w *Search[S]) Started() {
	if w.settling == 0 {
		w.sizes.Starts++
	}
}

func (w *Search[S]) counted() Counts {
	c := w.sizes
	c.States = len(w.seen)
	return c
}

func (w *Search[S]) keyOf(s *S) key {
	w.buf = w.model.AppendKey(w.buf[:0], s)
	sum := sha256.Sum256(w.buf)
	return key{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}

// frame returns the frame at a depth. Frames are used again: the way goes up and down all the time.
func (w *Search[S]) frame(depth int) *frame[S] {
	if depth == len(w.stack) {
		w.stack = append(w.stack, new(frame[S]))
	}
	return w.stack[depth]
}

// enter looks at a state that was reached, and reports whether it is new.
func (w *Search[S]) enter(ctx context.Context, f *frame[S]) bool {
	k := w.keyOf(&f.state)
	if _, ok := w.seen[k]; ok {
		return false
	}
	w.seen[k] = struct{}{}
	n := len(w.seen)
	if w.options.Limit > 0 && n > w.options.Limit || n%checkEvery == 0 && ctx.Err() != nil {
		w.report.Complete = false
		return false
	}
	if w.options.Progress != nil && n%reportEach == 0 {
		w.options.Progress(w.counted())
	}
	f.moves, f.next = w.model.Moves(f.moves[:0], &f.state), 0
	if n := len(f.moves); n == 0 || f.moves[n-1].Kind == Waits {
		w.depth++ // so that the way to it can be told
		w.settle(&f.state)
		w.depth--
	}
	return true
}

// settle follows the fair way from a state: faults are over, everything that is due happens, late things come. It notes how long it takes until all is
// as it should be and nothing more happens.
func (w *Search[S]) settle(from *S) {
	type visited struct {
		key key
		now time.Duration
	}
	var way []visited
	s, began := *from, w.model.Now(from)
	w.settling++
	defer func() { w.settling-- }()
	var rest time.Duration
	for {
		k := w.keyOf(&s)
		if d, ok := w.settled[k]; ok {
			rest = d
			break
		}
		now := w.model.Now(&s)
		way = append(way, visited{key: k, now: now})
		mv, ok := w.model.Fair(&s)
		if !ok {
			break
		}
		if now-began > w.options.Bound || len(way) > maxWay || mv.Kind == Waits && w.model.Stuck(&s) {
			w.Broken(from, "C", fmt.Sprintf("%v after all faults are over, and %d steps, not all is well yet: %s", now-began, len(way), w.model.Standing(&s)))
			return
		}
		w.model.Do(&s, mv)
	}
	end := w.model.Now(&s) + rest
	for _, v := range way {
		w.settled[v.key] = end - v.now
	}
	took := end - began
	w.sizes.Slowest = max(w.sizes.Slowest, took)
	if took > w.options.Bound {
		w.Broken(from, "C", fmt.Sprintf("all is well only %v after all faults are over", took))
	}
}

// Broken notes a violation in a state, and the way to it. The way is walked again, to tell what the machines did.
func (w *Search[S]) Broken(s *S, promise, text string) {
	if w.mute || len(w.report.Broken) >= maxBroken {
		return
	}
	if w.settling > 0 && promise != "C" {
		text += fmt.Sprintf(" (%v later, on the way to rest)", w.model.Now(s)-w.model.Now(&w.stack[w.depth-1].state))
	}
	w.report.Broken = append(w.report.Broken, Violation{Promise: promise, Text: text, Steps: w.steps(w.settling > 0)})
}

// steps tells the way to the present state, one line for each step, and how it goes on from there where nothing goes wrong.
func (w *Search[S]) steps(on bool) (lines []string) {
	var s S
	var again Model[S]
	say := func(text string) {
		lines = append(lines, fmt.Sprintf("%-5v ", again.Now(&s))+text)
	}
	again = w.model.Telling(func(text string) { say("    " + text) })
	s = again.First()
	do := func(mv Move) {
		if mv.Kind != Waits {
			say(again.Describe(&s, mv))
		}
		again.Do(&s, mv)
	}
	for _, f := range w.stack[:w.depth] {
		if f.next == 0 || f.next > len(f.moves) {
			continue // the last one, which has not moved yet
		}
		do(f.moves[f.next-1])
	}
	for range maxTold {
		mv, more := again.Fair(&s)
		if !on || !more {
			break
		}
		do(mv)
	}
	return lines
}

// All makes several walks, at most workers of them at a time, and returns their reports in order, or the first error.
func All[O any](ctx context.Context, one func(context.Context, O) (Report, error), all []O, workers int) ([]Report, error) {
	reports, errs := make([]Report, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(workers, 1) {
		wg.Go(func() {
			for k := range next {
				reports[k], errs[k] = one(ctx, all[k])
			}
		})
	}
	for k := range all {
		next <- k
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return reports, nil
}

package walk

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

const (
	maxBroken  = 3
	maxTold    = 40      // steps after the last one that a violation tells
	maxWay     = 1 << 12 // steps from a state until all is well: more go round in circles
	checkEvery = 1 << 10 // states between two looks at the context
)

// Kind is what can happen next. Waits is common to all models; each has kinds of its own.
type Kind uint8

// Waits lets time pass.
const Waits Kind = 0

// Move is something that can happen next. What At means depends on the kind: a member, a message, a set of
// members.
type Move struct {
	Kind Kind
	At   uint8
}

// Model is what is searched: states, and what leads from one to another.
type Model[S any] interface {
	// First makes s the state in which everything begins.
	First(s *S)
	// Copy makes to, which may have been another state, a copy of from. What both share is never changed in
	// place.
	Copy(to, from *S)
	// AppendKey appends what distinguishes a state from all that may go on differently.
	AppendKey(b []byte, s *S) []byte
	// Moves appends what can happen next. Whatever is not in it, cannot be. It is called once for each state.
	// In those in which nothing happens by itself it looks whether all is as it should be, or becomes so
	// (Search.Settle).
	Moves(to []Move, s *S) []Move
	Do(s *S, mv Move)
	// Pass is how much time passes in s by Waits. Zero: waiting changes nothing.
	Pass(s *S) time.Duration
	// Describe says in a line what a move is, Standing what all members do.
	Describe(s *S, mv Move) string
	Standing(s *S) string
}

// Fair returns what happens next where nothing goes wrong. ok is false when all is well and will remain so.
type Fair[S any] func(s *S) (mv Move, ok bool)

// Search is a search over the states of a model. The model tells it what it finds, by Broken and in Counts.
// Create one by NewSearch.
type Search[S any] struct {
	// Counts are the sizes so far. The search counts states and edges, the model the others.
	Counts

	model    Model[S]
	limit    int
	seen     map[hash]struct{}
	settled  map[hash]time.Duration
	stack    []*frame[S] // the way to the present state; frames behind it are used again
	depth    int
	buf      []byte
	complete bool
	broken   []finding[S]
	told     int               // of broken
	fair     Fair[S]           // while Settle follows it
	later    time.Duration     // since that began
	tell     func(text string) // while a way is told
}

// frame is a state on the way from the first one to the present one, and the moves that were tried from it.
type frame[S any] struct {
	state S
	moves []Move
	next  int
}

// finding is a violation. Its way is told after the step in which the model found it.
type finding[S any] struct {
	Violation
	fair Fair[S] // how it goes on from there
}

// NewSearch returns a search that has not begun. It ends at more than limit states; zero: it does not.
func NewSearch[S any](m Model[S], limit int) *Search[S] {
	return &Search[S]{model: m, limit: limit, seen: map[hash]struct{}{}, settled: map[hash]time.Duration{}}
}

// Run visits every state that can be reached, depth first, each once. It looks at ctx now and then, and
// returns what it has when that is cancelled.
func (w *Search[S]) Run(ctx context.Context) Report {
	w.complete = true
	w.model.First(&w.frame(0).state)
	w.enter(ctx, w.stack[0])
	w.tellBroken()
	for w.depth = 1; w.depth > 0 && w.complete; {
		f := w.stack[w.depth-1]
		if f.next == len(f.moves) {
			w.depth--
			continue
		}
		mv := f.moves[f.next]
		f.next++
		w.Edges++
		child := w.frame(w.depth)
		w.model.Copy(&child.state, &f.state)
		w.model.Do(&child.state, mv)
		isNew := w.enter(ctx, child)
		w.tellBroken()
		if isNew {
			w.depth++
		}
	}
	r := Report{Counts: w.Counts, Complete: w.complete}
	for k := range w.broken {
		r.Broken = append(r.Broken, w.broken[k].Violation)
	}
	return r
}

// frame returns the frame at a depth.
func (w *Search[S]) frame(depth int) *frame[S] {
	if depth == len(w.stack) {
		w.stack = append(w.stack, new(frame[S]))
	}
	return w.stack[depth]
}

// enter looks at a state that was reached, and reports whether it is new.
func (w *Search[S]) enter(ctx context.Context, f *frame[S]) bool {
	f.moves, f.next = f.moves[:0], 0
	k := w.hash(&f.state)
	if _, known := w.seen[k]; known {
		return false
	}
	w.seen[k] = struct{}{}
	w.States = len(w.seen)
	if w.limit > 0 && w.States > w.limit || w.States%checkEvery == 0 && ctx.Err() != nil {
		w.complete = false
		return false
	}
	f.moves = w.model.Moves(f.moves, &f.state)
	return true
}

// Started counts a step that starts a run.
func (w *Search[S]) Started() {
	if w.fair == nil && w.tell == nil {
		w.Starts++
	}
}

// Settle follows the fair way from a state: faults are over, everything that is due happens, late messages
// come. It is promise C that all is well within a bound of time. It notes how long it takes until nothing
// more happens.
func (w *Search[S]) Settle(from *S, fair Fair[S], bound time.Duration) {
	type visited struct {
		hash hash
		now  time.Duration
	}
	var (
		way  []visited
		s    S
		rest time.Duration
	)
	w.model.Copy(&s, from)
	w.fair, w.later = fair, 0
	defer func() { w.fair, w.later = nil, 0 }()
	for {
		k := w.hash(&s)
		if d, ok := w.settled[k]; ok {
			rest = d
			break
		}
		way = append(way, visited{k, w.later})
		mv, ok := fair(&s)
		if !ok {
			break
		}
		var by time.Duration
		if mv.Kind == Waits {
			by = w.model.Pass(&s)
		}
		if w.later > bound || len(way) > maxWay || mv.Kind == Waits && by == 0 {
			text := fmt.Sprintf("%v after all faults are over, and %d steps, not all is well yet: %s", w.later,
				len(way), w.model.Standing(&s))
			w.Broken(from, "C", text)
			return
		}
		w.later += by
		w.model.Do(&s, mv)
	}
	took := w.later + rest
	for _, v := range way {
		w.settled[v.hash] = took - v.now
	}
	w.Slowest = max(w.Slowest, took)
	if took > bound {
		w.Broken(from, "C", fmt.Sprintf("all is well only %v after all faults are over", took))
	}
}

// Broken notes that a promise is broken in a state.
func (w *Search[S]) Broken(s *S, promise, text string) {
	if w.tell != nil || len(w.broken) >= maxBroken {
		return
	}
	if w.fair != nil && promise != "C" {
		text += fmt.Sprintf(" (%v later, on the way to rest)", w.later)
	}
	v := Violation{Promise: promise, Text: text, Steps: []string{"then: " + w.model.Standing(s)}}
	w.broken = append(w.broken, finding[S]{v, w.fair})
}

// Telling reports whether the way to a violation is told.
func (w *Search[S]) Telling() bool { return w.tell != nil }

// Tell adds a line to the way to a violation while that is told (Telling): what a machine does in a step.
func (w *Search[S]) Tell(format string, args ...any) {
	w.tell("    " + fmt.Sprintf(format, args...))
}

// tellBroken tells the way to what the last step has found, and ends the search when it has found enough.
func (w *Search[S]) tellBroken() {
	for ; w.told < len(w.broken); w.told++ {
		v := &w.broken[w.told]
		v.Steps = append(w.way(v.fair), v.Steps...)
	}
	w.complete = w.complete && len(w.broken) < maxBroken
}

// way makes the steps that lead to the present state again and tells them, one line each, and how it goes on
// from there.
func (w *Search[S]) way(fair Fair[S]) (lines []string) {
	var (
		s   S
		now time.Duration
	)
	w.tell = func(text string) { lines = append(lines, fmt.Sprintf("%-7v %s", now, text)) }
	defer func() { w.tell = nil }()
	do := func(mv Move) {
		if mv.Kind == Waits {
			now += w.model.Pass(&s)
		} else {
			w.tell(w.model.Describe(&s, mv))
		}
		w.model.Do(&s, mv)
	}
	w.model.First(&s)
	for _, f := range w.stack[:w.depth] {
		do(f.moves[f.next-1])
	}
	for range maxTold {
		if fair == nil {
			break
		}
		mv, more := fair(&s)
		if !more {
			break
		}
		do(mv)
	}
	return lines
}

// hash is that of a state. Two of a billion states have the same with a probability of 10^-21.
type hash [2]uint64

func (w *Search[S]) hash(s *S) hash {
	w.buf = w.model.AppendKey(w.buf[:0], s)
	sum := sha256.Sum256(w.buf)
	return hash{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])}
}

// Counts are the sizes of a search.
type Counts struct {
	// States is how many different states were reached, Edges how many steps lead from one to another, Rests
	// in how many states nothing more happens by itself.
	States int `json:"states"`
	Edges  int `json:"edges"`
	Rests  int `json:"rests"`
	// Excepted is how many of Rests follow the schedule that S1 excepts: the store forgot a verdict that no
	// survivor could tell it again.
	Excepted int `json:"excepted"`
	// Starts is how many edges start a run of a singleton or a shard.
	Starts int `json:"-"`
	// Slowest is the longest time from a state until all is well once all faults are over.
	Slowest time.Duration `json:"-"`
}

// Add returns the sum of both, and the longer time.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		States: c.States + d.States, Edges: c.Edges + d.Edges, Rests: c.Rests + d.Rests,
		Excepted: c.Excepted + d.Excepted,
		Starts:   c.Starts + d.Starts, Slowest: max(c.Slowest, d.Slowest),
	}
}

// Report is what a search found.
type Report struct {
	Counts
	// Complete says that everything was searched: the limit was not reached, the context not cancelled, and
	// not too much found.
	Complete bool
	// Broken are the first violations. A search ends at the third.
	Broken []Violation
}

// Violation is a broken promise and the way to it.
type Violation struct {
	// Promise is its short name: see the package of the model.
	Promise string `json:"promise"`
	// Cluster says which cluster it is about, where that is not plain from the search.
	Cluster string `json:"partition,omitempty"`
	// Text says what is wrong.
	Text string `json:"text"`
	// Steps are what happened, one line each.
	Steps []string `json:"steps"`
}

// String tells the whole story.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n  %s\n", v.Promise, v.Text, strings.Join(v.Steps, "\n  "))
}

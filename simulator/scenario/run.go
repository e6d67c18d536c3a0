package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/simulator/internal/world"
)

// Result is what one run came to.
type Result struct {
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
	// Passed says that no promise was broken and every expectation was met; otherwise Failures says in words
	// what was not.
	Passed   bool     `json:"passed"`
	Failures []string `json:"failures"`
	// Excepted are promises that were broken in the one schedule that S1 excepts; see world.World.Excepted.
	Excepted []string `json:"excepted,omitempty"`
	// Survivors are the nodes that run and were not downed, Down those that were, in the order of the file. A
	// node that crashed or left is in neither.
	Survivors []string `json:"survivors"`
	Down      []string `json:"down"`
	// LeaseHolder is the name of the node that holds the lease at the end, empty for none.
	LeaseHolder string `json:"lease-holder"`
	// ResolvedAfter is the time from the last step that cut something (see Expect.ResolvedWithin) to the
	// resolution, as Go writes durations. Empty: something is unresolved at the end. 0s: there was nothing to
	// resolve.
	ResolvedAfter string `json:"resolved-after"`
	// Decisions are the last decisions of the members that made any, by their names.
	Decisions map[string]string `json:"decisions,omitempty"`
	// DoubleActive and NobodyActive are those of Measures, as Go writes durations. Empty: they were not
	// measured.
	DoubleActive string `json:"double-active,omitempty"`
	NobodyActive string `json:"nobody-active,omitempty"`
	// Singletons are in the order of the file.
	Singletons []SingletonResult `json:"singletons,omitempty"`
	// Shards are in the order of the file.
	Shards []ShardsResult `json:"shards,omitempty"`
	// TraceHash is the same for equal runs.
	TraceHash string `json:"trace-hash"`
	// Events are what happened, in words, and History is what changed; both only of Run.
	Events  []Event  `json:"events"`
	History *History `json:"history,omitempty"`

	// Broken are the promises that were broken, as far as Failures tells them, and Unmet is what else it
	// tells.
	Broken   []Violation `json:"-"`
	Unmet    []string    `json:"-"`
	Measures Measures    `json:"-"`
	// Coverage is what the run was given as its coverage; nil without.
	Coverage *Coverage `json:"-"`
}

// Coverage counts the transitions that resolvers take; the zero Coverage is ready for use.
type Coverage = world.Coverage

// What a run records.
type (
	// Event is one thing that happened.
	Event = world.Event
	// History is what changed, as far as Event does not say it.
	History = world.History
	// Change is one thing that is so from a moment on.
	Change = world.Change
	// Violation is a broken promise.
	Violation = world.Violation
)

// Prepared is a scenario that was checked, and worked out as far as that does not depend on the seed, to be
// played more than once. The scenario must not be changed any more. Any number of goroutines may play it at
// the same time.
type Prepared struct {
	s       *Scenario
	options world.Options
	names   *Names
}

// Prepare fails with every problem of the scenario, one line each, when it does not validate.
func Prepare(s *Scenario) (*Prepared, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	return &Prepared{s: s, options: o, names: s.Names()}, nil
}

// Run plays a scenario and records it. A scenario that does not validate fails with its problems, a run that
// panics with the panic. The seed decides everything that is left to chance. In a cluster of more than 64
// nodes the history has the views of a few nodes of each kind: nodes that all steps treat alike.
func Run(s *Scenario, seed uint64) Result { return s.played(seed, (*Prepared).Run) }

// Judge is Run without Events, History and what is measured, and several times as fast. To judge many runs of
// one scenario, prepare it first.
func Judge(s *Scenario, seed uint64) Result { return s.played(seed, (*Prepared).Judge) }

// Cover is Judge, and counts in c the transitions that resolvers take. The run is the same.
func Cover(s *Scenario, seed uint64, c *Coverage) Result {
	return s.played(seed, func(ready *Prepared, seed uint64) Result {
		return ready.play(seed, func(o *world.Options) { o.Coverage = c })
	})
}

func (s *Scenario) played(seed uint64, play func(*Prepared, uint64) Result) Result {
	return Caught(s.Name, seed, func() Result {
		ready, err := Prepare(s)
		if err != nil {
			return refused(empty(s.Name, seed), err)
		}
		return play(ready, seed)
	})
}

// Run is the function Run for this scenario.
func (ready *Prepared) Run(seed uint64) Result {
	return ready.play(seed, func(o *world.Options) {
		o.Measure, o.Trace, o.HistoryOf = true, true, ready.s.watched()
	})
}

// Judge is the function Judge for this scenario.
func (ready *Prepared) Judge(seed uint64) Result { return ready.play(seed, func(*world.Options) {}) }

// Measure is Judge, and measures. With a coverage it counts transitions as well.
func (ready *Prepared) Measure(seed uint64, c *Coverage) Result {
	return ready.play(seed, func(o *world.Options) { o.Measure, o.Coverage = true, c })
}

// play plays one run under options that observe sets.
func (ready *Prepared) play(seed uint64, observe func(*world.Options)) Result {
	r := empty(ready.s.Name, seed)
	played, err := ready.player(seed, observe)
	if err != nil {
		return refused(r, err)
	}
	s, w := played.s, played.w
	r.Survivors = append(r.Survivors, w.Survivors()...)
	r.Down = append(r.Down, w.Down()...)
	r.LeaseHolder = w.Holder()
	r.Singletons, r.Shards = w.Slots(), w.Shards()
	for _, n := range w.Nodes() {
		if d, ok := n.Decision(); ok {
			if r.Decisions == nil {
				r.Decisions = make(map[string]string)
			}
			r.Decisions[n.Name] = d.Kind.String()
		}
	}
	after, resolved := s.resolved(w)
	if resolved {
		r.ResolvedAfter = after.String()
	}
	var lines []string
	r.Broken, lines = broken(w.FinishSafety())
	r.Measures = Measures{Nobody: len(r.Survivors) == 0, Resolved: after, Settled: resolved}
	r.Unmet = s.Unmet(&r)
	r.Failures = append(append(r.Failures, lines...), r.Unmet...)
	_, r.Excepted = broken(w.Excepted())
	r.Passed = len(r.Failures) == 0
	r.TraceHash = w.Hash()
	r.Coverage = played.observed.Coverage
	if played.observed.Measure {
		r.measured(w.Activity())
	}
	if r.History = w.History(); r.History != nil {
		r.Events = append(ready.s.draws(seed), w.Events()...)
	}
	return r
}

// measured takes in what the world has measured.
func (r *Result) measured(a world.Activity) {
	m := &r.Measures
	m.BothSides, m.DoubleActive, m.NobodyActive = a.BothSides, a.DoubleActive.Total(), a.NobodyActive.Total()
	r.DoubleActive, r.NobodyActive = m.DoubleActive.String(), m.NobodyActive.String()
}

func empty(name string, seed uint64) Result {
	return Result{
		Scenario: name, Seed: seed, Failures: []string{}, Survivors: []string{}, Down: []string{},
		Events: []Event{},
	}
}

// refused is the result of a scenario that cannot be played.
func refused(r Result, err error) Result {
	r.Unmet = strings.Split(err.Error(), "\n")
	r.Failures = r.Unmet
	return r
}

// broken says which promises were broken, a few times each: two sides of a hundred are thousands of pairs.
func broken(violations []Violation) (told []Violation, lines []string) {
	const limit = 2
	times := make(map[string]int)
	var promises []string
	for _, v := range violations {
		if times[v.Promise]++; times[v.Promise] <= limit {
			told, lines = append(told, v), append(lines, v.String())
		}
		if times[v.Promise] == limit+1 {
			promises = append(promises, v.Promise)
		}
	}
	for _, p := range promises {
		lines = append(lines, fmt.Sprintf("%s broken in %d more ways", p, times[p]-limit))
	}
	return told, lines
}

// resolved is how long after the last cut everything was settled; ok is false if something is not.
func (s *Scenario) resolved(w *world.World) (after time.Duration, ok bool) {
	if !w.Settled() {
		return 0, false
	}
	at, ok := s.Disturbed()
	if !ok {
		return 0, true
	}
	return max(w.Stirred()-at, 0).Round(time.Millisecond), true
}

// draws say what the run of a seed makes of ranges, before anything happens.
func (s *Scenario) draws(seed uint64) []Event {
	all := []Event{}
	_, drawn := s.drawn(seed)
	for _, d := range drawn {
		all = append(all, Event{At: time.Duration(0).String(), Kind: "drawn",
			Detail: fmt.Sprintf("%s: %v of %v", d.place, d.at, d.from)})
	}
	return all
}

// same reports whether two lists hold the same names, in any order.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Panicked begins the failure of a run that did not come to its end.
const Panicked = "internal error: the run panicked"

// Caught plays a run. A run that panics is a failed run that names its seed; the others go on.
func Caught(name string, seed uint64, play func() Result) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = refused(empty(name, seed), fmt.Errorf("%s: %v", Panicked, p))
		}
	}()
	return play()
}

// plainInShell are characters that no shell reads anything into.
const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+:@"

// ShellWord is a word as a shell takes it.
func ShellWord(word string) string {
	plain := word != "" && !strings.HasPrefix(word, "-") &&
		!strings.ContainsFunc(word, func(c rune) bool { return !strings.ContainsRune(plainInShell, c) })
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Replay is the command that plays a file with a seed again.
func Replay(path string, seed uint64) string {
	return fmt.Sprintf("sbr simulate %s --seeds %d", ShellWord(path), seed)
}

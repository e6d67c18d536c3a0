package walk

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// MaxMembers is how many members a walk may have.
const MaxMembers = 4

// Options say what may happen in a walk: each number is how often, at any moment. Start from Default.
type Options struct {
	// Name says in a word what the walk is about.
	Name string
	// Members is how many there are, at most MaxMembers. They are named a, b, c, d in the order of their births.
	Members int
	// Formed: at the beginning the cluster is there, and everything runs. Otherwise the members have just found each other.
	Formed bool
	// UseLease: what runs has a lease.
	UseLease bool
	// Joins is how many of the last members join a cluster that is there already. Skewed: their clocks are behind, so they count as the oldest.
	Joins  int
	Skewed bool
	// Cuts is how often the cluster is cut into two, Crashes how many members crash, Pauses how often one stands still.
	Cuts, Crashes, Pauses int
	// Resigns is how many managers are stopped, Returns how many of these members open another one. Leaves is how many members leave.
	Resigns, Returns, Leaves int
	// Ends is how often a run ends by itself.
	Ends int
	// Late is how many messages come late, Twice how many come a second time, late. Lost is how many never come.
	Late, Twice, Lost int
	// Removals is how many members see the losers of a verdict removed, some time after they saw them as down.
	Removals int
	// Slow is how many runs take any time to end.
	Slow int
	// Losses is how often a lease is lost although its holder is there, Doubts how often its store gives no answer.
	Losses, Doubts int

	// Step is the least time between two moments. All other times are multiples of it.
	Step time.Duration
	// StableAfter is how long after the last change a verdict comes at the earliest.
	StableAfter time.Duration
	// Notice is how long it may take to notice something: half the removal margin.
	Notice time.Duration
	// Bound is how long after the end of all faults everything runs again, at the latest.
	Bound time.Duration

	// Limit bounds the number of states. Zero: none.
	Limit int
}

// Default returns four members with short times, to which nothing happens yet.
func Default() Options {
	const step = 2 * time.Second
	return Options{Members: MaxMembers, Step: step, StableAfter: 4 * step, Notice: 2 * step, Bound: 30 * step}
}

// Time is one of the times of a walk.
type Time struct {
	Name string
	D    time.Duration
}

// Number is one of the numbers of a walk.
type Number struct {
	Name string
	N    int
}

// Validate reports every problem at once, one line each, beginning with the name of the package that asks. counts and times are that package's own.
func (o *Options) Validate(pkg string, counts []Number, times []Time) error {
	var errs []error
	say := func(format string, args ...any) { errs = append(errs, fmt.Errorf(pkg+": "+format, args...)) }
	if o.Members < 1 || o.Members > MaxMembers {
		say("Members is %d: 1 to %d are possible", o.Members, MaxMembers)
	}
	if o.Joins < 0 || o.Joins >= max(o.Members, 1) {
		say("Joins is %d: at least one of %d members has to be there", o.Joins, o.Members)
	}
	for _, n := range append([]Number{{"Cuts", o.Cuts}, {"Crashes", o.Crashes}, {"Pauses", o.Pauses}, {"Resigns", o.Resigns}, {"Returns", o.Returns}, {"Leaves", o.Leaves}, {"Ends", o.Ends},
		{"Late", o.Late}, {"Twice", o.Twice}, {"Lost", o.Lost}, {"Removals", o.Removals}, {"Slow", o.Slow}, {"Losses", o.Losses}, {"Doubts", o.Doubts}}, counts...) {
		if n.N < 0 || n.N > 15 {
			say("%s is %d: 0 to 15 are possible", n.Name, n.N)
		}
	}
	if !o.UseLease && o.Losses+o.Doubts > 0 {
		say("Losses and Doubts need UseLease")
	}
	if o.Step <= 0 {
		say("Step is %v: it must be positive", o.Step)
		return errors.Join(errs...)
	}
	for _, d := range append([]Time{{"StableAfter", o.StableAfter}, {"Notice", o.Notice}}, times...) {
		if d.D%o.Step != 0 {
			say("%s is %v: a multiple of Step, %v, is needed", d.Name, d.D, o.Step)
		}
	}
	return errors.Join(errs...)
}

// Faults has each change that a list names, such as "a crash, a late message", made by what is known by that name. It panics at one that nobody knows: a
// mistake in the program.
func Faults[O any](list string, known func(name string) (change func(*O), ok bool), o *O) {
	for name := range strings.SplitSeq(list, ", ") {
		change, ok := known(name)
		if !ok {
			panic(fmt.Sprintf("walk: there is no %q", name))
		}
		change(o)
	}
}

// Fault returns the change of a fault that comes alone, or together with others.
func Fault(name string) (change func(*Options), ok bool) {
	change, ok = faults[name]
	return change, ok
}

var faults = map[string]func(*Options){
	"forming":         func(o *Options) { o.Formed = false },
	"two":             func(o *Options) { o.Members = 2 },
	"three":           func(o *Options) { o.Members = 3 },
	"a newcomer":      func(o *Options) { o.Joins = 1 },
	"an old newcomer": func(o *Options) { o.Joins, o.Skewed = 1, true },
	"a cut":           func(o *Options) { o.Cuts++ },
	"a crash":         func(o *Options) { o.Crashes++ },
	"a pause":         func(o *Options) { o.Pauses++ },
	"a resignation":   func(o *Options) { o.Resigns++ },
	"a return":        func(o *Options) { o.Returns++ },
	"a leave":         func(o *Options) { o.Leaves++ },
	"an end":          func(o *Options) { o.Ends++ },
	"a late message":  func(o *Options) { o.Late++ },
	"a message twice": func(o *Options) { o.Twice++ },
	"a lost message":  func(o *Options) { o.Lost++ },
	"a removal":       func(o *Options) { o.Removals++ },
	"a slow end":      func(o *Options) { o.Slow++ },
	"a lost lease":    func(o *Options) { o.Losses++ },
	"a silent store":  func(o *Options) { o.Doubts++ },
}

var ids = [MaxMembers]sbr.ID{"a", "b", "c", "d"}

// Name is a member's.
func Name(i int) sbr.ID { return ids[i] }

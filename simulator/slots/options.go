package slots

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/singleton/handover"
)

// MaxMembers is how many members a walk may have.
const MaxMembers = 4

// Options say what may happen in a walk: each number is how often, at any moment. Start from Default.
type Options struct {
	// Name says in a word what the walk is about.
	Name string
	// Members is how many there are, at most MaxMembers. They are named a, b, c, d in the order of their births.
	Members int
	// Formed: at the beginning the cluster is there, and the oldest member runs the slot. Otherwise the members have just found each other.
	Formed bool
	// UseLease: the slot has a lease.
	UseLease bool
	// Joins is how many of the last members join a cluster that is there already. Skewed: their clocks are behind, so they count as the oldest.
	Joins  int
	Skewed bool
	// Cuts is how often the cluster is cut into two, Crashes how many members crash, Pauses how often one stands still.
	Cuts, Crashes, Pauses int
	// Resigns is how many managers are stopped, Leaves how many members leave.
	Resigns, Leaves int
	// Ends is how often a run ends by itself: for good, or to start again after a pause.
	Ends int
	// Late is how many messages come late or never, Twice how many come a second time, late.
	Late, Twice int
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
	// Handover has the times of the machines.
	Handover handover.Config
	// Bound is how long after the end of all faults one run is active again, at the latest.
	Bound time.Duration

	// Limit bounds the number of states. Zero: none.
	Limit int
	// Progress is called now and then with what was counted so far. Nil: nobody wants to know.
	Progress func(Counts)
}

// Default returns four members with short times, to which nothing happens yet.
func Default() Options {
	const step = 2 * time.Second
	return Options{Members: 4, Step: step, StableAfter: 4 * step, Bound: 30 * step, Handover: handover.Config{
		HandOverRetryInterval: 2 * step, NumberOfRetries: 2, Margin: 4 * step, Trust: 5 * step, LeaseRetryInterval: 2 * step}}
}

// Validate reports every problem at once, one line each.
func (o *Options) Validate() error {
	var errs []error
	if o.Members < 1 || o.Members > MaxMembers {
		errs = append(errs, fmt.Errorf("slots: Members is %d: 1 to %d are possible", o.Members, MaxMembers))
	}
	if o.Joins < 0 || o.Joins >= max(o.Members, 1) {
		errs = append(errs, fmt.Errorf("slots: Joins is %d: at least one of %d members has to be there", o.Joins, o.Members))
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"Cuts", o.Cuts}, {"Crashes", o.Crashes}, {"Pauses", o.Pauses}, {"Resigns", o.Resigns}, {"Leaves", o.Leaves}, {"Ends", o.Ends}, {"Late", o.Late},
		{"Twice", o.Twice}, {"Removals", o.Removals}, {"Slow", o.Slow}, {"Losses", o.Losses}, {"Doubts", o.Doubts}} {
		if n.n < 0 || n.n > 15 {
			errs = append(errs, fmt.Errorf("slots: %s is %d: 0 to 15 are possible", n.name, n.n))
		}
	}
	if !o.UseLease && o.Losses+o.Doubts > 0 {
		errs = append(errs, errors.New("slots: Losses and Doubts need UseLease"))
	}
	if o.Step <= 0 {
		return errors.Join(append(errs, fmt.Errorf("slots: Step is %v: it must be positive", o.Step))...)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"StableAfter", o.StableAfter}, {"HandOverRetryInterval", o.Handover.HandOverRetryInterval}, {"Margin", o.Handover.Margin}, {"Trust", o.Handover.Trust},
		{"LeaseRetryInterval", o.Handover.LeaseRetryInterval}} {
		if d.d%o.Step != 0 {
			errs = append(errs, fmt.Errorf("slots: %s is %v: a multiple of Step, %v, is needed", d.name, d.d, o.Step))
		}
	}
	cfg := o.Handover
	cfg.Self = name(0)
	return errors.Join(append(errs, cfg.Validate())...)
}

// Counts are the sizes of what was searched.
type Counts struct {
	// States is how many different states were reached, Edges how many steps lead from one to another. Starts is how many of these
	// start a run.
	States, Edges, Starts int
	// Slowest is the longest time from a state that was reached, once all faults are over, to one run.
	Slowest time.Duration
}

// Add returns the sum of both.
func (c Counts) Add(d Counts) Counts {
	return Counts{c.States + d.States, c.Edges + d.Edges, c.Starts + d.Starts, max(c.Slowest, d.Slowest)}
}

// Report is what a walk found.
type Report struct {
	Counts
	Name string
	// Complete says that everything was searched: neither Limit was reached nor the context cancelled nor too much found.
	Complete bool
	// Broken are the first violations; a walk ends at the third.
	Broken []Violation
}

// Violation is a broken promise and the way to it.
type Violation struct {
	// Promise is A, B, C or D: see the package.
	Promise string
	// Text says what is wrong, Steps what happened before, one line each.
	Text  string
	Steps []string
}

// String tells the whole story.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n  %s\n", v.Promise, v.Text, strings.Join(v.Steps, "\n  "))
}

package walk

import (
	"fmt"
	"strings"
	"time"
)

// Counts are the sizes of what was searched.
type Counts struct {
	// States is how many different states were reached, Edges how many steps lead from one to another. Starts is how many of these
	// start a run.
	States, Edges, Starts int
	// Slowest is the longest time from a state that was reached, once all faults are over, until all is as it should be.
	Slowest time.Duration
}

// String says it in a line.
func (c Counts) String() string {
	return fmt.Sprintf("%8d states, %9d edges, %6d starts, all is well within %4v", c.States, c.Edges, c.Starts, c.Slowest)
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
	// Promise is A, B, C or D: see the package of the model.
	Promise string
	// Text says what is wrong, Steps what happened before, one line each.
	Text  string
	Steps []string
}

// String tells the whole story.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s\n  %s\n", v.Promise, v.Text, strings.Join(v.Steps, "\n  "))
}

package world

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// Violation is a broken promise.
type Violation struct {
	At      time.Duration
	Promise string
	Text    string
}

// String is one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s broken at %.3fs: %s", v.Promise, v.At.Seconds(), v.Text)
}

// checker looks at everything that happens and reports what must not.
type checker interface {
	// took comes before each step of a resolver that an event causes.
	took(w *World, p *process, e sbr.Event)
	// stepped follows each step of a resolver, before its effects are carried out.
	stepped(w *World, p *process, effects []sbr.Effect)
	// committed follows each write to the store.
	committed(w *World, by *process, before, after *lease.Record)
	// rested is called once, when nothing happens any more.
	rested(w *World)
}

// unchecked is a checker that looks at nothing, to be embedded.
type unchecked struct{}

func (unchecked) took(*World, *process, sbr.Event)                         {}
func (unchecked) stepped(*World, *process, []sbr.Effect)                   {}
func (unchecked) committed(*World, *process, *lease.Record, *lease.Record) {}
func (unchecked) rested(*World)                                            {}

func newCheckers() []checker {
	return []checker{
		&waitsUntilStable{}, &prompt{}, &oneSide{}, &staysDown{}, &allReach{}, &neverGuesses{}, &quietWhileWhole{},
		&chain{}, &explained{},
		&oneSideLives{},
	}
}

func (w *World) eachCheck(f func(checker)) {
	for _, c := range w.checks {
		f(c)
	}
}

// maxViolations bounds what a broken run reports.
const maxViolations = 20

func (w *World) violate(promise, format string, args ...any) {
	if len(w.violations) >= maxViolations || len(w.excepted) >= maxViolations {
		return
	}
	v := Violation{At: w.now, Promise: promise, Text: fmt.Sprintf(format, args...)}
	if w.store.excuses(promise) {
		w.excepted = append(w.excepted, v)
		w.note(nil, "excepted", "%s: %s", promise, v.Text)
		return
	}
	w.violations = append(w.violations, v)
	w.note(nil, "VIOLATION", "%s: %s", promise, v.Text)
}

// Excepted are the promises that were broken where S1 allows it: the store had lost an acknowledged verdict,
// no survivor of it reached the store until others had written the next one, and neither has met the other
// since.
func (w *World) Excepted() []Violation { return w.excepted }

// FinishSafety checks what must hold at the end, and returns all broken promises. The run need not have been
// long enough for everything to come to rest: that is not checked, and promise L1 only where everything is
// settled.
func (w *World) FinishSafety() []Violation {
	settled := w.Settled()
	w.eachCheck(func(c checker) {
		if _, lives := c.(*oneSideLives); !lives || settled {
			c.rested(w)
		}
	})
	return w.violations
}

// Survivors are the names of the nodes that run and were not downed.
func (w *World) Survivors() []string {
	var names []string
	for _, p := range w.up() {
		names = append(names, p.node.Name)
	}
	return names
}

// up are the processes that take part, by the order of their nodes.
func (w *World) up() []*process {
	var up []*process
	for _, n := range w.nodes {
		if n.proc != nil && n.proc.runs() {
			up = append(up, n.proc)
		}
	}
	return up
}

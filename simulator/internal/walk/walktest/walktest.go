// Package walktest plays the walks of a model in the tests of its package.
//
//	go test ./simulator/internal/slots -v -only 'a crash'     those with such names
//	go test ./simulator/internal/slots -v -thorough           the long ones, too
//
// # Guarantees
//
//   - A walk that finds something fails, and ends those that are not made yet. So does one that is not complete. What was searched
//     is logged.
//
// # Non-guarantees
//
//   - With -short walks end at a number of states: they find what they come by.
//
// # Assumptions
//
//   - It is imported by tests only: its flags are theirs.
package walktest

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/serf-sbr/serf-sbr/internal/cores"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

var (
	thorough = flag.Bool("thorough", false, "walk what takes some minutes, too")
	only     = flag.String("only", "", "make only the walks whose names match this regular expression")
)

// Model is a package of walks. O are its options.
type Model[O any] struct {
	Walk   func(context.Context, O) (walk.Report, error)
	Common func(*O) *walk.Options
}

// Plan are the walks of a model: Quick and Normal ones of every day, and Thorough ones of some minutes.
type Plan[O any] struct {
	Quick, Normal, Thorough []O
	// Short is how many states a normal walk visits with -short, ShortQuick how many a quick one.
	Short, ShortQuick int
}

// Keeps walks everything that a plan allows.
func (m Model[O]) Keeps(t *testing.T, p Plan[O]) {
	if testing.Short() {
		m.limit(p.Normal, p.Short)
		m.limit(p.Quick, p.ShortQuick)
	}
	all := slices.Concat(p.Quick, p.Normal)
	if *thorough {
		all = append(all, p.Thorough...)
	}
	pick, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(o O) bool { return !pick.MatchString(m.Common(&o).Name) })
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	reports := make([]walk.Report, len(all))
	cores.All(len(all), func(k int) {
		o, name := all[k], m.Common(&all[k]).Name
		r, err := m.Walk(ctx, o)
		reports[k] = r
		t.Log(line(r.Counts, name))
		if err != nil {
			t.Error(err)
		}
		if !r.Complete && ctx.Err() == nil && m.Common(&o).Limit == 0 {
			t.Errorf("%s: not complete", name)
		}
		for _, v := range r.Broken {
			t.Errorf("%s: %v", name, v)
			enough()
		}
	})
	var sum walk.Counts
	for _, r := range reports {
		sum = sum.Add(r.Counts)
	}
	t.Log(line(sum, "all"))
}

func line(c walk.Counts, name string) string {
	return fmt.Sprintf("%8d states, %9d edges, %6d starts, all is well within %4v: %s", c.States, c.Edges, c.Starts, c.Slowest, name)
}

func (m Model[O]) limit(all []O, states int) {
	for k := range all {
		m.Common(&all[k]).Limit = states
	}
}

// Findings are changes under which promises must be found broken.
type Findings[O any] []struct {
	Name, Promise string
	Change        func(*O)
}

// Finds walks from what first returns, with each change. The way to what is found tells of a start: a step with this text.
func (m Model[O]) Finds(t *testing.T, first func() O, start string, all Findings[O]) {
	for _, f := range all {
		t.Run(f.Name, func(t *testing.T) {
			o := first()
			f.Change(&o)
			r, err := m.Walk(t.Context(), o)
			switch {
			case err != nil:
				t.Fatal(err)
			case len(r.Broken) == 0, r.Complete:
				t.Fatalf("nothing is broken in %v", r.Counts)
			}
			v := r.Broken[0]
			if v.Promise != f.Promise || !slices.ContainsFunc(v.Steps, func(s string) bool { return strings.Contains(s, start) }) {
				t.Fatalf("%s is to be broken, and the way there with %q to be told, not this: %v", f.Promise, start, v)
			}
			t.Log(v)
		})
	}
}

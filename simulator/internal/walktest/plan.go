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
)

var (
	thorough = flag.Bool("thorough", false, "walk what takes some minutes, too")
	only     = flag.String("only", "", "make only the walks whose names match this regular expression")
)

// Walk is what a package of walks plays.
type Walk func(context.Context, Options) Report

// Walks are those of a model: Quick and Normal ones of every day, and Thorough ones of some minutes.
type Walks struct {
	Quick, Normal, Thorough []Options
	// Short is how many states a normal walk visits with -short, ShortQuick how many a quick one.
	Short, ShortQuick int
}

// Keeps walks everything that a plan allows.
func (w Walk) Keeps(t *testing.T, p Walks) {
	if testing.Short() {
		limit(p.Normal, p.Short)
		limit(p.Quick, p.ShortQuick)
	}
	all := slices.Concat(p.Quick, p.Normal)
	if *thorough {
		all = append(all, p.Thorough...)
	}
	pick, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(o Options) bool { return !pick.MatchString(o.Name) })
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	reports := make([]Report, len(all))
	cores.All(len(all), func(k int) {
		o := all[k]
		r := w(ctx, o)
		reports[k] = r
		t.Log(line(r.Counts, o.Name))
		if !r.Complete && ctx.Err() == nil && o.Limit == 0 {
			t.Errorf("%s: not complete", o.Name)
		}
		for _, v := range r.Broken {
			t.Errorf("%s: %v", o.Name, v)
			enough()
		}
	})
	var sum Counts
	for _, r := range reports {
		sum = sum.Add(r.Counts)
	}
	t.Log(line(sum, "all"))
}

func line(c Counts, name string) string {
	return fmt.Sprintf("%8d states, %9d edges, %6d starts, all is well within %4v: %s", c.States, c.Edges,
		c.Starts, c.Slowest, name)
}

func limit(all []Options, states int) {
	for k := range all {
		all[k].Limit = states
	}
}

// Findings are changes under which promises must be found broken.
type Findings []struct {
	Name, Promise string
	Change        func(*Options)
}

// Finds walks on three formed members without leases, with each change. The way to what is found tells of a
// start.
func (w Walk) Finds(t *testing.T, all Findings) {
	for _, f := range all {
		t.Run(f.Name, func(t *testing.T) {
			o := Plan(false, "three")[0]
			f.Change(&o)
			r := w(t.Context(), o)
			if len(r.Broken) == 0 || r.Complete {
				t.Fatalf("nothing is broken in %v", r.Counts)
			}
			const start = "STARTS shard 0, run 1"
			v := r.Broken[0]
			if v.Promise != f.Promise || !slices.ContainsFunc(v.Steps, func(s string) bool {
				return strings.Contains(s, start)
			}) {
				t.Fatalf("%s is to be broken, and the way there with %q to be told, not this: %v", f.Promise, start, v)
			}
			t.Log(v)
		})
	}
}

// Ends checks that a walk ends when it is cancelled.
func (w Walk) Ends(t *testing.T, long Options) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r := w(ctx, long); r.Complete || len(r.Broken) > 0 {
		t.Fatalf("a walk that is cancelled: %+v", r)
	}
}

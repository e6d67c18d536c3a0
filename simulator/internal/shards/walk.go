package shards

import (
	"context"

	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/walk"
)

// walker is the model that is walked.
type walker struct {
	Options
	search *walk.Search[state]
	alloc  *fickle
	canon  walk.Canon
	// inside is what comes at once.
	inside    []letter
	flushing  bool
	tell      func(i int, e slot.Effect)
	tellChief func(i int, e slot.Effect)
}

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled. The error is that of Options.Validate.
func Walk(ctx context.Context, o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	o.Notice = o.Host.Margin / 2
	w := newWalker(o)
	w.search = walk.NewSearch[state](&w.Options.Options)
	return w.search.Run(ctx, w), nil
}

func newWalker(o Options) *walker {
	a, err := o.allocator()
	if err != nil {
		panic(err) // Validate has looked at it
	}
	w := &walker{Options: o, alloc: &fickle{Allocator: a}, canon: walk.Canon{Horizon: horizon, Unserved: o.Resigns > 0}}
	w.search = walk.Muted[state](&w.Options.Options)
	return w
}

// Walks makes several walks, at most workers of them at a time, and returns their reports in order.
func Walks(ctx context.Context, all []Options, workers int) ([]Report, error) {
	return walk.All(ctx, Walk, all, workers)
}

// First is the state in which the members that are there from the beginning know each other: not armed yet or, where they are formed, with all shards running.
func (w *walker) First() (s state) {
	s.Cluster = walk.NewCluster(&w.Options.Options)
	s.chiefs = [2]chief{{at: nobody}, {at: nobody}}
	for n := range s.leases {
		s.leases[n].holder, s.owners[n], s.wishes[n] = nobody, nobody, nobody
	}
	for i := range w.Members {
		s.hosts[i].m = newHost(w.Options.host(i), 0)
		s.Members[i].Sure = -w.Host.Trust
	}
	passenger{w, &s}.Everyone()
	if w.Formed {
		w.form(&s)
	}
	s.Endanger()
	s.changes, s.strays, s.whims = int8(w.Changes), int8(w.Strangers), int8(w.Whims)
	return s
}

// form lets a cluster find itself, until time brings nothing new.
func (w *walker) form(s *state) {
	for seen := map[string]bool{}; ; {
		mv, more := w.Fair(s)
		if !more {
			k := string(w.AppendKey(nil, s))
			if seen[k] || s.Next(passenger{w, s}, false) == 0 {
				return
			}
			seen[k], mv = true, walk.Move{Kind: walk.Waits}
		}
		w.Do(s, mv)
	}
}

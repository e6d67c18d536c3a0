package shards

import (
	"context"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// walker is the model that is walked.
type walker struct {
	Options
	search *walk.Search[state]
	alloc  *fickle
	canon  walk.Canon
	// inside is what comes at once.
	inside   []letter
	flushing bool
}

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled. The error is that of Options.Validate.
func Walk(ctx context.Context, o Options) (walk.Report, error) {
	if err := o.Validate(); err != nil {
		return walk.Report{}, err
	}
	o.Notice = o.Host.Margin / 2
	a, err := o.allocator()
	if err != nil {
		panic(err) // Validate has looked at it
	}
	w := &walker{Options: o, alloc: &fickle{Allocator: a}, canon: walk.Canon{Horizon: horizon, Unserved: o.Resigns > 0}}
	w.search = walk.NewSearch(w, o.Limit, nil)
	return w.search.Run(ctx), nil
}

// First is the state in which the members that are there from the beginning know each other: not armed yet or, where they are formed, with all shards running.
func (w *walker) First(s *state) {
	*s = state{}
	s.Cluster = walk.NewCluster(&w.Options.Options)
	s.chiefs = [2]chief{{at: nobody}, {at: nobody}}
	for n := range s.leases {
		s.leases[n].holder, s.owners[n], s.wishes[n] = nobody, nobody, nobody
	}
	for i := range w.Members {
		s.hosts[i].m = newHost(w.Options.host(i), 0)
		s.Members[i].Sure = -w.Host.Trust
	}
	passenger{w, s}.Everyone()
	if w.Formed {
		w.form(s)
	}
	s.Endanger()
	s.changes, s.strays, s.whims = int8(w.Changes), int8(w.Strangers), int8(w.Whims)
}

// Copy makes to a copy of from: what they share is never changed in place.
func (w *walker) Copy(to, from *state) { *to = *from }

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

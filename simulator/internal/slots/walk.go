package slots

import (
	"context"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/internal/walk"
)

// walker is the model that is walked.
type walker struct {
	Options
	search *walk.Search[state]
	canon  walk.Canon
	tell   func(i int, e core.Effect)
}

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled. The error is that of Options.Validate.
func Walk(ctx context.Context, o Options) (Report, error) {
	if err := o.Validate(); err != nil {
		return Report{}, err
	}
	o.Notice = o.Handover.Margin / 2
	w := &walker{Options: o}
	w.search = walk.NewSearch[state](&w.Options.Options)
	return w.search.Run(ctx, w), nil
}

// Walks makes several walks, at most workers of them at a time, and returns their reports in order.
func Walks(ctx context.Context, all []Options, workers int) ([]Report, error) {
	return walk.All(ctx, Walk, all, workers)
}

// First is the state in which the members that are there from the beginning know each other: not armed yet or, where they are formed, with one that runs the slot.
func (w *walker) First() (s state) {
	s.Cluster = walk.NewCluster(&w.Options.Options)
	s.holder = -1
	for i := range w.Members {
		s.slots[i].m = newMachine(w.config(i), 0)
		s.Members[i].Sure = -w.Handover.Trust
	}
	passenger{w, &s}.Everyone()
	for w.Formed {
		mv, more := w.Fair(&s)
		if !more {
			break
		}
		w.Do(&s, mv)
	}
	s.Endanger()
	return s
}

func (w *walker) config(i int) handover.Config {
	cfg := w.Handover
	cfg.Self, cfg.Born, cfg.UseLease = name(i), w.Born(i), w.UseLease
	return cfg
}

func newMachine(c handover.Config, now time.Duration) *handover.Machine {
	m, err := handover.New(c, now)
	if err != nil {
		panic(err) // Validate has looked at it
	}
	return m
}

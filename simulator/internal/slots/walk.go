package slots

import (
	"context"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

// walker is the model that is walked.
type walker struct {
	Options
	search *walk.Search[state]
	canon  walk.Canon
}

// Walk searches all states. It looks at ctx now and then, and returns what it has when that is cancelled. The error is that of Options.Validate.
func Walk(ctx context.Context, o Options) (walk.Report, error) {
	if err := o.Validate(); err != nil {
		return walk.Report{}, err
	}
	o.Notice = o.Handover.Margin / 2
	w := &walker{Options: o}
	w.search = walk.NewSearch(w, o.Limit, nil)
	return w.search.Run(ctx), nil
}

// First is the state in which the members that are there from the beginning know each other: not armed yet or, where they are formed, with one that runs the slot.
func (w *walker) First(s *state) {
	*s = state{}
	s.Cluster = walk.NewCluster(&w.Options.Options)
	s.holder = -1
	for i := range w.Members {
		s.slots[i].m = newMachine(w.config(i), 0)
		s.Members[i].Sure = -w.Handover.Trust
	}
	passenger{w, s}.Everyone()
	for w.Formed {
		mv, more := w.Fair(s)
		if !more {
			break
		}
		w.Do(s, mv)
	}
	s.Endanger()
}

// Copy makes to a copy of from: what they share is never changed in place.
func (w *walker) Copy(to, from *state) { *to = *from }

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

package slots

import (
	"context"
	"fmt"
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
	application{w, s}.Everyone()
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
	m := handover.New(c, now)
	return m
}

// Moves appends what can happen next.
func (w *walker) Moves(to []walk.Move, s *state) []walk.Move {
	to = s.World.Moves(to, application{w, s}, s.packetKey)
	if n := len(to); n == 0 || to[n-1].Kind == walk.Waits {
		w.search.Settle(s, w.Fair, w.Bound)
	}
	return to
}

// Fair is what happens next where nothing goes wrong. ok is false when all is well and will remain so.
func (w *walker) Fair(s *state) (mv walk.Move, ok bool) {
	return s.World.Fair(application{w, s}, s.packetKey, func() bool { return w.asItShouldBe(s) })
}

// Pass is how long it takes until something more can happen. Zero: nothing will.
func (w *walker) Pass(s *state) time.Duration {
	p := application{w, s}
	return s.Next(p, s.Anything(p))
}

// asItShouldBe reports whether exactly one run is active, or none where nobody may run.
func (w *walker) asItShouldBe(s *state) bool {
	runs, may := 0, 0
	for i := range w.Members {
		if w.active(s, i) {
			runs++
		}
		if s.Live(i) && s.Members[i].Armed && !s.Losers.Has(i) && !s.slots[i].m.Status().Resigned && !s.Leaving.Has(i) {
			may++
		}
	}
	return runs == min(may, 1)
}

// Standing says what the members do.
func (w *walker) Standing(s *state) (text string) {
	for i := range w.Members {
		if s.Live(i) {
			text += fmt.Sprintf("%s is %v, ", name(i), s.slots[i].m.Phase())
		}
	}
	return text + fmt.Sprintf("%d packets are under way", s.Packets.Len())
}

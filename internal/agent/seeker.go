package agent

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

// A stock agent joins once and then waits for those it knows. Losers of a partition that were started again while the cut lasted have found each other
// by then, and nobody knows the winners any more; nor do agents that started at the same moment and found only themselves. So the sidecar
// remembers where members were, and lets the agent join them while some are missing.

// How often a seeker looks, and how many it tries each time.
const (
	lookEvery = time.Second
	seekEvery = 10 // looks
	seekMost  = 5
	// keepPlaces is how many addresses are remembered.
	keepPlaces = 64
)

// joiner is an agent that joins an address.
type joiner interface {
	Join(ctx context.Context, name, addr string) error
}

type seeker struct {
	join   []string
	least  int // members; fewer are missing some
	state  *state
	agent  joiner
	log    *slog.Logger
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newSeeker(f *config.File, st *state, agent joiner, log *slog.Logger) *seeker {
	return &seeker{join: f.Serf.Join, least: f.SplitBrainResolver.MinMembers, state: st, agent: agent, log: log}
}

func (s *seeker) start(status func() downing.Status) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.done.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.look(ctx, status(), n%seekEvery == 0)
			}
		}
	})
}

func (s *seeker) close() {
	if s.cancel != nil {
		s.cancel()
	}
	s.done.Wait()
}

// look remembers where the members are, and looks for those that are missing.
func (s *seeker) look(ctx context.Context, st downing.Status, seek bool) {
	var here, all []string
	for i := range st.Members {
		m := &st.Members[i]
		all = append(all, m.Address)
		if m.Reachable {
			here = append(here, m.Address)
		}
	}
	s.state.rememberPlaces(all)
	if !seek || len(st.Awaiting) == 0 && len(here) >= s.least && len(here) > 1 {
		return
	}
	places := slices.Concat(s.join, s.state.places())
	places = slices.DeleteFunc(places, func(place string) bool { return slices.Contains(here, place) })
	slices.Sort(places)
	places = slices.Compact(places)
	rand.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, place := range places[:min(len(places), seekMost)] {
		if err := s.agent.Join(ctx, "", place); err != nil {
			s.log.Debug("sbr: a place where a member was does not answer", "address", place, "error", err)
			continue
		}
		s.log.Info("sbr: the Serf agent has joined a place where a member was", "address", place)
	}
}

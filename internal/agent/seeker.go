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

// A stock agent joins once, and not again. Members that were there before are looked for by the provider
// (downing.Memory); those of serf.join may never have been, as when a cluster starts for the first time in a
// network that is cut.

const (
	lookEvery = time.Second
	// seekEvery is how many looks it takes until addresses are joined while members are missing, restEvery
	// while none is.
	seekEvery = 10
	restEvery = 30
	seekMost  = 5 // addresses each time
)

// joiner is an agent that joins an address.
type joiner interface {
	Join(ctx context.Context, name, addr string) error
}

// seeker lets the stock agent join the addresses of serf.join at which no member is, for as long as it runs.
type seeker struct {
	join   []string
	least  int // members; fewer are missing some
	agent  joiner
	log    *slog.Logger
	keys   keyCheck
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newSeeker(f *config.File, agent joiner, log *slog.Logger) *seeker {
	return &seeker{join: f.Serf.Join, least: f.SplitBrainResolver.MinMembers, agent: agent, log: log, keys: keyCheck{log: log}}
}

func (s *seeker) start(status func() downing.Status) {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	if len(s.join) == 0 {
		return
	}
	s.done.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n%seekEvery == 0 {
				s.look(ctx, status(), n%restEvery == 0)
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

// look joins addresses at which no member is. While none seems to be missing it does so only when it rests.
func (s *seeker) look(ctx context.Context, st downing.Status, rests bool) {
	var here []string
	for i := range st.Members {
		if m := &st.Members[i]; m.Reachable {
			here = append(here, m.Address)
		}
	}
	if !rests && len(st.Awaiting) == 0 && len(here) >= s.least && len(here) > 1 {
		return
	}
	isHere := func(place string) bool { return slices.Contains(here, place) }
	places := slices.DeleteFunc(slices.Clone(s.join), isHere)
	rand.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	for _, place := range places[:min(len(places), seekMost)] {
		err := s.agent.Join(ctx, "", place)
		s.keys.note(place, err)
		if err != nil {
			s.log.Debug("sbr: an address of serf.join does not answer", "address", place, "error", err)
			continue
		}
		s.log.Info("sbr: the Serf agent has joined an address of serf.join", "address", place)
	}
}

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
	"github.com/serf-sbr/serf-sbr/internal/config"
	"github.com/serf-sbr/serf-sbr/internal/probe"
)

// sidecar is the node of a stock agent.
type sidecar struct {
	*rejoiner
	options agentrpc.Options
	agent   atomic.Pointer[agentrpc.Agent] // that of the newest try: a try that fails ends its agent for good
	probe   *probe.Server
	then    string // what is waited for once the stock agent answers
}

func newSidecar(f *config.File, then string, log *slog.Logger) (*sidecar, error) {
	p, err := probe.Listen(probe.Options{Addr: f.Serf.Probe, Logger: log})
	if err != nil {
		return nil, err
	}
	s := &sidecar{rejoiner: newRejoiner(f, nil, log), options: agentrpc.DefaultOptions(), probe: p, then: then}
	s.options.Addr, s.options.AuthKey, s.options.Logger = f.Serf.RPCAddress(), f.Serf.RPCAuthKey, log
	if err := s.renew(); err != nil {
		p.Close()
		return nil, err
	}
	return s, nil
}

func (s *sidecar) renew() error {
	a, err := agentrpc.New(s.options)
	if err == nil {
		s.agent.Store(a)
		s.rejoiner.agent = a
	}
	return err
}

// prepare does everything: an unreachable stock agent may come back, and one with another key may get the
// right one.
func (s *sidecar) prepare(ctx context.Context, p *downing.Provider) error {
	if err := s.renew(); err != nil {
		return err
	}
	return p.Beside(ctx, s.agent.Load(), s.probe)
}

func (s *sidecar) waits() string {
	_, _, silence := s.agent.Load().Members()
	switch {
	case silence == nil:
		return s.then
	case errors.Is(silence, downing.ErrAgentSilent):
		return "waiting for the Serf agent at " + s.options.Addr
	default:
		return fmt.Sprintf("waiting for the Serf agent at %s: %v", s.options.Addr, silence)
	}
}

func (s *sidecar) start(_ context.Context, p *downing.Provider) error {
	s.rejoiner.start(p.Status)
	return nil
}

// leave takes the tags back, unless they are to be kept; the stock agent stays in its cluster.
func (s *sidecar) leave(ctx context.Context, p *downing.Provider) error { return p.Stop(ctx) }

func (s *sidecar) close() {
	s.rejoiner.close()
	s.agent.Load().Close()
	s.probe.Close()
}

// A stock agent joins once, and not again. Members that were there before are looked for by the provider
// (downing.Memory); those of serf.join may never have been, as when a cluster starts for the first time in a
// network that is cut.

const (
	lookEvery = time.Second
	// rejoinEvery is how many looks it takes until addresses are joined while members are missing, restEvery
	// while none is.
	rejoinEvery = 10
	restEvery   = 30
	rejoinMost  = 5 // addresses each time
)

// joiner is an agent that joins an address.
type joiner interface {
	Join(ctx context.Context, name, addr string) error
}

// rejoiner lets the stock agent join the addresses of serf.join at which no member is, for as long as it
// runs.
type rejoiner struct {
	join  []string
	least int // members; fewer are missing some
	agent joiner
	joins
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func newRejoiner(f *config.File, agent joiner, log *slog.Logger) *rejoiner {
	return &rejoiner{join: f.Serf.Join, least: f.SplitBrainResolver.MinMembers, agent: agent,
		joins: joins{log: log, found: true}}
}

func (s *rejoiner) start(status func() downing.Status) {
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
			if n%rejoinEvery == 0 {
				s.look(ctx, status(), n%restEvery == 0)
			}
		}
	})
}

func (s *rejoiner) close() {
	if s.cancel != nil {
		s.cancel()
	}
	s.done.Wait()
}

// look joins addresses at which no member is. While none seems to be missing it does so only when it rests.
func (s *rejoiner) look(ctx context.Context, st downing.Status, rests bool) {
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
	for _, place := range places[:min(len(places), rejoinMost)] {
		err := s.agent.Join(ctx, "", place)
		s.note(place, err == nil, err)
		if err != nil {
			s.log.Debug("sbr: an address of serf.join does not answer", "address", place, "error", err)
			continue
		}
		s.log.Info("sbr: the Serf agent has joined an address of serf.join", "address", place)
	}
}

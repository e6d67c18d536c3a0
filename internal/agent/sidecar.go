package agent

import (
	"context"
	"errors"
	"log/slog"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/agentrpc"
	"github.com/serf-sbr/serf-sbr/downing/probe"
	"github.com/serf-sbr/serf-sbr/internal/config"
)

// sidecar stands beside a stock agent.
type sidecar struct {
	agent *agentrpc.Agent
	probe *probe.Server
	seek  *seeker
}

func newSidecar(f *config.File, log *slog.Logger) (*sidecar, error) {
	p, err := probe.Listen(probe.Options{Addr: f.Serf.Probe, Logger: log})
	if err != nil {
		return nil, err
	}
	o := agentrpc.DefaultOptions()
	o.Addr, o.AuthKey, o.Logger = f.Serf.RPCAddress(), f.Serf.RPCAuthKey, log
	a, err := agentrpc.New(o)
	if err != nil {
		p.Close()
		return nil, err
	}
	return &sidecar{agent: a, probe: p, seek: newSeeker(f, a, log)}, nil
}

// prepare does everything: a stock agent that is away, or wants another key, may come back or get it.
func (s *sidecar) prepare(ctx context.Context, p *downing.Provider) error {
	err := p.Beside(ctx, s.agent, s.probe)
	if errors.Is(err, downing.ErrNotBeside) {
		return Problem{err}
	}
	return err
}

func (s *sidecar) start(_ context.Context, p *downing.Provider) error {
	s.seek.start(p.Status)
	return nil
}

// joined is the stock agent's business.
func (s *sidecar) joined() (bool, string) { return true, "" }

func (s *sidecar) keyProblem() string { return s.seek.keys.problem() }

// leave takes the tags back, unless they are to be kept; the stock agent stays in its cluster.
func (s *sidecar) leave(ctx context.Context, p *downing.Provider) error { return p.Stop(ctx) }

func (s *sidecar) close() {
	s.seek.close()
	s.agent.Close()
	s.probe.Close()
}

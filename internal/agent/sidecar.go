package agent

import (
	"context"
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

func newSidecar(f *config.File, st *state, log *slog.Logger) (*sidecar, error) {
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
	return &sidecar{agent: a, probe: p, seek: newSeeker(f, st, a, log)}, nil
}

func (s *sidecar) start(ctx context.Context, p *downing.Provider) error {
	if err := p.Beside(ctx, s.agent, s.probe); err != nil {
		return refusal(err)
	}
	s.seek.start(p.Status)
	return nil
}

// joined is the stock agent's business.
func (s *sidecar) joined() (bool, string) { return true, "" }

// leave takes the tags back, unless they are to be kept; the stock agent stays in its cluster.
func (s *sidecar) leave(ctx context.Context, p *downing.Provider) error { return p.Stop(ctx) }

func (s *sidecar) close() {
	s.seek.close()
	s.agent.Close()
	s.probe.Close()
}

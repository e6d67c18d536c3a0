package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
	"github.com/serf-sbr/serf-sbr/lease/memory"
)

// cluster is the nodes of one demonstration.
type cluster struct {
	opt    Options
	net    *memnet.Network
	memory *memory.Store
	log    *journal
	nodes  map[string]*node
}

type node struct {
	serf     *serf.Serf
	provider *downing.Provider
	gate     *gate
	tags     map[string]string
}

// gate holds a member's resolver up while the member shall seem to be stopped.
type gate struct {
	mu     sync.Mutex
	closed chan struct{}
}

func (g *gate) pause() {
	g.mu.Lock()
	c := g.closed
	g.mu.Unlock()
	if c != nil {
		<-c
	}
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case closed && g.closed == nil:
		g.closed = make(chan struct{})
	case !closed && g.closed != nil:
		close(g.closed)
		g.closed = nil
	}
}

func newCluster(opt Options, log *journal) *cluster {
	return &cluster{opt: opt, net: memnet.New(memnet.Config{Latency: time.Millisecond}), memory: memory.NewStore(), log: log, nodes: make(map[string]*node)}
}

func (c *cluster) store() (lease.Store, error) {
	if c.opt.Kubeconfig == "" {
		return c.memory, nil
	}
	cfg := kubernetes.DefaultConfig()
	cfg.Kubeconfig, cfg.Namespace, cfg.Name = c.opt.Kubeconfig, c.opt.Namespace, kubernetes.Name(c.opt.System)
	return kubernetes.New(cfg)
}

func (c *cluster) config(g *gate) (downing.Config, error) {
	cfg := downing.DefaultConfig()
	cfg.System = c.opt.System
	cfg.Strategy = c.opt.Strategy
	cfg.Strategies.StaticQuorum.QuorumSize = c.opt.Nodes/2 + 1
	cfg.Strategies.KeepReferee.Address = "n1"
	cfg.Resolver.StableAfter = c.opt.StableAfter
	cfg.Resolver.DownAllWhenUnstable = 4 * c.opt.StableAfter
	cfg.Resolver.SettleAfter = time.Second
	cfg.Resolver.MinMembers = c.opt.Nodes
	cfg.Resolver.ReleaseAfter = 40 * time.Second
	cfg.Exit = func(int) {}
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Observe = c.log.occurred
	cfg.Pause = g.pause
	cfg.Grace = 5 * time.Second
	cfg.TellFor = 2 * time.Second
	store, err := c.store()
	cfg.Store = store
	return cfg, err
}

// start starts a member under its own provider and joins it to n1.
func (c *cluster) start(ctx context.Context, name string) error {
	g := &gate{}
	cfg, err := c.config(g)
	if err != nil {
		return err
	}
	p, err := downing.New(cfg)
	if err != nil {
		return err
	}
	n := &node{provider: p, gate: g}
	n.serf, err = serfnet.Start(c.net, name, func(conf *serf.Config) {
		quicken(conf)
		err = p.Prepare(ctx, conf)
		n.tags = maps.Clone(conf.Tags)
	})
	if err != nil {
		return errors.Join(err, p.Stop(ctx))
	}
	if err := p.Start(ctx, n.serf); err != nil {
		return err
	}
	c.nodes[name] = n
	return c.join(n.serf, name)
}

// quicken shortens Serf's suspicion, which on a lone side would take a minute and a half: the demonstration ends with a member
// that comes back, and for that the survivors' Serf must have given up the old one.
func quicken(conf *serf.Config) {
	conf.MemberlistConfig.SuspicionMult = 2
	conf.MemberlistConfig.SuspicionMaxTimeoutMult = 1
	conf.MemberlistConfig.ProbeInterval = 500 * time.Millisecond
	conf.MemberlistConfig.ProbeTimeout = 200 * time.Millisecond
}

func (c *cluster) join(s *serf.Serf, name string) error {
	for _, other := range c.opt.names() {
		if n := c.nodes[other]; n == nil || other == name || c.isDown(other) {
			continue
		}
		addr, err := c.net.Addr(other)
		if err != nil {
			return err
		}
		if _, err := s.Join([]string{other + "/" + addr}, true); err != nil {
			return fmt.Errorf("%s could not join %s: %w", name, other, err)
		}
		return nil
	}
	return nil
}

func (c *cluster) startAll(ctx context.Context) error {
	for _, name := range c.opt.names() {
		if err := c.start(ctx, name); err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
	}
	return c.wait(ctx, 30*time.Second, "the cluster did not form", func() bool {
		for _, n := range c.nodes {
			if s := n.provider.Status(); s.State != "up" || len(s.Members) != c.opt.Nodes {
				return false
			}
		}
		return true
	})
}

func (c *cluster) isDown(name string) bool {
	select {
	case <-c.nodes[name].provider.Downed():
		return true
	default:
		return false
	}
}

func (c *cluster) isDone(name string) bool {
	select {
	case <-c.nodes[name].provider.Done():
		return true
	default:
		return false
	}
}

func (c *cluster) wait(ctx context.Context, limit time.Duration, problem string, ok func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("%s within %v", problem, limit)
		case <-tick.C:
		}
	}
	return nil
}

// stay is the opposite of wait: ok must hold for the whole time.
func (c *cluster) stay(ctx context.Context, d time.Duration, problem string, ok func() bool) error {
	broken := false
	err := c.wait(ctx, d, "", func() bool { broken = !ok(); return broken })
	switch {
	case broken:
		return errors.New(problem)
	case ctx.Err() != nil:
		return err
	default:
		return nil
	}
}

func (c *cluster) stop() {
	var wg sync.WaitGroup
	for _, n := range c.nodes {
		wg.Go(func() {
			n.gate.set(false)
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_ = n.provider.Stop(ctx)
			_ = n.serf.Shutdown()
		})
	}
	wg.Wait()
}

package serf_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/simulator/scenario"
)

// node is a machine: a name, an address, a way to the lease store. One process at a time runs on it.
type node struct {
	scenario.Node
	index int
	addr  netip.Addr
	view  *leasetest.Faulty
	views []*leasetest.Faulty     // view, and those to the leases of singletons and shards
	proc  *process                // the last one, nil before the first
	hurt  int                     // the step, counted from 1, whose store fault it suffers
	fault func(*leasetest.Faulty) // that fault; nil: none
	last  string                  // its last decision
}

// process is one incarnation: a Serf node and its provider.
type process struct {
	*node
	p    *player
	gate gate
	ctx  context.Context // ends when the process dies
	kill context.CancelFunc

	mu       sync.Mutex
	provider *downing.Provider
	serf     *serf.Serf
	socket   *transport
	id       sbr.ID
	seen     uint64
	joined   bool // takes part
	gone     bool // crashed, or is leaving
	met      map[sbr.ID]bool
	shown    view         // what its status showed last
	outSince int          // samples in a row in which it knew a verdict that leaves it out, and went on
	requests atomic.Int32 // of operators, that are not answered yet
	managers []manager    // of singletons and shards, those of the file's order
}

// memberlistOf is what Serf uses under a profile.
func memberlistOf(profile string) *memberlist.Config {
	switch strings.TrimPrefix(profile, "serf-") {
	case "wan":
		return memberlist.DefaultWANConfig()
	case "local":
		return memberlist.DefaultLocalConfig()
	default:
		return memberlist.DefaultLANConfig()
	}
}

// config is what the scenario says of each provider.
func (p *player) config(proc *process) downing.Config {
	r := p.s.Cluster.Rules(proc.Name)
	times := p.s.Cluster.Lease.Settings(r.LeaseMajority.LeaseImplementation)
	c := downing.DefaultConfig()
	c.System = p.s.Cluster.System
	c.Strategy, c.Strategies = r.ActiveStrategy, r.Settings()
	c.Resolver, c.Probe, c.Lease = r.Resolver(times), r.Probe, times
	c.Store = &connection{view: proc.view, gate: &proc.gate}
	c.Exit = func(int) {}
	c.Pause = func() { proc.gate.pass() }
	c.Observe = func(o downing.Occurrence) { p.observe(proc, o) }
	c.Logger = slog.New(slog.DiscardHandler)
	return c
}

func (p *player) newProcess(n *node) *process {
	proc := &process{node: n, p: p, met: make(map[sbr.ID]bool)}
	proc.ctx, proc.kill = context.WithCancel(p.ctx)
	p.procs = append(p.procs, proc)
	p.mu.Lock()
	defer p.mu.Unlock()
	n.proc = proc
	return proc
}

// prepare reads the store and learns what this incarnation is called.
func (proc *process) prepare() (*serf.Config, error) {
	provider, err := downing.New(proc.p.config(proc))
	if err != nil {
		return nil, err
	}
	proc.mu.Lock()
	proc.provider = provider
	proc.mu.Unlock()
	conf := serf.DefaultConfig()
	conf.Init()
	conf.NodeName, conf.LogOutput = proc.Name, io.Discard
	conf.MemberlistConfig = memberlistOf(proc.p.s.Cluster.Detection.Profile)
	conf.ReconnectTimeout = proc.p.s.Cluster.ReapAfter
	if len(proc.Roles) > 0 {
		conf.Tags[downing.TagRole] = strings.Join(proc.Roles, ",")
	}
	if err := provider.Prepare(proc.ctx, conf); err != nil {
		return nil, err
	}
	seen, err := strconv.ParseUint(conf.Tags[downing.TagSeen], 36, 64)
	if err != nil {
		return nil, err
	}
	id := sbr.ID(proc.Name + "#" + conf.Tags[downing.TagUID])
	proc.p.mu.Lock()
	proc.p.seen[id] = seen
	proc.p.mu.Unlock()
	proc.mu.Lock()
	defer proc.mu.Unlock()
	proc.id, proc.seen = id, seen
	return conf, nil
}

// create starts Serf and the provider.
func (proc *process) create(conf *serf.Config) error {
	socket, err := proc.p.net.TransportAt(proc.Name, proc.addr)
	if err != nil {
		return err
	}
	proc.mu.Lock()
	proc.socket = &transport{Transport: socket, gate: &proc.gate}
	provider := proc.provider
	proc.mu.Unlock()
	s, err := serfnet.Start(proc.p.net, proc.Name, func(c *serf.Config) {
		*c = *conf
		c.MemberlistConfig.Transport = proc.socket
	})
	if err != nil {
		return err
	}
	proc.mu.Lock()
	proc.serf = s
	proc.mu.Unlock()
	return provider.Start(proc.ctx, s)
}

// boot is the start of a process in a running cluster: it reads the store, then it joins a process that
// answers and is not downed, and until then it asks again every second.
func (proc *process) boot() error {
	conf, err := proc.prepare()
	if err != nil {
		return err
	}
	for created := false; proc.ctx.Err() == nil; proc.sleep(time.Second) {
		q := proc.acquaintance()
		if q == nil || !proc.gate.pass() {
			continue
		}
		if !created {
			if err := proc.create(conf); err != nil {
				return err
			}
			created = true
		}
		if _, err := proc.serf.Join([]string{q.at()}, true); err == nil {
			return proc.takePart()
		}
	}
	return proc.ctx.Err()
}

func (proc *process) takePart() error {
	proc.mu.Lock()
	proc.joined = true
	proc.mu.Unlock()
	return proc.open()
}

func (proc *process) at() string {
	return proc.Name + "/" + netip.AddrPortFrom(proc.addr, 7946).String()
}

func (proc *process) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-proc.ctx.Done():
	}
}

// acquaintance is a process to join, drawn at random; nil: there is none.
func (proc *process) acquaintance() *process {
	p := proc.p
	verdict := p.store.Snapshot().Record.Verdict
	p.mu.Lock()
	var all []*process
	for _, i := range p.rng.Perm(len(p.nodes)) {
		all = append(all, p.nodes[i].proc)
	}
	p.mu.Unlock()
	for _, q := range all {
		if q == nil || q == proc || !q.up() || q.gate.paused() || !p.top.direct(proc.index, q.index) {
			continue
		}
		if verdict == nil || verdict.Standing(q.id, q.seen) != sbr.Out {
			return q
		}
	}
	return nil
}

// up reports whether the process takes part: it runs, has joined, and was not downed. A paused process is up.
func (proc *process) up() bool {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	return proc.joined && !proc.gone && !proc.downed()
}

// running reports whether there is something to crash.
func (proc *process) running() bool {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	return !proc.gone
}

func (proc *process) downed() bool {
	if proc.provider == nil {
		return false
	}
	select {
	case <-proc.provider.Downed():
		return true
	default:
		return false
	}
}

// wasDowned reports whether the resolver downed the process, before it crashed or left, if it did.
func (proc *process) wasDowned() bool {
	proc.mu.Lock()
	defer proc.mu.Unlock()
	return !proc.gone && proc.downed()
}

// crash ends everything that others can notice of the process at once. What is left of it is taken down in
// peace.
func (proc *process) crash() {
	proc.mu.Lock()
	was := proc.gone || proc.downed()
	proc.gone = proc.gone || !was
	socket := proc.socket
	proc.mu.Unlock()
	if !was {
		proc.p.moved = proc.p.now()
	}
	if socket != nil {
		_ = socket.Shutdown()
	}
	proc.gate.kill()
	proc.kill()
	proc.p.background.Go(func() { proc.p.report(proc.bury()) })
}

// bury takes down what runs of the process.
func (proc *process) bury() error {
	proc.mu.Lock()
	s, provider := proc.serf, proc.provider
	proc.mu.Unlock()
	if s != nil {
		_ = s.Shutdown()
	}
	if provider == nil {
		return nil
	}
	ended, end := context.WithCancel(context.Background())
	end()
	proc.closeManagers(ended)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := provider.Stop(ctx); err != nil {
		return fmt.Errorf("%s: %w", proc.Name, err)
	}
	return nil
}

// pause stops the process for d.
func (proc *process) pause(d time.Duration) error {
	if !proc.running() || !proc.gate.pause() {
		return nil
	}
	if proc.socket != nil {
		if err := proc.p.net.Freeze(proc.Name); err != nil {
			proc.gate.resume()
			return nil // its process has ended already
		}
	}
	proc.p.after(d, func() error {
		if !proc.gate.paused() {
			return nil // it has crashed
		}
		proc.gate.resume()
		return proc.p.net.Thaw(proc.Name)
	})
	return nil
}

// leave makes the process leave the cluster in good order, as an application does that ends.
func (proc *process) leave() {
	if !proc.up() || proc.gate.paused() {
		return
	}
	proc.p.background.Go(func() {
		ctx, cancel := context.WithTimeout(proc.ctx, handOverWithin)
		defer cancel()
		proc.closeManagers(ctx)
		proc.mu.Lock()
		proc.gone = true
		proc.mu.Unlock()
		defer func() { _ = recover() }() // Serf's own, if the node crashes while it leaves
		if err := proc.serf.Leave(); err != nil {
			proc.p.report(fmt.Errorf("%s: leave: %w", proc.Name, err))
		}
		proc.p.report(proc.bury())
	})
}

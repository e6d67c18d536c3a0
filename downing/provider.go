package downing

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/serf/serf"
)

// Errors of a Provider.
var (
	// ErrNotPrepared is returned by Start when Prepare was not called, or not for this node.
	ErrNotPrepared = errors.New("downing: Prepare must be called with the serf.Config before serf.Create")
	// ErrStarted is returned by Prepare and Start when they are called a second time.
	ErrStarted = errors.New("downing: a provider serves one node, once")
	// ErrLease is returned by Prepare and Beside when the lease cannot be opened: its configuration is wrong,
	// or what that names (a kubeconfig, say) cannot be read. They may be called again.
	ErrLease = errors.New("downing: the lease cannot be used")
	// ErrUnknownProvider is wrapped by the error of New when Config.Provider names no provider.
	ErrUnknownProvider = errors.New("downing: unknown downing provider")
	// ErrDownRefused is returned by Down when nothing was decided, and nothing will be by that call.
	ErrDownRefused = errors.New("downing: refused")
)

// Provider protects one Serf node; the package comment says in which order it is attached. All methods are
// safe for concurrent use.
type Provider struct {
	cfg    Config
	engine *engine // nil: NoDowning
	life   *lifecycle
}

// The values of Config.Provider.
const (
	SplitBrainResolver = "split-brain-resolver"
	NoDowning          = "none"
)

// New returns the provider that cfg.Provider names. Errors: ErrUnknownProvider, and everything
// Config.Validate finds.
func New(cfg Config) (*Provider, error) {
	p := &Provider{cfg: cfg, life: newLifecycle(&cfg)}
	switch cfg.Provider {
	case NoDowning:
		return p, nil
	case SplitBrainResolver:
		var err error
		if p.engine, err = newEngine(cfg, p.life); err != nil {
			return nil, fmt.Errorf("downing: %w", err)
		}
		return p, nil
	default:
		return nil, fmt.Errorf("%w %q: known are %s, %s", ErrUnknownProvider, cfg.Provider, NoDowning, SplitBrainResolver)
	}
}

// Config returns the configuration that the provider was made with.
func (p *Provider) Config() Config { return p.cfg }

// Prepare makes conf ready: it adds the tags that tell incarnations apart, taps the event channel (the
// application's own EventCh still gets every event, and a slow reader no longer blocks Serf) and chains a
// merge delegate that keeps downed incarnations out. With a lease it first reads the store and tries its
// rights, retrying until ctx ends: a member that does not know the last verdict must not join, and one that
// may not write cannot win. Meanwhile Status says what it waits for, and OnSuspend was called. Do not use
// conf for anything else than the serf.Create that follows.
func (p *Provider) Prepare(ctx context.Context, conf *serf.Config) error {
	if p.engine == nil {
		return nil
	}
	return p.engine.enter(ctx, stageNew, stagePrepared, func(ctx context.Context) error { return p.engine.prepare(ctx, conf) })
}

// Start watches the node until it is downed, leaves, or Stop is called. ctx bounds the start alone.
func (p *Provider) Start(ctx context.Context, s *serf.Serf) error {
	if p.engine == nil {
		return nil
	}
	return p.engine.enter(ctx, stagePrepared, stageStarted, func(ctx context.Context) error { return p.engine.start(ctx, s) })
}

// Beside protects a node that runs already in another process: it does what Prepare and Start do, without a
// serf.Config. prober makes the members probe each other, as Serf itself cannot be asked to from outside; nil
// leaves detection to Serf. ctx bounds the start, which takes as long as agent and lease are not to be had.
// If the agent's tags name an incarnation, this process continues it, unless Config.Memory knows that it has
// ended.
//
// There is no merge delegate beside an agent: a downed incarnation can come back into Serf's list. It is told
// its fate and is no member for the resolver. While the agent does not answer this member is suspended and
// decides nothing; after Config.AgentTimeout it goes down.
//
// Errors: ErrStarted, those of the agent and of the lease.
func (p *Provider) Beside(ctx context.Context, agent Agent, prober Prober) error {
	if p.engine == nil {
		return nil
	}
	return p.engine.enter(ctx, stageNew, stageStarted, func(ctx context.Context) error {
		return p.engine.startBeside(ctx, agent, prober)
	})
}

// Stop ends watching and waits for everything that was started, at most until ctx ends. The node itself stays
// as it is: without its provider it is unprotected, so leave the cluster first. Call it also if serf.Create
// or Start fails. It may be called at any time and any number of times.
func (p *Provider) Stop(ctx context.Context) error {
	if p.engine == nil {
		return nil
	}
	return p.engine.stop(ctx)
}

// Downed is closed the moment this member is downed, before the callbacks run and before Serf leaves.
func (p *Provider) Downed() <-chan struct{} { return p.life.downed }

// Left is closed when the node has left its cluster without having been downed: the application or an
// operator made it leave.
func (p *Provider) Left() <-chan struct{} { return p.life.left }

// Done is closed after Downed once the callbacks have run, the side has been told and Serf has shut down, or
// Grace is over.
func (p *Provider) Done() <-chan struct{} { return p.life.done }

// Reason is the sentence that says why this member was downed; empty before.
func (p *Provider) Reason() string { return p.life.downReason() }

// OnSuspend adds a callback for the first sign of a partition: the application may stop taking new work.
// Callbacks run one at a time, in order, on a goroutine of their own. A panic in one is logged. None of
// OnSuspend and OnResume begins once the member is down: nothing may resume work then.
func (p *Provider) OnSuspend(f func(reason string)) { p.life.add(&p.life.onSuspend, f) }

// OnResume adds a callback for the end of a suspension.
func (p *Provider) OnResume(f func(reason string)) { p.life.add(&p.life.onResume, f) }

// OnDown adds a callback for the downing of this member. It runs after Downed is closed, on a goroutine of
// its own; one that hangs is left behind when Grace is over. If the member is down already f is called at
// once.
func (p *Provider) OnDown(f func(reason string)) { p.life.addDown(f) }

// Status tells what this member sees, in the form of the agent's status page.
func (p *Provider) Status() Status {
	if p.engine == nil {
		return Status{State: "none"}
	}
	return p.engine.shown()
}

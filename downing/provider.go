package downing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
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
	// ErrDownRefused is returned by Down when nothing was decided, and nothing will be by that call.
	ErrDownRefused = errors.New("downing: refused")
)

// Provider protects one Serf node; the package comment says in which order it is attached. All methods are
// safe for concurrent use.
type Provider struct {
	cfg    Config
	engine driver
	life   *lifecycle
}

// The downing providers.
const (
	SplitBrainResolver = "split-brain-resolver"
	NoDowning          = "none" // it downs no member
)

// New returns the provider that cfg.Provider names. Errors: an unknown one, and everything Config.Validate
// finds.
func New(cfg Config) (*Provider, error) {
	cfg.Resolver = cfg.rules(nil)
	p := &Provider{cfg: cfg, life: newLifecycle(&cfg)}
	switch cfg.Provider {
	case SplitBrainResolver:
		e, err := newEngine(cfg, p.life)
		if err != nil {
			return nil, fmt.Errorf("downing: %w", err)
		}
		p.engine = e
	case NoDowning:
		p.engine = inert{}
	default:
		return nil, fmt.Errorf("downing: unknown downing provider %q: known are %s and %s",
			cfg.Provider, NoDowning, SplitBrainResolver)
	}
	return p, nil
}

// driver is what a downing provider does. Its methods are those of Provider.
type driver interface {
	Prepare(ctx context.Context, conf *serf.Config) error
	Start(ctx context.Context, s *serf.Serf) error
	Beside(ctx context.Context, agent Agent, p Prober) error
	Down(ctx context.Context, name, reason string) error
	Stop(ctx context.Context) error
	Status() Status
	Peers() Peers
	Offer(ctx context.Context, topic string, on bool) error
	Serve(topic string, f func(Question)) (stop func(), err error)
	Ask(topic string, to sbr.ID, payload []byte, timeout time.Duration) (<-chan Answer, error)
}

// Config returns the configuration that the provider was made with.
func (p *Provider) Config() Config { return p.cfg }

// Prepare makes conf ready: it adds the tags that tell incarnations apart, taps the event channel (the
// application's own EventCh still gets every event, and a slow reader no longer blocks Serf) and chains a
// merge delegate that keeps downed incarnations out. With a lease it first reads the store and tries its
// rights, retrying until ctx ends: a member that does not know the last verdict must not join, and a member
// without the right to write cannot win. Meanwhile Status says what it waits for, and OnSuspend was called.
// Do not use conf for anything else than the serf.Create that follows.
func (p *Provider) Prepare(ctx context.Context, conf *serf.Config) error {
	return p.engine.Prepare(ctx, conf)
}

// Start watches the node until it is downed, leaves, or Stop is called. ctx bounds the start alone.
func (p *Provider) Start(ctx context.Context, s *serf.Serf) error { return p.engine.Start(ctx, s) }

// Beside protects a node that runs already in another process: it does what Prepare and Start do, without a
// serf.Config. p makes the members probe each other, as Serf itself cannot be asked to from outside; nil
// leaves detection to Serf. ctx bounds the start, which takes as long as agent and lease are not to be had.
// An incarnation that the agent's tags name is gone on with, unless Config.Memory knows that it is over.
//
// There is no merge delegate beside an agent: a downed incarnation can come back into Serf's list. It
// receives the decision and is no member for the resolver. While the agent does not answer this member is
// suspended and decides nothing; after Config.AgentTimeout it goes down.
//
// Errors: ErrStarted, those of the agent, of the lease and of the state file. After an error the agent may be
// closed: the next try needs a new one.
func (p *Provider) Beside(ctx context.Context, agent Agent, prober Prober) error {
	return p.engine.Beside(ctx, agent, prober)
}

// Down downs a member for an operator: the member gets the decision, goes down with ExitDowned as by any
// decision, and is removed. name is its node name, or its incarnation. With a lease it is a verdict, so this
// member asks the lease for it; without one it is an order, which only the first member of a side can give.
// reason stands in the verdict and may be empty. A member that can be reached is better asked to leave.
//
// Down returns nil once it is decided. It returns ErrDownRefused when it is not: the member is this one,
// unknown or down already, another member cannot be reached and nothing is decided about it, or this member
// is in no state to decide. With any other error, that of ctx included, nothing is known: the member may have
// been downed, or will be. ctx does not take the request back.
func (p *Provider) Down(ctx context.Context, name, reason string) error {
	return p.engine.Down(ctx, name, reason)
}

// Stop ends watching and waits for everything that was started, at most until ctx ends. The node itself stays
// as it is: without its provider it is unprotected, so leave the cluster first. Call it also if serf.Create
// or Start fails. It may be called at any time and any number of times.
func (p *Provider) Stop(ctx context.Context) error { return p.engine.Stop(ctx) }

// Downed is closed the moment this member is downed, before the callbacks run and before Serf leaves.
func (p *Provider) Downed() <-chan struct{} { return p.life.downed }

// Left is closed when the node has left its cluster without having been downed: the application or an
// operator made it leave. An embedded node has once its Serf was shut down after that.
func (p *Provider) Left() <-chan struct{} { return p.life.left }

// Done is closed after Downed once the callbacks have run, the side has the decision and Serf has shut down,
// or Grace is over.
func (p *Provider) Done() <-chan struct{} { return p.life.done }

// Reason is the sentence that says why this member was downed; empty before.
func (p *Provider) Reason() string { return p.life.Reason() }

// OnSuspend adds a callback for the first sign of a partition: the application may stop taking new work.
// Callbacks run one at a time, in order, on a goroutine of their own. A panic in one is logged. None of
// OnSuspend and OnResume begins once the member is down: nothing may resume work then.
func (p *Provider) OnSuspend(f func(reason string)) { p.life.add(&p.life.onSuspend, f) }

// OnResume adds a callback for the end of a suspension.
func (p *Provider) OnResume(f func(reason string)) { p.life.add(&p.life.onResume, f) }

// OnDown adds a callback for the downing of this member. It runs after Downed is closed, on a goroutine of
// its own; a callback that hangs is left behind when Grace is over. If the member is down already f is called
// at once.
func (p *Provider) OnDown(f func(reason string)) { p.life.addDown(f) }

// Status returns what this member sees, in the form of the agent's status page.
func (p *Provider) Status() Status { return p.engine.Status() }

// inert is the provider "none": it downs no member.
type inert struct{}

func (inert) Prepare(context.Context, *serf.Config) error { return nil }
func (inert) Start(context.Context, *serf.Serf) error     { return nil }
func (inert) Beside(context.Context, Agent, Prober) error { return nil }
func (inert) Down(context.Context, string, string) error {
	return refused("the downing provider none decides nothing")
}
func (inert) Peers() Peers                                 { return Peers{} }
func (inert) Offer(context.Context, string, bool) error    { return ErrNoPeers }
func (inert) Serve(string, func(Question)) (func(), error) { return nil, ErrNoPeers }
func (inert) Ask(string, sbr.ID, []byte, time.Duration) (<-chan Answer, error) {
	return nil, ErrNoPeers
}
func (inert) Stop(context.Context) error { return nil }
func (inert) Status() Status             { return Status{State: "none"} }

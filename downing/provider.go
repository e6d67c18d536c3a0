package downing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

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
	// ErrNotBeside is returned by Beside when the downing provider works in the process of its node alone.
	ErrNotBeside = errors.New("downing: this downing provider cannot work beside a Serf agent: embed it, or use split-brain-resolver")
	// ErrDownRefused is returned by Down when nothing was decided, and nothing will be by that call.
	ErrDownRefused = errors.New("downing: refused")
)

// Provider protects one Serf node; the package comment says in which order it is attached. All methods are
// safe for concurrent use.
type Provider struct {
	cfg    Config
	engine Engine
	life   *Lifecycle
}

// New returns the provider that cfg.Provider names. Errors: ErrUnknownProvider, and everything
// Config.Validate finds.
func New(cfg Config) (*Provider, error) {
	factory, err := lookUp(cfg.Provider)
	if err != nil {
		return nil, err
	}
	cfg.Resolver = cfg.rules(nil)
	life := newLifecycle(&cfg)
	engine, err := factory(cfg, life)
	if err != nil {
		return nil, fmt.Errorf("downing: %w", err)
	}
	if engine == nil {
		return nil, fmt.Errorf("downing: the factory of provider %q made no engine", cfg.Provider)
	}
	return &Provider{cfg: cfg, engine: engine, life: life}, nil
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
// Errors: ErrNotBeside for a downing provider that cannot do it, ErrStarted, those of the agent and of the
// lease.
func (p *Provider) Beside(ctx context.Context, agent Agent, prober Prober) error {
	b, ok := p.engine.(besider)
	if !ok {
		return ErrNotBeside
	}
	return b.Beside(ctx, agent, prober)
}

// besider is an Engine that also works for a node in another process.
type besider interface {
	Beside(ctx context.Context, agent Agent, p Prober) error
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
	d, ok := p.engine.(downer)
	if !ok {
		return fmt.Errorf("%w: the downing provider %q decides nothing", ErrDownRefused, p.cfg.Provider)
	}
	return d.Down(ctx, name, reason)
}

// downer is an Engine that takes an operator's request.
type downer interface {
	Down(ctx context.Context, name, reason string) error
}

// Stop ends watching and waits for everything that was started, at most until ctx ends. The node itself stays
// as it is: without its provider it is unprotected, so leave the cluster first. Call it also if serf.Create
// or Start fails. It may be called at any time and any number of times.
func (p *Provider) Stop(ctx context.Context) error { return p.engine.Stop(ctx) }

// Downed is closed the moment this member is downed, before the callbacks run and before Serf leaves.
func (p *Provider) Downed() <-chan struct{} { return p.life.downed }

// Left is closed when the node has left its cluster without having been downed: the application or an
// operator made it leave.
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

// The keys of the built-in downing providers.
const (
	SplitBrainResolver = "split-brain-resolver"
	NoDowning          = "none"
)

// ErrUnknownProvider is wrapped by the error of New when Config.Provider names no registered provider.
var ErrUnknownProvider = errors.New("downing: unknown downing provider")

// Engine is the working part of a downing provider. Its methods are called in the order Prepare, Start, Stop.
type Engine interface {
	// Prepare changes the configuration of a node that does not exist yet.
	Prepare(ctx context.Context, conf *serf.Config) error
	// Start begins to watch the node.
	Start(ctx context.Context, s *serf.Serf) error
	// Stop ends watching and waits until nothing runs any more. The node stays as it is.
	Stop(ctx context.Context) error
	// Status returns what the engine sees. It is safe for concurrent use.
	Status() Status
}

// Factory makes the engine of one member. The engine reports the member's state through life.
type Factory func(cfg Config, life *Lifecycle) (Engine, error)

// factories are those of the registered providers, by their keys.
var factories sync.Map

func init() {
	Register(SplitBrainResolver, newResolverEngine)
	Register(NoDowning, func(Config, *Lifecycle) (Engine, error) { return inert{}, nil })
}

// Register makes a downing provider known under a key. It panics on an empty key, a nil factory and a key
// that is taken: all three are programming errors. It is meant for init functions.
func Register(key string, f Factory) {
	if key == "" || f == nil {
		panic("downing: Register needs a key and a factory")
	}
	if _, taken := factories.LoadOrStore(key, f); taken {
		panic("downing: provider " + key + " is registered twice")
	}
}

func lookUp(key string) (Factory, error) {
	if f, ok := factories.Load(key); ok {
		return f.(Factory), nil
	}
	var known []string
	for k := range factories.Range {
		known = append(known, k.(string))
	}
	slices.Sort(known)
	return nil, fmt.Errorf("%w %q: known are %s", ErrUnknownProvider, key, strings.Join(known, ", "))
}

// inert is the provider "none": it downs no member.
type inert struct{}

func (inert) Prepare(context.Context, *serf.Config) error { return nil }
func (inert) Start(context.Context, *serf.Serf) error     { return nil }
func (inert) Beside(context.Context, Agent, Prober) error { return nil }
func (inert) Stop(context.Context) error                  { return nil }
func (inert) Status() Status                              { return Status{State: "none"} }

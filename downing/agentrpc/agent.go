package agentrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/serf/client"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
)

// Errors of an Agent, besides those of downing that say why it does not answer.
var (
	// ErrNotCurrent is returned when something needs the agent's member list and the agent does not answer.
	ErrNotCurrent = errors.New("the Serf agent does not answer")
	// ErrBusy is returned when answers to queries are produced faster than the agent takes them.
	ErrBusy = errors.New("too many answers are waiting for the Serf agent")
)

// Options say how an agent is reached. Start from DefaultOptions.
type Options struct {
	// Addr is the agent's RPC address, host:port.
	Addr string
	// AuthKey is the agent's rpc_auth; empty if it has none.
	AuthKey string
	// Timeout bounds each request that an agent answers at once; an agent that does not is silent.
	Timeout time.Duration
	// Interval is the time between two readings of the members, events or not.
	Interval time.Duration
	// Logger takes the log lines. Nil: slog.Default().
	Logger *slog.Logger
}

// DefaultOptions are those of a local agent: its silence is noticed within 2 s.
func DefaultOptions() Options {
	return Options{Addr: "127.0.0.1:7373", Timeout: 1500 * time.Millisecond, Interval: 500 * time.Millisecond}
}

// Validate reports every problem at once.
func (o *Options) Validate() error {
	var errs []error
	if _, port, err := net.SplitHostPort(o.Addr); err != nil || port == "" {
		errs = append(errs, fmt.Errorf("agentrpc: the RPC address is %q: give host:port, as in 127.0.0.1:7373",
			o.Addr))
	}
	if o.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("agentrpc: Timeout is %v: it must be more than 0s", o.Timeout))
	}
	if o.Interval <= 0 {
		errs = append(errs, fmt.Errorf("agentrpc: Interval is %v: it must be more than 0s", o.Interval))
	}
	return errors.Join(errs...)
}

// Agent is a stock Serf agent, reached over RPC. It implements downing.Agent.
type Agent struct {
	opts   Options
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	closing sync.Mutex // guards the end of work
	closed  bool
	work    sync.WaitGroup

	telling sync.Mutex // events are told one at a time
	events  downing.AgentEvents

	roster roster
	soon   chan struct{}    // the members should be read
	lines  map[string]*line // by name of the queries; never changed

	tagging chan struct{} // admits one Tag at a time
}

var _ downing.Agent = (*Agent)(nil)

// New returns an agent that is not connected yet. Errors: all that Options.Validate finds.
func New(o Options) (*Agent, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	a := &Agent{
		opts: o, log: cmp.Or(o.Logger, slog.Default()), lines: lines(),
		soon: make(chan struct{}, 1), tagging: make(chan struct{}, 1),
	}
	a.roster.why, a.roster.lost = downing.ErrAgentSilent, make(map[string]serf.Member)
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// Open implements downing.Agent. Errors: downing.ErrAgentAuth, which is not tried again, and when ctx ends
// that and what went wrong last.
func (a *Agent) Open(ctx context.Context, events downing.AgentEvents) (serf.Member, error) {
	a.events = events
	ctx, cancel := a.unlessClosed(ctx)
	defer cancel()
	l, lines, err := a.openAll(ctx)
	if err != nil {
		return serf.Member{}, fmt.Errorf("the Serf agent at %s: %w", a.opts.Addr, err)
	}
	list, _, _ := a.roster.members()
	self, _ := find(list, a.roster.self)
	a.spawn(func() { a.followRoster(l) })
	for _, m := range lines {
		a.spawn(func() { a.followMessages(m) })
	}
	return self, nil
}

func (a *Agent) openAll(ctx context.Context) (*link, []*messages, error) {
	pause, said := pauses(), ""
	for {
		l, lines, err := a.tryAll(ctx)
		if err == nil {
			return l, lines, nil
		}
		if errors.Is(err, downing.ErrAgentAuth) {
			return nil, nil, err
		}
		if err.Error() != said {
			a.log.Info("sbr: waiting for the Serf agent", "addr", a.opts.Addr, "error", err)
			said = err.Error()
		}
		if sleep.For(ctx, pause.NextBackOff()) != nil {
			return nil, nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// tryAll opens all connections, or none.
func (a *Agent) tryAll(ctx context.Context) (*link, []*messages, error) {
	l, err := a.openRoster(ctx)
	if err != nil {
		return nil, nil, err
	}
	var opened []*messages
	for _, to := range a.lines {
		m, err := a.openMessages(ctx, to)
		if err != nil {
			l.close()
			for _, m := range opened {
				m.line.now.Store(nil)
				m.link.close()
			}
			return nil, nil, err
		}
		opened = append(opened, m)
	}
	return l, opened, nil
}

// Close implements downing.Agent.
func (a *Agent) Close() {
	a.closing.Lock()
	a.closed = true
	a.closing.Unlock()
	a.cancel()
	a.work.Wait()
}

// spawn runs f until it is done; Close waits for it. After Close f still runs, because it owns what it must
// close.
func (a *Agent) spawn(f func()) {
	a.closing.Lock()
	defer a.closing.Unlock()
	if a.closed {
		go f() // ctx has ended, and so does f at once
		return
	}
	a.work.Go(f)
}

// unlessClosed returns a ctx that ends with Close as well.
func (a *Agent) unlessClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(a.ctx, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}

// pauses are those between two attempts to connect.
func pauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.Multiplier, b.MaxInterval = 50*time.Millisecond, 2, time.Second
	return b
}

func (a *Agent) changed() {
	if a.events.Changed != nil {
		a.telling.Lock()
		defer a.telling.Unlock()
		a.events.Changed()
	}
}

// readSoon makes the roster read the members at once.
func (a *Agent) readSoon() {
	select {
	case a.soon <- struct{}{}:
	default:
	}
}

// openRoster connects and makes Members current.
func (a *Agent) openRoster(ctx context.Context) (l *link, err error) {
	defer func() {
		if err != nil {
			a.roster.blind(err)
		}
	}()
	if l, err = dial(ctx, &a.opts); err != nil {
		return nil, err
	}
	if err = a.resynchronise(ctx, l); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// resynchronise begins anew with an agent that may be another process than before.
func (a *Agent) resynchronise(ctx context.Context, l *link) error {
	name, err := a.nodeName(ctx, l)
	if err != nil {
		return err
	}
	if a.roster.self != "" && name != a.roster.self {
		return fmt.Errorf("it is the agent of node %s now, and was that of %s: restart sbr, which serves one node",
			name, a.roster.self)
	}
	asked := time.Now()
	list, err := a.readMembers(ctx, l)
	if err != nil {
		return err
	}
	if _, ok := find(list, name); !ok {
		return fmt.Errorf("it does not list its own node %s", name)
	}
	if a.roster.self == "" {
		a.roster.self = name
	}
	if a.roster.read(list, asked, true) {
		a.changed()
	}
	return nil
}

func (a *Agent) nodeName(ctx context.Context, l *link) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	var stats map[string]map[string]string
	err := l.do(ctx, func(c *client.RPCClient) (err error) {
		stats, err = c.Stats()
		return err
	})
	if name := stats["agent"]["name"]; err != nil || name != "" {
		return name, err
	}
	return "", errors.New("it does not tell the name of its node: what answers there is no Serf agent")
}

func (a *Agent) readMembers(ctx context.Context, l *link) ([]serf.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	var list []client.Member
	err := l.do(ctx, func(c *client.RPCClient) (err error) {
		list, err = c.Members()
		return err
	})
	return membersOf(list), err
}

// followRoster reads the members again and again, and connects again when that fails.
func (a *Agent) followRoster(l *link) {
	for l != nil {
		err := a.poll(l)
		l.close()
		if a.ctx.Err() != nil {
			return
		}
		// downing says so
		a.log.Debug("sbr: the Serf agent does not answer, connecting again", "addr", a.opts.Addr, "error", err)
		if a.roster.blind(err) {
			a.changed()
		}
		for _, to := range a.lines {
			if m := to.now.Load(); m != nil {
				m.link.cut(err) // it may be half dead, too, and not know it
			}
		}
		since := time.Now()
		if l = retry(a, "members", a.openRoster); l != nil {
			a.log.Debug("sbr: connected to the Serf agent again", "after", time.Since(since).Round(time.Millisecond))
		}
	}
}

// retry opens something until that succeeds, or Close is called.
func retry[T any](a *Agent, what string, open func(context.Context) (*T, error)) *T {
	pause := pauses()
	var said string
	for sleep.For(a.ctx, pause.NextBackOff()) == nil {
		x, err := open(a.ctx)
		if err == nil {
			return x
		}
		if text := err.Error(); text != said && a.ctx.Err() == nil {
			said = text
			level := slog.LevelWarn
			if _, _, silence := a.Members(); silence != nil {
				level = slog.LevelDebug // this member says itself that the agent does not answer
			}
			a.log.Log(a.ctx, level, "sbr: cannot connect to the Serf agent", "addr", a.opts.Addr, "for", what,
				"error", err)
		}
	}
	return nil
}

// restBetween bounds how often events make the members be read.
const restBetween = 50 * time.Millisecond

// poll returns when the agent does not answer.
func (a *Agent) poll(l *link) error {
	timer := time.NewTimer(a.opts.Interval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-a.soon:
		case <-a.ctx.Done():
			return a.ctx.Err()
		}
		asked := time.Now()
		list, err := a.readMembers(a.ctx, l)
		if err != nil {
			return err
		}
		if _, ok := find(list, a.roster.self); !ok {
			return fmt.Errorf("it does not list its own node %s any more", a.roster.self)
		}
		if a.roster.read(list, asked, false) {
			a.changed()
		}
		rest := min(restBetween, a.opts.Interval)
		if sleep.For(a.ctx, rest) != nil {
			return a.ctx.Err()
		}
		timer.Reset(a.opts.Interval - rest)
	}
}

// Members implements downing.Agent.
func (a *Agent) Members() (list []serf.Member, asked time.Time, silence error) {
	return a.roster.members()
}

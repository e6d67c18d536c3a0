package downing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// engine drives one sbr.Resolver over one Serf node. Everything that touches the resolver runs on one goroutine, the loop;
// whatever may block runs elsewhere and posts its result to the loop.
type engine struct {
	cfg      Config
	life     *Lifecycle
	log      *slog.Logger
	strategy sbr.Strategy
	lease    *lease.Lease // nil without a lease
	opened   lease.Store  // the store that was opened here, not given
	metrics  *metrics
	digest   string

	self   sbr.Member
	tags   map[string]string // those of this member that are ours
	origin time.Time
	node   *node
	tap    *tap
	// firstEventIn is how long a node's first event may take until it is here.
	firstEventIn time.Duration
	keepOut      *keepOut

	inbox   inbox
	looking atomic.Bool // a look at the membership is in the inbox
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
	tells   sync.WaitGroup
	looped  chan struct{}

	// For the watchdog.
	beats   atomic.Int64 // progress of the loop
	pausing atomic.Bool  // the loop is in Config.Pause
	halted  atomic.Bool  // the loop was stuck and must do nothing more

	// Owned by the loop.
	resolver    *sbr.Resolver
	members     *membership
	tracker     *reachability.Tracker
	reports     []sbr.Report
	spreading   map[sbr.ID]struct{}
	rounds      int
	nextPoll    time.Duration
	nextProbe   time.Duration
	nextJoin    time.Duration
	probing     bool
	lastWarning string
	gossip      *memberlist.Config
	sawDigests  map[string]struct{}
	removing    map[sbr.ID]struct{}
	tagging     bool
	leaving     bool
	ended       bool

	// phase admits one of Prepare, Start and Stop at a time. It is a channel so that waiting for it can be given up.
	phase chan struct{}

	mu      sync.Mutex
	state   stage
	running bool // the loop was started
	status  Status
}

type stage uint8

const (
	stageNew stage = iota
	stagePrepared
	stageStarted
	stageStopped
)

func newResolverEngine(cfg Config, life *Lifecycle) (Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	strategy, err := strategies.New(cfg.Strategy, cfg.Strategies)
	if err != nil {
		return nil, err
	}
	cfg.Resolver.LeaseTimeout = cfg.Lease.OperationTimeout
	cfg.Resolver.HolderRetry = cfg.Lease.Interval()
	if cfg.Resolver.LeaseDeadline <= cfg.Resolver.LeaseTimeout {
		cfg.Resolver.LeaseDeadline = 3 * cfg.Resolver.LeaseTimeout
	}
	m, err := newMetrics(cfg.Meter)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	e := &engine{cfg: cfg, life: life, log: cfg.logger(), strategy: strategy, metrics: m, digest: cfg.Digest(), inbox: newInbox(), looped: make(chan struct{}), sawDigests: make(map[string]struct{}), spreading: make(map[sbr.ID]struct{}), removing: make(map[sbr.ID]struct{}), phase: make(chan struct{}, 1)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Prepare implements Engine.
func (e *engine) Prepare(ctx context.Context, conf *serf.Config) (err error) {
	leave, err := e.enter(ctx, stageNew, stagePrepared)
	if err != nil {
		return err
	}
	defer func() { leave(err) }()
	ctx, cancel := e.unlessStopped(ctx)
	defer cancel()
	if err := checkSerf(conf, e.log); err != nil {
		return err
	}
	uid := newUID()
	e.self = sbr.Member{ID: incarnation(conf.NodeName, uid), Name: conf.NodeName, Born: born(time.Now())}
	e.keepOut = &keepOut{next: conf.Merge, refused: e.onRefused}
	e.keepOut.list.Store(&denyList{self: e.self.ID})
	e.gossip = conf.MemberlistConfig
	if sbr.NeedsLease(e.strategy) {
		if err := e.openLease(ctx); err != nil {
			return err
		}
	}
	e.tags = map[string]string{TagUID: uid, TagBorn: format36(e.self.Born), TagSeen: format36(int64(e.self.Seen)), TagConfig: e.digest}
	conf.Tags = withTags(conf.Tags, e.tags)
	conf.Merge = e.keepOut
	e.firstEventIn = conf.CoalescePeriod + conf.QuiescentPeriod + 5*time.Second
	e.tap = newTap(conf.EventCh, e.onSerfEvent)
	conf.EventCh = e.tap.in
	roomForQueries(conf)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = Status{System: e.cfg.System, Member: e.self.Name, Incarnation: string(e.self.ID), State: sbr.StateArming, Members: []MemberStatus{},
		Unreachable: []string{}, Lease: LeaseStatus{Name: e.cfg.leaseName()}, ConfigDigest: e.digest, Version: Version()}
	return nil
}

// enter admits the caller to a phase. leave ends the phase; after an error it can be entered again.
func (e *engine) enter(ctx context.Context, from, to stage) (leave func(error), err error) {
	select {
	case e.phase <- struct{}{}:
	default:
		select {
		case e.phase <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == from:
		e.state = to
		return func(err error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			if err != nil && e.state == to {
				e.state = from
			}
			<-e.phase
		}, nil
	case e.state < from:
		err = ErrNotPrepared
	default:
		err = ErrStarted
	}
	<-e.phase
	return nil, err
}

// unlessStopped returns a ctx that ends with Stop as well.
func (e *engine) unlessStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(e.ctx, cancel)
	return ctx, func() {
		unhook()
		cancel()
	}
}

// openLease makes the lease of this incarnation and reads it once: a member that does not know the last verdict must not join.
func (e *engine) openLease(ctx context.Context) error {
	if e.cfg.Store == nil {
		store, err := lease.Open(ctx, e.cfg.LeaseImplementation, lease.Spec{
			System: e.cfg.System, Name: e.cfg.leaseName(), Owner: string(e.self.ID), Settings: e.cfg.Lease, Logger: e.log, Decode: e.cfg.LeaseDecode,
		})
		if err != nil {
			return fmt.Errorf("downing: lease %s: %w", e.cfg.leaseName(), err)
		}
		e.cfg.Store, e.opened = store, store
	}
	l, err := lease.New(e.cfg.Store, string(e.self.ID), e.cfg.Lease, lease.Options{Logger: e.log})
	if err != nil {
		return fmt.Errorf("downing: lease %s: %w", e.cfg.leaseName(), err)
	}
	e.lease = l
	rec, err := e.firstRead(ctx)
	if err != nil {
		l.Close()
		e.lease = nil // Prepare may be called again
		return fmt.Errorf("downing: the lease %s must be readable before this node may join: %w", e.cfg.leaseName(), err)
	}
	e.self.Seen = rec.Token
	if rec.Verdict != nil {
		e.keepOut.list.Store(&denyList{self: e.self.ID, verdict: *rec.Verdict})
	}
	e.inbox.post(func() { e.step(sbr.LeaseObserved{Record: recordOf(rec)}) })
	return nil
}

// preflighter is a store that can tell in advance whether everything it needs works.
type preflighter interface {
	Preflight(ctx context.Context) error
}

func (e *engine) firstRead(ctx context.Context) (lease.Record, error) {
	if p, ok := e.cfg.Store.(preflighter); ok {
		bounded, cancel := context.WithTimeout(ctx, 2*e.cfg.Lease.OperationTimeout) // it makes several requests
		err := p.Preflight(bounded)
		cancel()
		if err != nil {
			e.log.Error("sbr: the lease store does not work as it must", "lease", e.cfg.leaseName(), "problems", err)
		}
	}
	var last error
	for {
		rec, err := e.lease.Read(ctx)
		if err == nil {
			return rec, nil
		}
		if ctx.Err() != nil && last != nil {
			return lease.Record{}, fmt.Errorf("%w: %w", ctx.Err(), last) // the last one of the store's own
		}
		last = err
		e.log.Error("sbr: cannot read the lease, trying again", "lease", e.cfg.leaseName(), "error", err)
		retry := time.NewTimer(e.cfg.Resolver.LeaseRetry)
		select {
		case <-ctx.Done():
			retry.Stop()
			return lease.Record{}, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-retry.C:
		}
	}
}

// checkSerf refuses configurations under which the resolver cannot work and warns of those that bite later.
func checkSerf(conf *serf.Config, log *slog.Logger) error {
	switch name := conf.NodeName; {
	case name == "":
		return errors.New("downing: serf.Config.NodeName is empty: set it before Prepare")
	case len(name) > serf.MaxNodeNameLength, !utf8.ValidString(name), strings.HasPrefix(name, untaggedPrefix):
		return fmt.Errorf("downing: serf.Config.NodeName is %q: it must be at most %d bytes of UTF-8 and not begin with %q", name, serf.MaxNodeNameLength, untaggedPrefix)
	case conf.ProtocolVersion < 4:
		return fmt.Errorf("downing: serf.Config.ProtocolVersion is %d: queries need at least 4", conf.ProtocolVersion)
	}
	if conf.CoalescePeriod > 0 {
		log.Info("sbr: event coalescing is on; the resolver reads the member list and is not disturbed by it")
	}
	if conf.EnableNameConflictResolution {
		log.Info("sbr: name conflict resolution is on: a node that comes back under its old name at a new address within the failure window shuts itself down; prefer a name per incarnation")
	}
	return nil
}

// queryOverhead is more than what Serf's queries and relayed answers hold beside the payload and names.
const queryOverhead = 200

// roomForQueries raises Serf's limits where they leave no room for a message and this node's name.
func roomForQueries(conf *serf.Config) {
	conf.QuerySizeLimit = max(conf.QuerySizeLimit, gossip.Limit+queryOverhead+len(conf.NodeName))
	conf.QueryResponseSizeLimit = max(conf.QueryResponseSizeLimit, gossip.Limit+queryOverhead+len(conf.NodeName)+serf.MaxNodeNameLength)
}

// Start implements Engine.
func (e *engine) Start(ctx context.Context, s *serf.Serf) (err error) {
	leave, err := e.enter(ctx, stagePrepared, stageStarted)
	if err != nil {
		return err
	}
	defer func() { leave(err) }()
	ctx, cancel := e.unlessStopped(ctx)
	defer cancel()
	if err := e.attach(ctx, s); err != nil {
		return err
	}
	e.origin = time.Now()
	r, err := sbr.New(e.cfg.Resolver, e.strategy, e.self, 0)
	if err != nil {
		return err
	}
	e.resolver = r
	e.members = newMembership(e.self.ID)
	e.tracker = reachability.New(e.cfg.Probe, e.self.ID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == stageStopped {
		return ErrStarted
	}
	e.running = true
	e.inbox.post(e.poll)
	if e.lease != nil && !e.cfg.NoWatch {
		e.spawn(&e.workers, e.watch)
	}
	e.workers.Go(e.watchdog)
	go e.loop()
	return nil
}

// attach finds out whether s is the node that was prepared, and whether everything that Prepare put into its configuration works:
// a node whose tags, events or merges pass this engine by is not protected.
func (e *engine) attach(ctx context.Context, s *serf.Serf) error {
	if s == nil || !slices.ContainsFunc(s.Members(), func(m serf.Member) bool { return idOf(&m) == e.self.ID }) {
		return fmt.Errorf("%w: no member of this node has the tags of the incarnation %s", ErrNotPrepared, e.self.ID)
	}
	e.node = newNode(s)
	if !e.keepOut.created.Load() {
		return fmt.Errorf("%w, and serf.Config.Merge must not be replaced after it", ErrNotPrepared)
	}
	late := time.NewTimer(e.firstEventIn)
	defer late.Stop()
	select {
	case <-e.tap.first: // a node's own join is its first event
		return ctx.Err()
	case <-s.ShutdownCh():
		return nil // the loop sees to that
	case <-late.C:
		return fmt.Errorf("%w, and serf.Config.EventCh must not be replaced after it", ErrNotPrepared)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop implements Engine.
func (e *engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	e.state = stageStopped
	if !e.running {
		e.cancel() // ends a Prepare or Start that is waiting
	}
	e.mu.Unlock()
	select {
	case e.phase <- struct{}{}:
		defer func() { <-e.phase }()
	case <-ctx.Done():
		return fmt.Errorf("downing: still stopping: %w", ctx.Err())
	}
	if e.isRunning() {
		e.inbox.post(func() { e.step(sbr.Left{}) })
		e.inbox.post(func() { e.ended = true })
	}
	return e.release(ctx)
}

func (e *engine) isRunning() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}

// release ends every goroutine of the engine.
func (e *engine) release(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if e.isRunning() {
			<-e.looped // until then the loop may start more
		}
		e.tells.Wait()
		e.cancel()
		e.workers.Wait()
		if e.lease != nil {
			e.lease.Close()
			if c, ok := e.opened.(io.Closer); ok {
				_ = c.Close() // nothing waits for it any more
			}
		}
		e.closeTap()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		e.cancel()
		return fmt.Errorf("downing: still stopping: %w", ctx.Err())
	}
}

// closeTap ends the tap once Serf is shut down: a living Serf would freeze on a channel that nobody reads.
func (e *engine) closeTap() {
	switch {
	case e.tap == nil:
	case e.node == nil && e.keepOut.created.Load():
		// Serf was created but never given to Start, so nobody can tell whether it lives: better one goroutine too many.
	case e.node == nil || e.node.isShutdown():
		e.tap.close()
	default:
		go func() {
			<-e.node.shutdown
			e.tap.close()
		}()
	}
}

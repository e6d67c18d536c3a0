package downing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

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
	metrics  *metrics
	digest   string

	self    sbr.Member
	origin  time.Time
	node    *node
	tap     *tap
	keepOut *keepOut

	inbox   inbox
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
	tells   sync.WaitGroup
	looped  chan struct{}

	// Owned by the loop.
	resolver   *sbr.Resolver
	members    *membership
	tracker    *reachability.Tracker
	reports    []sbr.Report
	spreading  map[sbr.ID]struct{}
	rounds     int
	nextPoll   time.Duration
	nextProbe  time.Duration
	nextJoin   time.Duration
	probing    bool
	sawDigests map[string]struct{}
	leaving    bool
	ended      bool

	mu     sync.Mutex
	state  stage
	status Status
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
	e := &engine{cfg: cfg, life: life, log: cfg.logger(), strategy: strategy, metrics: m, digest: cfg.Digest(), inbox: newInbox(), looped: make(chan struct{}), sawDigests: make(map[string]struct{}), spreading: make(map[sbr.ID]struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// Prepare implements Engine.
func (e *engine) Prepare(ctx context.Context, conf *serf.Config) error {
	if err := e.enter(stageNew, stagePrepared); err != nil {
		return err
	}
	if err := checkSerf(conf, e.log); err != nil {
		return err
	}
	uid := newUID()
	e.self = sbr.Member{ID: incarnation(conf.NodeName, uid), Name: conf.NodeName, Born: born(time.Now())}
	e.keepOut = &keepOut{next: conf.Merge, refused: e.onRefused}
	e.keepOut.list.Store(&denyList{self: e.self.ID})
	if sbr.NeedsLease(e.strategy) {
		if err := e.openLease(ctx); err != nil {
			return err
		}
	}
	tags := map[string]string{TagUID: uid, TagBorn: format36(e.self.Born), TagSeen: format36(int64(e.self.Seen)), TagConfig: e.digest}
	for k, v := range conf.Tags {
		if _, ours := tags[k]; !ours {
			tags[k] = v
		}
	}
	conf.Tags = tags
	conf.Merge = e.keepOut
	e.tap = newTap(conf.EventCh, e.onSerfEvent)
	conf.EventCh = e.tap.in
	return nil
}

func (e *engine) enter(from, to stage) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == from:
		e.state = to
		return nil
	case e.state < from:
		return ErrNotPrepared
	default:
		return ErrStarted
	}
}

// openLease makes the lease of this incarnation and reads it once: a member that does not know the last verdict must not join.
func (e *engine) openLease(ctx context.Context) error {
	l, err := lease.New(e.cfg.Store, string(e.self.ID), e.cfg.Lease, lease.Options{Logger: e.log})
	if err != nil {
		return fmt.Errorf("downing: lease %s: %w", e.cfg.leaseName(), err)
	}
	e.lease = l
	rec, err := e.firstRead(ctx)
	if err != nil {
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
		if err := p.Preflight(ctx); err != nil {
			e.log.Error("sbr: the lease store does not work as it must", "lease", e.cfg.leaseName(), "problems", err)
		}
	}
	for {
		rec, err := e.lease.Read(ctx)
		if err == nil {
			return rec, nil
		}
		e.log.Error("sbr: cannot read the lease, trying again", "lease", e.cfg.leaseName(), "error", err)
		retry := time.NewTimer(e.cfg.Resolver.LeaseRetry)
		select {
		case <-ctx.Done():
			retry.Stop()
			return lease.Record{}, errors.Join(ctx.Err(), err)
		case <-retry.C:
		}
	}
}

// checkSerf refuses configurations under which the resolver cannot work and warns of those that bite later.
func checkSerf(conf *serf.Config, log *slog.Logger) error {
	if conf.NodeName == "" {
		return errors.New("downing: serf.Config.NodeName is empty: set it before Prepare")
	}
	if conf.CoalescePeriod > 0 {
		log.Info("sbr: event coalescing is on; the resolver reads the member list and is not disturbed by it")
	}
	if conf.EnableNameConflictResolution {
		log.Info("sbr: name conflict resolution is on: a node that comes back under its old name at a new address within the failure window shuts itself down; prefer a name per incarnation")
	}
	return nil
}

// Start implements Engine.
func (e *engine) Start(ctx context.Context, s *serf.Serf) error {
	if err := e.enter(stagePrepared, stageStarted); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	e.node = newNode(s)
	e.origin = time.Now()
	r, err := sbr.New(e.cfg.Resolver, e.strategy, e.self, 0)
	if err != nil {
		return err
	}
	e.resolver = r
	e.members = newMembership(e.self.ID)
	e.tracker = reachability.New(e.cfg.Probe, e.self.ID)
	e.inbox.post(e.poll)
	if e.lease != nil && !e.cfg.NoWatch {
		e.workers.Go(e.watch)
	}
	go e.loop()
	return nil
}

// Stop implements Engine.
func (e *engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	before := e.state
	e.state = stageStopped
	e.mu.Unlock()
	if before == stageStarted {
		e.inbox.post(func() { e.step(sbr.Left{}) })
		e.inbox.post(func() { e.ended = true })
		select {
		case <-e.looped:
		case <-ctx.Done():
		}
	}
	return e.release(ctx)
}

// release ends every goroutine of the engine.
func (e *engine) release(ctx context.Context) error {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		e.tells.Wait()
		e.cancel()
		e.workers.Wait()
		if e.lease != nil {
			e.lease.Close()
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
	case e.node == nil || e.node.isShutdown():
		e.tap.close()
	default:
		go func() {
			<-e.node.shutdown
			e.tap.close()
		}()
	}
}

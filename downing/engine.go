package downing

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/serf-sbr/serf-sbr/internal/inbox"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// engine drives one sbr.Resolver over one Serf node. Everything that touches the resolver runs on one
// goroutine, the loop; whatever may block runs elsewhere and posts its result to the loop.
type engine struct {
	cfg      Config
	life     *lifecycle
	talk     *talker
	board    atomic.Pointer[board]
	log      *slog.Logger
	strategy sbr.Strategy
	lease    *lease.Lease                // nil without a lease
	granted  atomic.Pointer[lease.Grant] // the one whose loss is awaited
	opened   lease.Store                 // the store that was opened here, not given
	rec      *recorder
	digest   string
	storeID  string // which store keeps the lease; empty: that is not known

	self sbr.Member
	// adopted says that this process goes on as an incarnation that an earlier one began.
	adopted bool
	// adoptedIn is the TagIn that this one had, zero if it had none; negative: it had not found its cluster.
	adoptedIn int64
	// aged is how old the incarnation was when this process went on as it.
	aged   time.Duration
	tags   map[string]string // those of this member that are ours
	origin time.Time
	node   node
	tap    *tap
	// firstEventIn is how long a node's first event may take until it is here.
	firstEventIn time.Duration
	keepOut      *keepOut

	inbox    *inbox.Inbox
	looking  atomic.Bool  // a look at the membership is in the inbox
	pending  atomic.Int64 // messages in the inbox
	complain *complaints
	ctx      context.Context
	cancel   context.CancelFunc
	workers  sync.WaitGroup
	tells    sync.WaitGroup
	notices  sync.WaitGroup
	looped   chan struct{}

	// For the watchdog.
	beats   atomic.Int64 // progress of the loop
	pausing atomic.Bool  // the loop is in Config.Pause
	halted  atomic.Bool  // the loop was stuck and must do nothing more

	// Owned by the loop.
	resolver      *sbr.Resolver
	members       *membership
	tracker       *reachability.Tracker
	reports       []sbr.Report
	rounds        int
	nextPoll      time.Duration
	nextProbe     time.Duration
	nextJoin      time.Duration
	nextSeek      time.Duration
	nextAgain     time.Duration // when news is sent again
	again         int           // how many times more
	gathering     bool          // reports have come that no opinion was formed of, see weighSoon
	nextWeigh     time.Duration // when one is
	seeking       bool
	joining       bool // a failed member is being joined again
	probing       bool
	gossip        *memberlist.Config
	said          map[string]string // what was said last, by what it is about
	removing      map[sbr.ID]struct{}
	tagsListed    time.Time // when Serf lists the tags that were set last
	saidBare      time.Time // when a member without its tags last said that it is there
	offering      offering
	wokeAt        time.Time // when this step began
	pauses        int       // how often this member has stood still
	lookedAt      time.Time // when the step began in which the membership was last seen
	verifying     int
	recordTaken   bool            // what was read before the start has been taken in
	remembering   bool            // the state file is being written
	rememberAgain time.Duration   // after a write that failed
	unwritten     string          // why the state file could not be written; empty: it was
	refused       string          // why the lease store refuses this member; before the loop runs the start's
	newcomer      bool            // it has not found the cluster that it belongs to
	found         bool            // it had found it, and waits for the answers of all
	announced     time.Time       // when it announced that it takes part
	answered      map[sbr.ID]bool // members that have answered this newcomer's probes, or cannot be asked
	askingAll     bool            // such probes are under way
	awaited       []sbr.ID        // the members that it waits for
	hasLeft       atomic.Bool     // this member has left in peace
	stepping      sbr.Event       // the event that the resolver handles
	held          held
	blindSince    time.Time // zero: the node answers
	leaving       bool
	leaveBy       time.Time // when it must have left
	inheriting    bool      // the record is being handed to the members here
	bootstrapping bool      // an operator's word is being written
	releasing     bool      // the answer to the release of the lease is not here
	ended         bool
	operator      chan<- error // the operator's request to down a member waits here for the answer

	// phase admits one of Prepare, Start and Stop at a time. It is a channel so that waiting for it can be
	// given up.
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

func newEngine(cfg Config, life *lifecycle) (*engine, error) {
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
	e := &engine{
		cfg: cfg, life: life, log: cfg.logger(), strategy: strategy, digest: cfg.Digest(), inbox: inbox.New(),
		complain: newComplaints(cfg.logger()), looped: make(chan struct{}), phase: make(chan struct{}, 1),
		said: make(map[string]string), removing: make(map[sbr.ID]struct{}),
	}
	e.board.Store(new(board))
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.talk = newTalker(e)
	if e.rec, err = newRecorder(e); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	life.called = e.rec.called
	return e, nil
}

// enter runs f as the one phase that is under way, with a ctx that ends with Stop as well. After an error the
// phase can be entered again.
func (e *engine) enter(ctx context.Context, from, to stage, f func(context.Context) error) error {
	select {
	case e.phase <- struct{}{}:
	default:
		select {
		case e.phase <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-e.phase }()
	if err := e.advance(from, to); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	err := f(ctx)
	if err != nil {
		_ = e.advance(to, from) // unless it was stopped meanwhile
	}
	return err
}

func (e *engine) advance(from, to stage) error {
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

// run starts everything that watches over the node.
func (e *engine) run() error {
	e.origin = time.Now()
	e.cfg.Resolver = e.cfg.rules(e.gossip)
	r, err := sbr.New(e.cfg.Resolver, e.strategy, e.self, 0)
	if err != nil {
		return err
	}
	e.resolver = r
	e.members = newMembership(e.self.ID, func(id sbr.ID) bool {
		m, known := r.Member(id)
		return known && m.Unreachable
	})
	probe := e.cfg.Probe
	probe.AllHeard = sbr.KeepsLargestGroup(e.strategy)
	e.tracker = reachability.New(probe, e.self.ID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == stageStopped {
		return ErrStarted
	}
	e.newcomer, e.answered = e.lease != nil || e.cfg.Memory != nil, make(map[sbr.ID]bool)
	e.recordTaken = e.recordTaken || e.lease == nil
	e.running = true
	e.inbox.Post(e.recall)
	e.inbox.Post(e.poll)
	if e.adopted { // after the first look, so that it knows the members to ask
		e.inbox.Post(e.checkFate)
	}
	if e.held.is(byStart) { // after the first look, which may find another reason
		e.inbox.Post(func() { e.free(byStart, "the lease was read") })
	}
	if e.lease != nil {
		e.spawn(&e.workers, e.watchStore)
	}
	if e.lease != nil && e.cfg.Resolver.Watched {
		e.spawn(&e.workers, e.watch)
	}
	e.workers.Go(e.watchdog)
	e.talk.start()
	go e.loop()
	return nil
}

// Stop implements driver.
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
		e.inbox.Post(e.resign)
	}
	defer e.rec.hide()
	return e.release(ctx)
}

func (e *engine) isRunning() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running
}

// release ends every goroutine of the engine.
func (e *engine) release(ctx context.Context) error {
	if !sleep.Within(ctx.Done(), func() {
		if e.isRunning() {
			<-e.looped // until then the loop may start more
		}
		e.tells.Wait()
		e.rec.abandon()
		e.withdraw()
		resigned := false
		if n, ok := e.node.(*beside); ok {
			resigned = n.part(ctx, e.life.isOver(), e.cfg.KeepTags)
		}
		e.notices.Wait() // the last one may be that this member is down
		e.cancel()
		e.workers.Wait()
		e.talk.work.Wait()
		if resigned {
			e.rememberLeave()
		}
		if e.lease != nil {
			e.lease.Close()
			if c, ok := e.opened.(io.Closer); ok {
				_ = c.Close() // nothing waits for it any more
			}
		}
		e.closeTap()
	}) {
		e.cancel()
		return fmt.Errorf("downing: still stopping: %w", ctx.Err())
	}
	return nil
}

package sbr

import (
	"fmt"
	"time"
)

// State is what a member is doing, as its status page shows it.
type State string

// The states.
const (
	StateArming    State = "arming"
	StateUp        State = "up"
	StateSuspended State = "suspended"
	StateWaiting   State = "waiting-for-lease"
	StateDown      State = "down"
)

// never is a deadline that does not come.
const never = time.Duration(1<<63 - 1)

// Resolver is the state machine of one member. It holds no goroutine, clock, socket or logger: time is an
// argument (a monotonic clock), effects are values. It is not safe for concurrent use.
type Resolver struct {
	cfg      Config
	strategy Strategy
	self     ID

	now     time.Duration
	effects []Effect

	table
	reports []Report
	// reportedSince is since when each of the reports stands without a gap; only with a lease.
	reportedSince []time.Duration
	// indirect are the members that were indirectly connected when the reports were last read, unless the
	// strategy keeps the largest group.
	indirect []ID
	// made is the decision about the present view; nil: it was not needed yet.
	made   *Decision
	madeOf uint64 // the version of the table then
	// place is this member's turn to decide, if placed; it is kept because large clusters ask for it at every
	// step.
	place    int
	placed   bool
	placedOf uint64 // the version of the table then

	armed, suspended, down, left bool

	// stable is stable-after; if that is auto, for the members that the last settled view had: so many as
	// size says.
	stable  time.Duration
	size    int
	sizedAt uint64 // the version of the table then

	lastChange  time.Duration // the last event that resets the stable deadline
	firstChange time.Duration // the first one of the present unrest
	changes     int           // how many since; zero: calm
	// suspendedAt is since when the member is suspended; before it is armed, since when it has suspects.
	suspendedAt time.Duration
	idleAt      time.Duration // lastChange of a decision that did nothing, so that it does not repeat

	record  Record        // what the store held when it was last read
	read    bool          // whether record is anything at all
	readAt  time.Duration // when record was learnt
	verdict Verdict
	orders  map[ID]struct{} // downed by orders, without a verdict

	attempt uint64
	race    *race
	contact contact
	// question is open until this member knows its standing; nil: it does.
	question *question

	// unsure: this process was paused, and has had no answer since from the store, nor from a member that was
	// not paused. departed: meanwhile a member has gone that may have known more.
	unsure, departed bool
	// torn says how long this member waits before it asks the store which of two verdicts with this token
	// counts, if it hears of the other one once more.
	torn struct {
		token uint64
		pause time.Duration
	}

	recheckAt  time.Duration // when the store is read once more after a check
	rechecking uint64        // the attempt that does it
	rechecks   int           // how often that failed

	restoreAt time.Duration // when this member writes the verdict back into a store that went backwards

	holding   bool   // this member holds the lease
	heldSince uint64 // the attempt that got it
	releaseAt time.Duration
	removeAt  time.Duration
	removals  int           // how many times removing was tried for those that are downed now
	passAt    time.Duration // when this member passes the verdict on, unless another one did
}

// New returns the resolver of the member self, which had read the token seen when it started. now is the
// driver's clock. Errors: those of Config.Validate, a nil strategy, an empty self.
func New(cfg Config, strategy Strategy, self Member, now time.Duration) (*Resolver, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("sbr: %w", err)
	}
	if strategy == nil || self.ID == "" {
		return nil, fmt.Errorf("sbr: a resolver needs a strategy and the incarnation of its own member")
	}
	if cfg.StableAfter == Auto && !NeedsLease(strategy) {
		return nil, fmt.Errorf("sbr: %w", errAutoAlone)
	}
	r := &Resolver{
		cfg: cfg, strategy: strategy, self: self.ID, now: now, lastChange: now, idleAt: -1, stable: cfg.StableAfter,
		table: table{index: make(map[ID]int)}, orders: make(map[ID]struct{}),
		releaseAt: never, removeAt: never, passAt: never, recheckAt: never, restoreAt: never,
	}
	self.Status, self.awaiting, self.Unreachable = Joining, true, false
	r.put(self)
	r.measure()
	return r, nil
}

// Step handles one event at the time now and returns what is to be done, which is valid until the next call.
func (r *Resolver) Step(now time.Duration, e Event) []Effect {
	r.begin(now)
	if !r.down && !r.left {
		suspects, token := r.suspects, r.verdict.Token
		e.apply(r)
		if r.suspects == 0 {
			r.endUnrest()
		}
		if suspects == 0 && r.suspects > 0 && !r.armed {
			r.suspendedAt = r.now
		}
		if suspects > 0 && r.suspects == 0 && token == r.verdict.Token {
			r.onHealed(e)
		}
		r.advance()
	} else if a, ok := e.(LeaseAnswer); ok && r.left {
		r.holding = r.holding || a.Outcome == Granted
		r.giveBack() // what it raced for is answered
	}
	return r.effects
}

// Tick lets time pass: call it when NextDeadline has come. It is never harmful.
func (r *Resolver) Tick(now time.Duration) []Effect {
	r.begin(now)
	if !r.down && !r.left {
		r.advance()
	}
	return r.effects
}

func (r *Resolver) begin(now time.Duration) {
	r.now = max(r.now, now)
	r.effects = r.effects[:0]
	r.settled() // up to now, whatever comes: nothing was due at the moment itself
}

func (r *Resolver) emit(e Effect) { r.effects = append(r.effects, e) }

func (r *Resolver) explain(what Topic, format string, args ...any) {
	r.emit(Explain{What: what, Text: fmt.Sprintf(format, args...)})
}

// advance does whatever is due now.
func (r *Resolver) advance() {
	steps := [...]func(){
		r.measure, r.checkStanding, r.runQuestion, r.recheck, r.restore, r.arm, r.watchSuspension,
		r.downWhenUnstable,
		r.decideWhenStable, r.runRace, r.keepContact, r.passOn, r.dropDecided, r.removeDowned, r.release,
		r.watchSuspension, r.measure,
	}
	for _, step := range steps {
		if r.down {
			return
		}
		step()
	}
}

// goDown ends everything. The caller first sends the verdict to the members of this side that it downs as
// well.
func (r *Resolver) goDown(reason string) {
	if r.down {
		return
	}
	r.giveBack()
	r.down, r.race, r.question = true, nil, nil
	r.emit(DownSelf{Reason: reason})
}

func (r *Resolver) next() uint64 {
	r.attempt++
	return r.attempt
}

// NextDeadline returns when Tick must be called next, unless an event comes first. ok is false for never.
func (r *Resolver) NextDeadline() (at time.Duration, ok bool) {
	if r.down || r.left {
		return 0, false
	}
	at = min(r.armAt(), r.unstableAt(), r.decideAt(), r.raceAt(), r.passAt, r.removeDue(), r.releaseAt,
		r.questionAt(), r.contactAt(), r.recheckDue(), r.restoreAt)
	return at, at != never
}

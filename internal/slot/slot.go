// Package slot is one run of something that may run in one place only, on one member: a singleton or a shard,
// under a lease of its own or without one.
//
// A Slot keeps the rules of phases, attempts, tokens, leases and runs. The machine that owns it decides when
// something is taken and when it has to end: package internal/handover by asking the other members, package
// internal/shards/host as a coordinator orders. Both are pure state machines, like package sbr: time is an
// argument, effects are returned as values, and a driver (package slot/drive) carries them out:
//
//	for effects := m.Step(now, event) { carry them out; report back with further events }
//	when NextDeadline() comes: m.Step(now, slot.Tick{})
//
// # Guarantees
//
//   - A run starts only from Acquiring, Taking or Resting: never while one before it has not ended.
//   - With Rules.UseLease only the answer to the present attempt starts a run, and only if it grants a larger
//     token than those of the earlier runs that the owner names. An unknown outcome counts as not held.
//   - A run whose lease is lost is asked to end at once. Its lease is released after it has ended, never
//     before.
//
// # Assumptions
//
//   - The owner lets a run start only once nothing runs elsewhere, or the lease says so.
package slot

import (
	"math"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

const (
	// MaxState is how many bytes of state a run may hand over: a position, a cursor. Larger state belongs
	// into a store, under the token.
	MaxState = 512
	// MaxToken is the last token: it has to fit a signed number.
	MaxToken = math.MaxInt64
)

// Phase is what a machine does with a slot.
type Phase uint8

// The phases. Those of shards up to Stopping are told to others: their numbers are on the wire.
const (
	// Idle: this member does nothing with the slot.
	Idle Phase = iota
	// Taking: its owner finds out whether it may run here.
	Taking
	// Acquiring: the lease was requested.
	Acquiring
	// Active: a run was started.
	Active
	// Stopping: the run was asked to end.
	Stopping
	// Resting: the run ended by itself, and this member is about to start another one, or to ask for it.
	Resting
	// Releasing: nothing runs, the lease is being released.
	Releasing
)

var phaseNames = [...]string{"idle", "taking", "acquiring", "active", "stopping", "resting", "releasing"}

// String returns the phase in lower case.
func (p Phase) String() string { return phaseNames[min(int(p), len(phaseNames)-1)] }

// Owner is the machine that a slot belongs to: it embeds a Base.
type Owner interface {
	base() *Base
	// Entered follows each change of a slot's phase.
	Entered(s *Slot, before Phase)
}

func (b *Base) base() *Base { return b }

// Entered implements Owner for machines that ignore it.
func (b *Base) Entered(*Slot, Phase) {}

// Slot is one run of something. The zero Slot is idle. Its fields are read by the owner, and by model
// checkers; the owner's methods hand it the owner.
type Slot struct {
	// Shard is the number of the slot at its owner.
	Shard int
	Phase Phase
	// Run and Token are those of the newest run; kept after its end.
	Run, Token uint64
	// Attempt is the newest attempt to get the lease. InFlight: it is unanswered. Held: the lease was
	// granted. Lost: the lease was lost before the grant was reported.
	Attempt              uint64
	InFlight, Held, Lost bool
	// LeaseAt is when the lease is requested, RestAt when the next run starts.
	LeaseAt, RestAt time.Duration
}

// Runs reports whether anything of a run may be left.
func (s *Slot) Runs() bool { return s.Phase == Active || s.Phase == Stopping }

// Due is when the slot goes on by itself. ok is false when it waits for an event.
func (s *Slot) Due() (at time.Duration, ok bool) {
	switch {
	case s.Phase == Acquiring && !s.InFlight:
		return s.LeaseAt, true
	case s.Phase == Resting:
		return s.RestAt, true
	}
	return 0, false
}

// Enter changes the phase.
func (s *Slot) Enter(o Owner, p Phase) {
	before := s.Phase
	s.Phase = p
	o.Entered(s, before)
}

// Acquire enters Acquiring; the lease is requested at the time at.
func (s *Slot) Acquire(o Owner, at time.Duration) {
	s.Enter(o, Acquiring)
	s.LeaseAt = at
}

// TryLease requests the lease when it is due.
func (s *Slot) TryLease(o Owner) {
	if b := o.base(); !s.InFlight && b.Now >= s.LeaseAt {
		s.Attempt++
		s.InFlight, s.Lost = true, false
		b.Emit(AcquireLease{Shard: s.Shard, Attempt: s.Attempt})
	}
}

// Answered handles the outcome of an attempt to get the lease. It reports whether the slot may run now: last
// is the largest known token of the earlier runs.
func (s *Slot) Answered(o Owner, e LeaseAnswer, last uint64) bool {
	if e.Attempt != s.Attempt || !s.InFlight || s.Phase != Acquiring {
		return false // abandoned and released meanwhile
	}
	b := o.base()
	again := b.Rules.LeaseRetryInterval
	s.InFlight, s.LeaseAt = false, b.Now+again
	switch {
	case e.Outcome != sbr.Granted:
		b.ExplainShard(TopicLease, s.Shard, "the lease was not granted: %s; asking again in %v", e.Why, again)
	case s.Lost:
		b.ExplainShard(TopicLease, s.Shard, "the lease was granted and is lost already; asking again in %v", again)
	case e.Token <= last || e.Token > MaxToken:
		b.Emit(ReleaseLease{Shard: s.Shard, Attempt: s.Attempt})
		b.ExplainShard(TopicStuck, s.Shard,
			"it does not start: the lease's token %d is not between that of the last run "+
				"known here, %d, and %d; its store has forgotten or was changed by hand; asking again in %v",
			e.Token, last, uint64(MaxToken), again)
	default:
		s.Held = true
		return true
	}
	return false
}

// LeaseLost stops the run under the lease. It reports whether a run was active or resting: the slot may be
// taken again once the run has ended and the lease is released.
func (s *Slot) LeaseLost(o Owner, e LeaseLost) (ran bool) {
	switch {
	case e.Attempt != s.Attempt:
		return false
	case !s.Held:
		s.Lost = s.InFlight // the loss may be reported before the grant
		return false
	}
	s.Held = false
	if s.Phase == Active {
		s.Stop(o, CauseLeaseLost, "the lease is lost: "+e.Why, "")
		return true
	}
	return s.Phase == Resting
}

// Abandon gives up the requested lease. The owner decides what follows.
func (s *Slot) Abandon(o Owner) {
	o.base().Emit(ReleaseLease{Shard: s.Shard, Attempt: s.Attempt})
	s.InFlight, s.Held = false, false
}

// Release releases the lease; nothing runs. It reports whether there is none to release: otherwise the slot
// waits for Released.
func (s *Slot) Release(o Owner) (done bool) {
	if !o.base().Rules.UseLease || s.Phase == Taking {
		return true
	}
	s.Enter(o, Releasing)
	s.Abandon(o)
	return false
}

// Released reports whether the release that the slot waits for is done.
func (s *Slot) Released(e LeaseReleased) bool { return s.Phase == Releasing && e.Attempt == s.Attempt }

// Start starts a run. Nothing else runs the slot, or the lease is held.
func (s *Slot) Start(o Owner, token uint64, state []byte, from sbr.ID) {
	b := o.base()
	s.Run++
	s.Token = token
	s.Enter(o, Active)
	b.Emit(Start{Shard: s.Shard, Run: s.Run, Token: token, State: state, From: from})
	by := ""
	if from != "" {
		by = ", handed over by " + string(from)
	}
	b.ExplainShard(TopicStarted, s.Shard, "run %d starts with token %d%s", s.Run, token, by)
}

// Stop asks the run to end.
func (s *Slot) Stop(o Owner, c Cause, why string, to sbr.ID) {
	b := o.base()
	s.Enter(o, Stopping)
	b.Emit(Stop{Shard: s.Shard, Run: s.Run, Cause: c, Why: why, To: to})
	b.ExplainShard(TopicStopping, s.Shard, "run %d has to end: %s", s.Run, why)
}

// Guard stops a run without a lease when membership was not confirmed for too long. It reports whether the
// run goes on.
func (s *Slot) Guard(o Owner) bool {
	b := o.base()
	if b.Trusted() {
		return true
	}
	s.Stop(o, CauseUnsure, "membership was not confirmed for "+b.Rules.Trust.String(), "")
	return false
}

// Ended handles the end of a run. It reports whether it was the present run; state is the state for the next
// run. The owner decides what follows.
func (s *Slot) Ended(o Owner, e RunEnded) (state []byte, present bool) {
	if e.Run != s.Run || !s.Runs() {
		return nil, false
	}
	b := o.base()
	if len(e.State) > MaxState {
		b.ExplainShard(TopicEnded, s.Shard,
			"run %d has left %d bytes of state, more than the %d that can be handed over: "+
				"they are lost", e.Run, len(e.State), MaxState)
		e.State = nil
	}
	why := ""
	if e.Why != "" {
		why = ": " + e.Why
	}
	b.ExplainShard(TopicEnded, s.Shard, "run %d has ended%s", e.Run, why)
	return e.State, true
}

// Rest waits before the next run, where the last one has ended by itself.
func (s *Slot) Rest(o Owner, d time.Duration) {
	s.Enter(o, Resting)
	s.RestAt = o.base().Now + d
}

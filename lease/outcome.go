package lease

import (
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Proposal is what an Acquire wants to write. The zero Proposal is a plain lock.
type Proposal struct {
	// Verdict is written together with the holder, in one conditional write. Nil: a plain lock, the last verdict stays.
	// Acquire works on a copy, sorts its lists and fills in its Token.
	Verdict *sbr.Verdict
	// Base is the Record.Token that Verdict builds upon. Any other token in the store means that somebody was faster:
	// the outcome is Held (Superseded) and nothing is written. Not used without a verdict.
	Base uint64
	// BaseBy is who has written the verdict under Base, as far as that is known: a store that forgot may hold another verdict under
	// that token, which counts as another token. Empty: not compared.
	BaseBy string
	// TakeOver names holders that may be replaced although they are alive: a former leader of one's own side.
	// Until its next heartbeat such a holder does not know. So the verdict counts at once, but Check is false until the former
	// holder's time is over, as if it had crashed; a plain Acquire is Held until then, and a Release frees the record only then
	// (never, where HeartbeatTimeout is Infinite). It excludes For.
	TakeOver []string
	// Override replaces any holder, alive or not, and counts at once. It is for people and tools with that right, who see to it
	// that the former holder has ended.
	Override bool
	// Exclusive makes the lease single-entrant: whoever holds it already is refused like everybody else, this owner included.
	Exclusive bool
	// For is how long the grant lasts. Zero: as long as heartbeats go on. Infinite: until it is released. It must not exceed
	// Settings.HeartbeatTimeout, since others wait no longer than that. Check turns false a little before it is over, as
	// Settings.Window does before HeartbeatTimeout. Two lives under one owner's name must not use it: one cannot know how long the
	// other has asked for, so a shorter time of the second would end the first without a word.
	For time.Duration
	// KeepAlive renews a grant with For by heartbeats, each for the same time.
	KeepAlive bool
}

// plain reports whether any grant of this owner is as good as a new one.
func (p *Proposal) plain() bool {
	return p.Verdict == nil && p.For == 0 && !p.Exclusive && !p.Override
}

func (p Proposal) clone() Proposal {
	p.Verdict = p.Verdict.Clone()
	if p.Verdict != nil {
		p.Verdict.Normalize()
	}
	p.TakeOver = slices.Clone(p.TakeOver)
	return p
}

// Kind is the tri-state of an Acquire. The zero value is Unknown: what nobody filled in is never a grant.
type Kind uint8

// The kinds.
const (
	// Unknown: the store may have granted, or not, or may still. Err says why nobody knows.
	Unknown Kind = iota
	// Granted: this owner holds the lease. After a take-over it may not use it yet: see Proposal.TakeOver.
	Granted
	// Held: for certain nothing was granted. Record shows why: a live holder, or a token other than Proposal.Base.
	Held
)

var kindNames = [...]string{"unknown", "granted", "held"}

// String returns the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", k)
}

// Outcome is what became of an Acquire.
type Outcome struct {
	Kind Kind
	// Record is the record as it was written (Granted), or as it stood in the store (Held).
	// Its Holder may be empty when the outcome is Held because the proposal was superseded, and may be this owner when an
	// earlier attempt of its own, whose answer was lost, turns out to have been written.
	Record Record
	// Superseded says that Held means "another token than Proposal.Base", whoever holds the lease.
	Superseded bool
	// RetryAfter is how long the holder may stay silent until it counts as gone, as seen from here, when Held by a holder.
	// Zero where that never happens. When Held by this owner after a take-over: until it may use the lease.
	RetryAfter time.Duration
	// Err is set when Kind is Unknown. It wraps ErrRefused when the store certainly wrote nothing, and ErrClosed,
	// ErrTooLate, ErrTokenSpent, context.Canceled or context.DeadlineExceeded where these apply. With Held it is nil, except
	// that AcquireWait says why it gave up.
	Err error
}

// String is for logs.
func (o Outcome) String() string {
	switch {
	case o.Kind == Granted:
		return fmt.Sprintf("granted (token %d)", o.Record.Token)
	case o.Kind == Held && o.Superseded:
		return fmt.Sprintf("held: superseded by token %d (holder %q)", o.Record.Token, o.Record.Holder)
	case o.Kind == Held:
		return fmt.Sprintf("held by %q (token %d)", o.Record.Holder, o.Record.Token)
	default:
		return fmt.Sprintf("unknown: %v", o.Err)
	}
}

// ReleaseKind is the tri-state of a Release.
type ReleaseKind uint8

// The kinds of release. The zero value is ReleaseUnknown.
const (
	// ReleaseUnknown: the record may still name this owner as the holder, perhaps because it must (Proposal.TakeOver). Release may
	// be called again; else the record is tidied up in the background, or runs out.
	ReleaseUnknown ReleaseKind = iota
	// Released: for certain the record names this owner no more.
	Released
	// NotReleased: there was nothing to release: this owner did not hold the lease (any more).
	NotReleased
)

var releaseNames = [...]string{"unknown", "released", "not-released"}

// String returns the kind in lower case.
func (k ReleaseKind) String() string {
	if int(k) < len(releaseNames) {
		return releaseNames[k]
	}
	return fmt.Sprintf("release-kind(%d)", k)
}

// ReleaseOutcome is what became of a Release.
type ReleaseOutcome struct {
	Kind ReleaseKind
	// Err says why the outcome is ReleaseUnknown; with NotReleased it wraps ErrLost, ErrClosed or ErrOtherHolder where these
	// apply, else it is nil.
	Err error
	// Record is what a ForceRelease found: the record as it stood when it was freed, or why it was not.
	Record Record
	// Expired says that the holder of Record had been silent for its whole time already, as seen from here.
	Expired bool
}

// String is for logs.
func (o ReleaseOutcome) String() string {
	if o.Err != nil {
		return o.Kind.String() + ": " + o.Err.Error()
	}
	return o.Kind.String()
}

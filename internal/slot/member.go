package slot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// Rules are what singletons and shards have in common. All members must use the same, apart from Self and
// Gone. Start from DefaultRules.
type Rules struct {
	// Self is this member's incarnation. Required.
	Self sbr.ID
	// HandOverRetryInterval is the pause between two tries to ask others.
	HandOverRetryInterval time.Duration
	// NumberOfRetries is how often a silent member is asked before that is said loudly. With a lease the
	// lease decides from then on; without one it is asked on.
	NumberOfRetries int
	// Margin is the removal margin: how long after a candidate was downed, or was gone without a word,
	// nothing of it starts elsewhere.
	Margin time.Duration
	// Trust is how long a run without a lease goes on after the member was last sure of its place (TrustFor).
	// Margin must cover the rest.
	Trust time.Duration
	// Gone are the members that were downed, or were gone without a word, before the machine began, and when
	// their margin is over, on the driver's clock: Base.Departed of the machine before, where there was one.
	// By ID.
	Gone []Departure
	// UseLease says that a slot runs only with its lease.
	UseLease bool
	// LeaseRetryInterval is the pause between two attempts to get a lease.
	LeaseRetryInterval time.Duration
}

// DefaultRules returns the reference's defaults for a resolver with the default stable-after of 20 s.
func DefaultRules() Rules {
	return Rules{HandOverRetryInterval: time.Second, NumberOfRetries: 15, Margin: 20 * time.Second,
		Trust: TrustFor(20*time.Second, 20*time.Second), LeaseRetryInterval: 5 * time.Second}
}

// TrustFor returns Rules.Trust for a resolver's stable-after and a removal margin. Others start stable-after
// and the margin after they lost contact, at the earliest; half of the margin is for this member to notice,
// and an eighth of all is for clocks that run at different rates.
func TrustFor(stableAfter, margin time.Duration) time.Duration {
	return (stableAfter + margin/2) / 8 * 7
}

// Validate reports every problem at once, one line each, by the names that users know. of says whose rules
// they are.
func (r *Rules) Validate(of string) error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
		least time.Duration
	}{
		{"hand-over-retry-interval", r.HandOverRetryInterval, time.Millisecond},
		{"removal-margin", r.Margin, 0},
		{"lease-retry-interval", r.LeaseRetryInterval, time.Millisecond},
	} {
		if d.value < d.least {
			errs = append(errs, fmt.Errorf("%s: %s is %v: at least %v is needed", of, d.name, d.value, d.least))
		}
	}
	if r.NumberOfRetries < 1 {
		errs = append(errs, fmt.Errorf("%s: number-of-retries is %d: at least 1 is needed", of, r.NumberOfRetries))
	}
	if !r.UseLease && r.Trust <= 0 {
		errs = append(errs, fmt.Errorf("%s: without a lease a run would last %v: stable-after is needed", of, r.Trust))
	}
	return errors.Join(errs...)
}

// Patience is how long others may take to ask for what runs here when this member's manager is stopped.
func (r *Rules) Patience() time.Duration {
	return time.Duration(r.NumberOfRetries) * r.HandOverRetryInterval
}

// NodePatience is how long when this member's node leaves. Once it has left others take it for gone, and
// without a lease nothing but the margin keeps them from starting.
func (r *Rules) NodePatience() time.Duration {
	if r.UseLease {
		return r.Patience()
	}
	return min(r.Patience(), r.Margin/2)
}

// Peer is one member of the cluster, as another one's driver sees it.
type Peer struct {
	ID sbr.ID
	// Name is what outlives a restart: a member gets its former shards back by it.
	Name string
	// Roles are the member's, separated by commas: peers can be compared.
	Roles string
	// Born orders the members by age, smaller is older; ties go by ID. Zero: youngest of all.
	Born int64
	// Candidate says that the member would run what the machine is about.
	Candidate bool
	// Leaving: on its way out. Down: downed by a verdict or an order. Unreachable: from here.
	Leaving, Down, Unreachable bool
}

// View is what a member's resolver says of the cluster.
type View struct {
	// Armed says that the member takes part: before that it runs nothing.
	Armed bool
	// Verdict is the token of the newest verdict that it knows.
	Verdict uint64
	// Sure is the last moment, on the driver's clock, at which nothing was amiss; negative: never. See
	// downing.Peers.
	Sure time.Duration
	// Peers are all members that it knows, itself included or not. Whoever is given a View keeps it: do not
	// change them.
	Peers []Peer
}

// Peer returns a member; nil if there is none.
func (v *View) Peer(id sbr.ID) *Peer {
	for i := range v.Peers {
		if v.Peers[i].ID == id {
			return &v.Peers[i]
		}
	}
	return nil
}

// Base is what a machine with slots knows, whatever it decides by: a machine embeds it.
type Base struct {
	Rules Rules
	Now   time.Duration
	View  View
	// Departed are the candidates that are gone without a word, by ID.
	Departed []Departure
	out      []Effect
}

// Departure is a candidate that is gone without a word, and when its margin is over.
type Departure struct {
	ID    sbr.ID
	Until time.Duration
}

// NewBase returns the base of a machine that begins now, on the driver's clock.
func NewBase(r Rules, now time.Duration) Base {
	return Base{Rules: r, Now: now, View: View{Sure: -1}, Departed: slices.Clone(r.Gone)}
}

// Clone returns an independent copy. The effects are left out.
func (b *Base) Clone() Base {
	c := *b
	c.Departed, c.out = slices.Clone(b.Departed), nil
	return c
}

// Begin begins a step at a time, and forgets the effects of the one before.
func (b *Base) Begin(now time.Duration) {
	b.Now = max(b.Now, now)
	b.out = b.out[:0]
}

// Emit wants something done. Effects returns what is wanted since Begin.
func (b *Base) Emit(e Effect) { b.out = append(b.out, e) }

// Effects returns what is wanted since Begin. The slice is valid until the next one.
func (b *Base) Effects() []Effect { return b.out }

// ExplainShard emits Explain about a slot; negative: about none.
func (b *Base) ExplainShard(t Topic, shard int, format string, args ...any) {
	b.Emit(Explain{Topic: t, Shard: shard, Text: fmt.Sprintf(format, args...)})
}

// Trusted reports whether, without a lease, this member may run anything at this moment.
func (b *Base) Trusted() bool {
	return b.Rules.UseLease || b.View.Sure >= 0 && b.Now < b.View.Sure+b.Rules.Trust
}

// Look takes in a new view. It returns those that are gone, or were downed, since the one before; who was
// downed and is gone later has departed once.
func (b *Base) Look(v View) (departed []*Peer) {
	old := b.View
	b.View = v
	for i := range old.Peers {
		p := &old.Peers[i]
		if now := v.Peer(p.ID); !p.Down && (now == nil || now.Down) {
			departed = append(departed, p)
		}
	}
	for i := range v.Peers {
		p := &v.Peers[i]
		if p.Down && old.Peer(p.ID) == nil {
			departed = append(departed, p)
		}
		if !p.Down {
			b.Forget(p.ID)
		}
	}
	return departed
}

// Depart begins the margin of a member.
func (b *Base) Depart(id sbr.ID) {
	byID := func(d Departure, id sbr.ID) int { return cmp.Compare(d.ID, id) }
	i, found := slices.BinarySearchFunc(b.Departed, id, byID)
	if !found {
		b.Departed = slices.Insert(b.Departed, i, Departure{ID: id})
	}
	b.Departed[i].Until = b.Now + b.Rules.Margin
}

// Expire ends the margins that are over.
func (b *Base) Expire() {
	b.Departed = slices.DeleteFunc(b.Departed, func(d Departure) bool { return d.Until <= b.Now })
}

// Forget ends the margin of a member.
func (b *Base) Forget(id sbr.ID) {
	b.Departed = slices.DeleteFunc(b.Departed, func(d Departure) bool { return d.ID == id })
}

// Waits is how long the longest margin still lasts.
func (b *Base) Waits() (d time.Duration) {
	for _, g := range b.Departed {
		d = max(d, g.Until-b.Now)
	}
	return d
}

// Writer takes in, for model checkers, everything that decides how a machine will behave: machines that go on
// alike write alike.
type Writer interface {
	Flags(all ...bool)
	Uint(n uint64)
	Text(s string)
	// Due is how long something is ahead. All that is past is the same.
	Due(at, now time.Duration)
	// View is all but Sure.
	View(v *View)
}

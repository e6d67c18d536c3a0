package slot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// NumberOfRetries is how often a silent member is asked before that is explained. With a lease the lease
	// decides from then on; without one the member is asked further.
	NumberOfRetries int
	// Margin is the removal margin: how long after a candidate was downed, or was gone without a word,
	// nothing of it starts elsewhere.
	Margin time.Duration
	// Trust is how long a run without a lease goes on after membership was last confirmed (TrustFor). Margin
	// must cover the rest.
	Trust time.Duration
	// Gone are the members that were downed, or were gone without a word, before the machine began, and when
	// their margin is over, on the driver's clock: Base.Departed of an earlier machine, if there was one. By
	// ID.
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

// TrustFor returns Rules.Trust for a resolver's stable-after and a removal margin. Others start a run
// stable-after and the margin after they lost contact, at the earliest; half of the margin is for this member
// to notice, and an eighth of all is for clocks that run at different rates.
func TrustFor(stableAfter, margin time.Duration) time.Duration {
	return (stableAfter + margin/2) / 8 * 7
}

// PromiseFor returns how long a run without a lease may be promised to a process that outlives this member.
// The member may die and be replaced at once: then others start a run the margin after that. An eighth is for
// clocks that run at different rates.
func PromiseFor(margin time.Duration) time.Duration { return margin / 8 * 7 }

// MaxRetryInterval is the longest Rules.HandOverRetryInterval: a question stays open for three of them, and for
// ten minutes at most.
const MaxRetryInterval = 200 * time.Second

// Validate reports every problem at once, one line each, by the names that users know. of names the owner of
// the rules.
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
	if r.HandOverRetryInterval > MaxRetryInterval {
		errs = append(errs, fmt.Errorf("%s: hand-over-retry-interval is %v: at most %v is possible",
			of, r.HandOverRetryInterval, MaxRetryInterval))
	}
	if r.NumberOfRetries < 1 {
		errs = append(errs, fmt.Errorf("%s: number-of-retries is %d: at least 1 is needed", of, r.NumberOfRetries))
	}
	if !r.UseLease && r.Trust <= 0 {
		errs = append(errs, fmt.Errorf("%s: without a lease a run would last %v: stable-after is needed",
			of, r.Trust))
	}
	return errors.Join(errs...)
}

// Patience is how long others may take to ask for what runs here when this member's manager is stopped.
func (r *Rules) Patience() time.Duration {
	return time.Duration(r.NumberOfRetries) * r.HandOverRetryInterval
}

// NodePatience is Patience when this member's node leaves. Once the node has left, without a lease only the
// margin keeps others from starting.
func (r *Rules) NodePatience() time.Duration {
	if r.UseLease {
		return r.Patience()
	}
	return min(r.Patience(), r.Margin/2)
}

// Peer is one member of the cluster, as the driver of a member sees it.
type Peer struct {
	ID sbr.ID
	// Name stays the same after a restart: by it a member gets its former shards back.
	Name string
	// Roles are the member's, separated by commas: peers can be compared.
	Roles string
	// Born orders the members by age, smaller is older; ties go by ID. Zero: youngest of all.
	Born int64
	// Candidate says that the member offers to run the slots of the machine.
	Candidate bool
	// Leaving: the member leaves. Down: it was downed by a verdict or an order. Unreachable: this member does
	// not reach it.
	Leaving, Down, Unreachable bool
}

// PeerOf is a member that a resolver knows, as the driver of this one shows it to the machines.
func PeerOf(m *sbr.Member, candidate bool) Peer {
	return Peer{
		ID: m.ID, Name: m.Name, Born: m.Born, Roles: strings.Join(m.Roles, ","), Candidate: candidate,
		Unreachable: m.Unreachable, Leaving: m.Status == sbr.Leaving || m.Status == sbr.Exiting,
		Down: m.Status == sbr.Down,
	}
}

// View is the cluster as a member's resolver sees it.
type View struct {
	// Armed says that the member's resolver is armed: before that the member runs nothing.
	Armed bool
	// Verdict is the token of the newest verdict that it knows.
	Verdict uint64
	// Sure is when membership was last confirmed, on the driver's clock; negative: never. See downing.Peers.
	Sure time.Duration
	// Peers are all members that it knows, itself included or not. A machine keeps the View: do not change
	// Peers.
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

// Base is the state that all machines with slots share: a machine embeds it.
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

// Clone returns an independent copy without the effects.
func (b *Base) Clone() Base {
	c := *b
	c.Departed, c.out = slices.Clone(b.Departed), nil
	return c
}

// Begin begins a step at a time, and drops the effects of the last step.
func (b *Base) Begin(now time.Duration) {
	b.Now = max(b.Now, now)
	b.out = b.out[:0]
}

// Emit adds an effect to those of this step.
func (b *Base) Emit(e Effect) { b.out = append(b.out, e) }

// Effects returns the effects since Begin. The slice is valid until the next Begin.
func (b *Base) Effects() []Effect { return b.out }

// ExplainShard emits Explain about a slot; negative: about none.
func (b *Base) ExplainShard(t Topic, shard int, format string, args ...any) {
	b.Emit(Explain{Topic: t, Shard: shard, Text: fmt.Sprintf(format, args...)})
}

// Trusted reports whether, without a lease, this member may run anything at this moment.
func (b *Base) Trusted() bool {
	return b.Rules.UseLease || b.View.Sure >= 0 && b.Now < b.View.Sure+b.Rules.Trust
}

// Look replaces the view. It returns the members that are gone or were downed since the last view, as they were
// in it, candidates of either view as candidates; a member that is gone after it was downed is returned once.
func (b *Base) Look(v View) (departed []Peer) {
	old := b.View
	b.View = v
	for _, p := range old.Peers {
		if now := v.Peer(p.ID); !p.Down && (now == nil || now.Down) {
			p.Candidate = p.Candidate || now != nil && now.Candidate
			departed = append(departed, p)
		}
	}
	for i := range v.Peers {
		p := &v.Peers[i]
		if p.Down && old.Peer(p.ID) == nil {
			departed = append(departed, *p)
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

// Expire removes the margins that are over.
func (b *Base) Expire() {
	b.Departed = slices.DeleteFunc(b.Departed, func(d Departure) bool { return d.Until <= b.Now })
}

// Forget ends the margin of a member.
func (b *Base) Forget(id sbr.ID) {
	b.Departed = slices.DeleteFunc(b.Departed, func(d Departure) bool { return d.ID == id })
}

// Waits is the rest of the longest margin.
func (b *Base) Waits() (d time.Duration) {
	for _, g := range b.Departed {
		d = max(d, g.Until-b.Now)
	}
	return d
}

// Writer receives, for model checkers, everything that decides how a machine will behave: machines that
// behave alike write the same.
type Writer interface {
	Flags(all ...bool)
	Uint(n uint64)
	Text(s string)
	// Due is the time until at. All past times are the same.
	Due(at, now time.Duration)
	// View is all but Sure.
	View(v *View)
}

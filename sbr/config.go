package sbr

import (
	"errors"
	"fmt"
	"time"
)

// UnknownPolicy says what a side does when none of it can learn the state of the lease before the deadline.
type UnknownPolicy uint8

// The policies of the key when-lease-unknown.
const (
	// UnknownDown downs the side, as the reference does.
	UnknownDown UnknownPolicy = iota
	// UnknownSuspend stops the side's work and waits for the store, at most Config.SuspendTimeout.
	UnknownSuspend
)

// String returns the configuration value.
func (p UnknownPolicy) String() string {
	if p == UnknownSuspend {
		return "suspend"
	}
	return "down"
}

// MaxDuration is the longest duration of a setting. It keeps sums and products of durations from overflowing,
// which would make a deadline of what must never come: nobody waits six weeks for a decision.
const MaxDuration = 1000 * time.Hour

// Config are the resolver's rules. All members of a system must use the same (design deviation 13).
// Start from DefaultConfig; the zero Config does not validate.
type Config struct {
	// StableAfter is how long the view must not have changed before a decision. Zero decides at once. Auto:
	// what StableFor returns for the number of members while no member was unreachable. For strategies with a
	// lease only.
	StableAfter time.Duration
	// StableFor is what Auto means in a cluster of so many members. It must be the same function at all
	// members, and must not shrink as the cluster grows. Needed with Auto only; see timing.StableFor.
	StableFor func(members int) time.Duration
	// DownAllWhenUnstable downs all members when the view keeps changing for StableAfter plus this long. 0:
	// off. Auto: UnstableAfter.
	DownAllWhenUnstable time.Duration
	// DownAllWhenIndirectlyConnected turns a decision that downs indirectly connected members into down-all
	// once it downs this share of the members. 1 (Off): never; 0: always.
	DownAllWhenIndirectlyConnected float64
	// MinMembers is how many members must have been seen up before the resolver arms. At least 1.
	MinMembers int
	// SettleAfter is how long the view must not have changed after the start before the resolver arms.
	SettleAfter time.Duration
	// ReleaseAfter is how long the winner keeps the lease after the last downed member was removed.
	ReleaseAfter time.Duration
	// WhenLeaseUnknown is the policy when the store stays silent past LeaseDeadline.
	WhenLeaseUnknown UnknownPolicy
	// SuspendTimeout bounds UnknownSuspend.
	SuspendTimeout time.Duration
	// LeaseDeadline is how long a side tries to learn the state of the lease. It must be longer than
	// LeaseTimeout.
	LeaseDeadline time.Duration
	// LeaseTimeout bounds one attempt (lease-operation-timeout).
	LeaseTimeout time.Duration
	// LeaseRetry is the pause between two attempts after an unknown outcome.
	LeaseRetry time.Duration
	// HolderRetry is the pause between two attempts while an unreachable holder is watched
	// (heartbeat-interval).
	HolderRetry time.Duration
	// Watched lets the driver report each change of the lease (LeaseObserved). Where it does not, a loser
	// learns its standing when it asks or receives the verdict, and the first members read the lease every
	// StableAfter.
	Watched bool
}

const (
	// removeRetry is the pause between two attempts to remove members that were downed but are still listed.
	removeRetry = 2 * time.Second
	// passOnStep spaces the members of a side that pass a verdict on; the first one spares the others the
	// work.
	passOnStep = 500 * time.Millisecond
)

// defaultStableAfter is the reference's: it suits a hundred members.
const defaultStableAfter = 20 * time.Second

// DefaultConfig returns the reference's defaults.
func DefaultConfig() Config {
	return Config{
		StableAfter:                    defaultStableAfter,
		DownAllWhenUnstable:            UnstableAfter(defaultStableAfter),
		DownAllWhenIndirectlyConnected: 0.5,
		MinMembers:                     1,
		SettleAfter:                    5 * time.Second,
		ReleaseAfter:                   40 * time.Second,
		SuspendTimeout:                 10 * time.Minute,
		LeaseDeadline:                  15 * time.Second,
		LeaseTimeout:                   5 * time.Second,
		LeaseRetry:                     time.Second,
		HolderRetry:                    12 * time.Second,
		Watched:                        true,
	}
}

// Validate reports every problem at once, one line each.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bounded := func(key string, d time.Duration) {
		check(d <= MaxDuration, "%s is %v: it must be at most %v", key, d, MaxDuration)
	}
	notNegative := func(key string, d time.Duration) {
		check(d >= 0, "%s is %v: it must not be negative", key, d)
		bounded(key, d)
	}
	positive := func(key string, d time.Duration) {
		check(d > 0, "%s is %v: it must be more than 0s", key, d)
		bounded(key, d)
	}
	if c.StableAfter == Auto {
		check(c.StableFor != nil,
			"stable-after is auto: StableFor must say what that means in a cluster of some size")
	} else {
		notNegative("stable-after", c.StableAfter)
	}
	if c.DownAllWhenUnstable != Auto {
		notNegative("down-all-when-unstable", c.DownAllWhenUnstable)
	}
	notNegative("settle-after", c.SettleAfter)
	notNegative("release-after", c.ReleaseAfter)
	positive("suspend-timeout", c.SuspendTimeout)
	positive("lease-operation-timeout", c.LeaseTimeout)
	positive("lease-retry", c.LeaseRetry)
	positive("holder-retry", c.HolderRetry)
	check(c.LeaseDeadline <= 10*MaxDuration, "lease-deadline is %v: it must be at most %v", c.LeaseDeadline,
		10*MaxDuration)
	check(c.LeaseDeadline > c.LeaseTimeout, "lease-deadline is %v: it must be longer than lease-operation-timeout (%v)", c.LeaseDeadline, c.LeaseTimeout)
	check(c.DownAllWhenIndirectlyConnected >= 0 && c.DownAllWhenIndirectlyConnected <= 1,
		"down-all-when-indirectly-connected is %v: it must be on, off or a number from 0 to 1", c.DownAllWhenIndirectlyConnected)
	check(c.MinMembers >= 1, "min-members is %d: it must be at least 1", c.MinMembers)
	check(c.WhenLeaseUnknown <= UnknownSuspend, "when-lease-unknown is %d: it must be down or suspend",
		c.WhenLeaseUnknown)
	return errors.Join(errs...)
}

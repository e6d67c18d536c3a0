package sbr

import (
	"errors"
	"fmt"
	"time"
)

// Auto is the value of Config.StableAfter, and of Config.DownAllWhenUnstable, that stands for what suits the
// size of the cluster (design rule 19).
const Auto time.Duration = -1

// StableIn returns stable-after in a cluster of so many members.
func (c *Config) StableIn(members int) time.Duration {
	if c.StableAfter == Auto {
		return c.StableFor(members)
	}
	return c.StableAfter
}

// UnstableIn returns down-all-when-unstable in a cluster of so many members. Zero: off.
func (c *Config) UnstableIn(members int) time.Duration { return c.unstableWith(c.StableIn(members)) }

func (c *Config) unstableWith(stableAfter time.Duration) time.Duration {
	if c.DownAllWhenUnstable == Auto {
		return UnstableAfter(stableAfter)
	}
	return c.DownAllWhenUnstable
}

// UnstableAfter is down-all-when-unstable: on: three quarters of stable-after, at least 4 s (reference rule).
func UnstableAfter(stableAfter time.Duration) time.Duration {
	return max(4*time.Second, stableAfter*3/4)
}

// RemovalMargin is how long after the removal of a member that may have run something nothing starts in its
// place, if nothing else is set: stable-after, as in the reference. Under Auto it is the reference's 20 s:
// the two sides of a cut may count with other sizes, and this number must be the same everywhere.
func (c *Config) RemovalMargin() time.Duration {
	if c.StableAfter == Auto {
		return defaultStableAfter
	}
	return c.StableAfter
}

// errAutoAlone is what New answers where no lease arbitrates between members that count with different
// numbers.
var errAutoAlone = errors.New("stable-after is auto: it must be a duration, because the strategy needs no lease")

// measure takes the size of the cluster from a settled view: no member is unreachable and no check is under
// way. While this member is suspended the size stays as it was, so that a cut does not move the deadline that
// decides it. A member that is not armed has no settled view yet: it counts every member that it knows.
//
// Two sides of a cut may know different sizes, for as long as a join or a leave takes to spread, and decide
// that much apart. The lease makes that safe: one of them writes the verdict, whichever comes first. All that
// may be lost is that the larger side asks first. Without a lease nothing would arbitrate, so New refuses it
// there.
func (r *Resolver) measure() {
	frozen := r.armed && (r.suspects > 0 || r.question != nil)
	if r.cfg.StableAfter != Auto || frozen || r.sizedAt == r.version {
		return
	}
	r.size, r.sizedAt = r.present(), r.version
	stable := r.cfg.StableFor(r.size)
	if r.armed && stable != r.stable {
		r.explain(TopicTiming, "stable-after is %v now: auto, for %s", stable, plural(r.size, "member", "members"))
	}
	r.stable = stable
}

// stableAfter is stable-after in force: how long the view must not have changed before this member decides.
func (r *Resolver) stableAfter() time.Duration { return r.stable }

// leaseDeadline is how long a side tries to learn the state of the lease. Under Auto a side decides sooner,
// and so does a side that gets no answer: stable-after, but long enough for two tries that time out, and
// never more than LeaseDeadline.
func (r *Resolver) leaseDeadline() time.Duration {
	if r.cfg.StableAfter == Auto {
		return min(r.cfg.LeaseDeadline, max(r.stable, 2*r.cfg.LeaseTimeout+r.cfg.LeaseRetry))
	}
	return r.cfg.LeaseDeadline
}

// unstableAfter is down-all-when-unstable in force. Zero: off.
func (r *Resolver) unstableAfter() time.Duration { return r.cfg.unstableWith(r.stable) }

// autoText goes on a sentence with what stable-after is, if it is auto.
func (r *Resolver) autoText() string {
	if r.cfg.StableAfter != Auto {
		return ""
	}
	return fmt.Sprintf("; stable-after is %v: auto, for %s", r.stable, plural(r.size, "member", "members"))
}

package timing

import (
	"fmt"
	"time"
)

// Warning is a setting that is allowed but unsafe or pointless.
type Warning struct {
	// Key is the setting, as sbr.yaml calls it.
	Key string
	// Text is one sentence: what is wrong and what to set instead.
	Text string
}

// String returns key: text.
func (w Warning) String() string { return w.Key + ": " + w.Text }

func (in Input) warnings(r *Report) (ws []Warning) {
	warn := func(when bool, key, format string, args ...any) {
		if when {
			ws = append(ws, Warning{key, fmt.Sprintf(format, args...)})
		}
	}
	partial := in.StableAfter < r.LargestGap
	warn(partial, "stable-after", "%v is shorter than the longest time between two condemnations (%v): a side may decide on a partial view; use at least %v",
		in.StableAfter, round(r.LargestGap), r.StableAfter)
	warn(!partial && in.StableAfter < r.StableAfter, "stable-after", "%v is short for %d members; use at least %v",
		in.StableAfter, in.Members, r.StableAfter)
	warn(in.Unstable == 0, "down-all-when-unstable", "off: a partition that keeps changing is never decided")
	warn(in.Unstable > max(in.StableAfter, 4*time.Second), "down-all-when-unstable",
		"%v is longer than stable-after (%v): members may be removed by one side while they still run on the other", in.Unstable, in.StableAfter)
	warn(!in.Probes.On() && in.Members > 1, "probe", "off: only Serf's detector is left, and a node that is cut off alone may take %v to notice",
		round(r.Serf.Lone.Worst))
	if in.Lease {
		in.leaseWarnings(r, warn)
	}
	return ws
}

func (in Input) leaseWarnings(r *Report, warn func(when bool, key, format string, args ...any)) {
	warn(!in.Watch, "watch", "off: a loser learns of the verdict only when it asks, so both sides may be up for %v",
		round(r.DoubleActive.Asking))
	warn(in.HeartbeatInterval >= in.HeartbeatTimeout/2, "heartbeat-interval", "%v is not less than half of heartbeat-timeout (%v)",
		in.HeartbeatInterval, in.HeartbeatTimeout)
	// A holder trusts one heartbeat for at least 5/8 of the timeout; two intervals and a slow answer must fit in.
	warn(in.HeartbeatInterval < in.HeartbeatTimeout/2 && 2*in.HeartbeatInterval+in.LeaseTimeout > in.HeartbeatTimeout/8*5,
		"heartbeat-interval", "%v with a lease-operation-timeout of %v: a single failed heartbeat loses the lease (heartbeat-timeout %v)",
		in.HeartbeatInterval, in.LeaseTimeout, in.HeartbeatTimeout)
	warn(in.LeaseDeadline <= in.LeaseTimeout, "lease-operation-timeout", "%v leaves no second try before the decision deadline (%v)",
		in.LeaseTimeout, in.LeaseDeadline)
}

// round shortens a time for people.
func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

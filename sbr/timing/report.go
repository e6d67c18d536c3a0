package timing

import (
	"fmt"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// Input is everything the times follow from.
type Input struct {
	// Members is the number of members of the whole cluster.
	Members int
	// Gossip are the settings of Serf's failure detector.
	Gossip Gossip
	// Probes are the resolver's own probes; the zero value has none.
	Probes reachability.Settings
	// StableAfter is how long the view must not have changed before a decision; Auto: it follows from the
	// rest (StableFor).
	StableAfter time.Duration
	Auto        bool
	// Unstable is down-all-when-unstable. Zero: off.
	Unstable time.Duration
	// Lease says that the strategy asks for the lease; without it the fields below mean nothing.
	Lease bool
	// MinorityDelay is how long the smaller side waits before it asks.
	MinorityDelay time.Duration
	// LeaseTimeout bounds one operation, LeaseDeadline the whole attempt to learn the state of the lease.
	LeaseTimeout, LeaseDeadline time.Duration
	// LeaseRetry is the pause between two attempts.
	LeaseRetry time.Duration
	// HeartbeatTimeout and HeartbeatInterval are those of the lease.
	HeartbeatTimeout, HeartbeatInterval time.Duration
	// Watch says that every member watches the verdict.
	Watch bool
}

// roundTrip is generous for a request to an API server in the same region.
const roundTrip = 20 * time.Millisecond

// watchRoundTrips is how many round trips pass between the winner's write and the loser's end, at most, while
// both reach the store: the write's own answer, the watch event, one read to be sure, and a repetition of the
// last two.
const watchRoundTrips = 5

// telling is what a leader needs to reach the rest of its side with its decision: it repeats itself once a
// second, and gossip on a small side wastes some of it on members that are gone.
const telling = 3 * time.Second

// DoubleActive is how long both sides may be up after the winner's verdict was written (without a lease:
// after it decided).
type DoubleActive struct {
	// Watching: the loser reaches the store and watches the verdict.
	Watching time.Duration
	// Asking: the loser reaches the store but does not watch, so it learns when it asks for the lease itself.
	Asking time.Duration
	// CutOff: the loser does not reach the store; it goes down when it gave up asking. (Under
	// when-lease-unknown: suspend its work stops then, and it goes down after suspend-timeout.)
	CutOff time.Duration
}

// Report is what Compute found. All times count from the cut unless they say otherwise.
type Report struct {
	// Serf is what Serf's failure detector needs: on the larger side of an even split, and on a node that was
	// cut off alone.
	Serf Sides
	// Probes is what the resolver's own probes need; zero without them.
	Probes Sides
	// Detection is what counts: whichever of the two is done first.
	Detection Sides
	// LargestGap is the longest time between two failure detections by one side. A stable-after below it may
	// decide on a partial view.
	LargestGap time.Duration
	// Decision is when a side decides, with the lease: when it first asks for it.
	Decision Sides
	// Resolution is the longest until one side is up and the other down, as far as the store answers within
	// LeaseTimeout.
	Resolution time.Duration
	// ResolutionStoreDown is the same while the store is unreachable for one side or both.
	ResolutionStoreDown time.Duration
	// DoubleActive is the headline measure.
	DoubleActive DoubleActive
	// StableAfter is the recommended stable-after.
	StableAfter time.Duration
	// MinorityDelay is what lets the larger side always ask first. A shorter delay is safe: then the smaller
	// side may win.
	MinorityDelay time.Duration
	// Warnings are settings that are unsafe or pointless with these numbers.
	Warnings []Warning
	// Steps say where each of these times comes from; nil where there is nothing to cut.
	Steps []Step

	last []Sum // when each side decides at the latest
}

// Sides holds a time for the larger side of an even split and for a node that is cut off alone.
type Sides struct {
	Majority Span `json:"majority"`
	Lone     Span `json:"lone"`
}

// Compute works the report out. It never fails: settings that make no sense give times that make none, and a
// Warning.
func Compute(in Input) Report {
	in.Members = max(1, in.Members)
	r := in.detect()
	if in.Members > 1 {
		e := explainer{in: in, r: &r}
		e.explain()
	}
	r.Warnings = in.warnings(&r)
	return r
}

// larger is how many members the larger side of an even split has.
func (in Input) larger() int { return in.Members - in.Members/2 }

// detect works out when the two kinds of side know of the cut, how far apart the single condemnations may
// lie, and which stable-after fits.
func (in Input) detect() Report {
	r := Report{StableAfter: roundUp(Sizing(in.Members))}
	if in.Members < 2 {
		return r
	}
	g, n, big := in.Gossip, in.Members, in.larger()
	r.Serf = Sides{Majority: g.Detection(big, n), Lone: g.Detection(1, n)}
	r.Detection = r.Serf
	r.LargestGap = max(g.Gap(big, n), g.Gap(1, n))
	if in.Probes.On() {
		spread := g.Spread(n)
		r.Probes = Sides{Majority: Probing(in.Probes, n-big, spread), Lone: Probing(in.Probes, n-1, spread)}
		r.Detection = Sides{
			Majority: either(r.Serf.Majority, r.Probes.Majority), Lone: either(r.Serf.Lone, r.Probes.Lone),
		}
		// Two detectors take turns in being first, so only the whole width bounds the gap.
		r.LargestGap = max(r.Detection.Majority.width(), r.Detection.Lone.width())
	}
	r.StableAfter = roundUp(max(r.StableAfter, r.LargestGap+gapMargin(r.LargestGap)))
	r.MinorityDelay = roundUp(max(0, r.Detection.Majority.Worst-r.Detection.Lone.Fastest))
	return r
}

// gapMargin is what stable-after leaves beyond the largest gap.
func gapMargin(gap time.Duration) time.Duration { return max(time.Second, gap/5) }

func (s Span) width() time.Duration { return s.Worst - s.Fastest }

func roundUp(d time.Duration) time.Duration {
	if r := d.Truncate(time.Second); r != d {
		return r + time.Second
	}
	return d
}

// StableFor says what stable-after: auto is in a cluster of so many members over these two detectors: what
// Compute recommends. It is for sbr.Config.StableFor.
func StableFor(g Gossip, probes reachability.Settings) func(members int) time.Duration {
	return func(members int) time.Duration {
		return Input{Members: max(1, members), Gossip: g, Probes: probes}.detect().StableAfter
	}
}

// Sizing is the stable-after that the reference resolver recommends for so many members: it leaves gossip the
// time to agree. Between two rows of its table it is in proportion, and beyond the last one it grows no more.
func Sizing(members int) time.Duration {
	last := sizing[0]
	for _, row := range sizing {
		if members <= row.members {
			more := time.Duration(members-last.members) * (row.stableAfter - last.stableAfter)
			return last.stableAfter + max(0, more)/time.Duration(max(1, row.members-last.members))
		}
		last = row
	}
	return last.stableAfter
}

var sizing = []struct {
	members     int
	stableAfter time.Duration
}{
	{5, 7 * time.Second}, {10, 10 * time.Second}, {20, 13 * time.Second},
	{50, 17 * time.Second}, {100, 20 * time.Second}, {1000, 30 * time.Second},
}

// String says from when to when, rounded for people.
func (s Span) String() string { return short(s.Fastest) + " to " + short(s.Worst) }

// short rounds a time for people, to tenths of a second.
func short(d time.Duration) string { return d.Round(100 * time.Millisecond).String() }

// Warning is a setting that is allowed but unsafe or pointless.
type Warning struct {
	// Key is the setting, as sbr.yaml calls it.
	Key string `json:"key"`
	// Text is one sentence: what is wrong and what to set instead.
	Text string `json:"text"`
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
	warn(partial, "stable-after", "%v is shorter than the longest time between two failure detections (%v): a side may decide on a partial view; use at least %v",
		in.StableAfter, short(r.LargestGap), r.StableAfter)
	warn(!partial && in.StableAfter < r.StableAfter, "stable-after",
		"%v is short for %d members; use at least %v",
		in.StableAfter, in.Members, r.StableAfter)
	warn(in.Unstable == 0, "down-all-when-unstable", "off: a partition that keeps changing is never decided")
	warn(in.Unstable > max(in.StableAfter, 4*time.Second), "down-all-when-unstable",
		"%v is longer than stable-after (%v): members may be removed by one side while they still run on the other", in.Unstable, in.StableAfter)
	warn(!in.Probes.On() && in.Members > 1, "probe",
		"off: only Serf's detector is left, and a node that is cut off alone may take %v to notice",
		short(r.Serf.Lone.Worst))
	if in.Lease {
		in.leaseWarnings(r, warn)
	}
	return ws
}

func (in Input) leaseWarnings(r *Report, warn func(when bool, key, format string, args ...any)) {
	warn(!in.Watch, "watch",
		"off: a loser learns of the verdict only when it asks, so both sides may be up for %v",
		short(r.DoubleActive.Asking))
	warn(in.HeartbeatInterval >= in.HeartbeatTimeout/2, "heartbeat-interval",
		"%v is not less than half of heartbeat-timeout (%v)",
		in.HeartbeatInterval, in.HeartbeatTimeout)
	// A holder trusts one heartbeat for at least 5/8 of the timeout; two intervals and a slow answer must fit
	// in.
	warn(in.HeartbeatInterval < in.HeartbeatTimeout/2 && 2*in.HeartbeatInterval+
		in.LeaseTimeout > in.HeartbeatTimeout/8*5,
		"heartbeat-interval", "%v with a lease-operation-timeout of %v: a single failed heartbeat loses the lease (heartbeat-timeout %v)",
		in.HeartbeatInterval, in.LeaseTimeout, in.HeartbeatTimeout)
	warn(in.LeaseDeadline <= in.LeaseTimeout, "lease-operation-timeout",
		"%v leaves no second try before the decision deadline (%v)",
		in.LeaseTimeout, in.LeaseDeadline)
}

package timing

import "time"

// Input is everything the times follow from.
type Input struct {
	// Members is the number of members of the whole cluster.
	Members int
	// Gossip are the settings of Serf's failure detector.
	Gossip Gossip
	// Probes are the resolver's own probes; the zero value has none.
	Probes Probes
	// StableAfter is how long the view must not have changed before a decision.
	StableAfter time.Duration
	// Unstable is down-all-when-unstable. Zero: off.
	Unstable time.Duration
	// Lease says that the strategy asks for the lease; without it the fields below mean nothing.
	Lease bool
	// MinorityDelay is how long the smaller side waits before it asks.
	MinorityDelay time.Duration
	// LeaseTimeout bounds one operation, LeaseDeadline the whole attempt to learn the lease's fate.
	LeaseTimeout, LeaseDeadline time.Duration
	// LeaseRetry is the pause between two attempts. Zero: 1 s.
	LeaseRetry time.Duration
	// HeartbeatTimeout and HeartbeatInterval are those of the lease.
	HeartbeatTimeout, HeartbeatInterval time.Duration
	// LeaseRoundTrip is what one request to a healthy store is taken to last. Zero: 20 ms.
	LeaseRoundTrip time.Duration
	// Watch says that every member watches the verdict.
	Watch bool
}

// defaultRoundTrip is generous for a request to an API server in the same region; defaultRetry is that of the resolver.
const (
	defaultRoundTrip = 20 * time.Millisecond
	defaultRetry     = time.Second
)

// watchRoundTrips is how many round trips pass between the winner's write and the loser's end, at most, while both reach the store:
// the write's own answer, the watch event, one read to be sure, and a repetition of the last two.
const watchRoundTrips = 5

// telling is what a leader needs to reach the rest of its side with its decision: it repeats itself once a second, and gossip on a
// small side wastes some of it on members that are gone.
const telling = 3 * time.Second

// DoubleActive is how long both sides may be up after the winner's verdict was written (without a lease: after it decided).
type DoubleActive struct {
	// Watching: the loser reaches the store and watches the verdict.
	Watching time.Duration
	// Asking: the loser reaches the store but does not watch, so it learns when it asks for the lease itself.
	Asking time.Duration
	// CutOff: the loser does not reach the store; it goes down when it gave up asking. (Under when-lease-unknown: suspend its work
	// stops then, and it goes down after suspend-timeout.)
	CutOff time.Duration
}

// Report is what Compute found. All times count from the cut unless they say otherwise.
type Report struct {
	// Serf is what Serf's failure detector needs: on the larger side of an even split, and on a node that was cut off alone.
	Serf Sides
	// Probes is what the resolver's own probes need; zero without them.
	Probes Sides
	// Detection is what counts: whichever of the two is done first.
	Detection Sides
	// LargestGap is the longest time between two condemnations by one side. A stable-after below it may decide on a partial view.
	LargestGap time.Duration
	// Decision is when a side decides, with the lease: when it first asks for it.
	Decision Sides
	// Resolution is the longest until one side is up and the other down, as far as the store answers within LeaseTimeout.
	Resolution time.Duration
	// ResolutionStoreDown is the same while the store is unreachable for one side or both.
	ResolutionStoreDown time.Duration
	// DoubleActive is the headline measure.
	DoubleActive DoubleActive
	// StableAfter is the recommended stable-after.
	StableAfter time.Duration
	// MinorityDelay is what lets the larger side always ask first. A shorter delay is safe: then the smaller side may win.
	MinorityDelay time.Duration
	// Warnings are settings that are unsafe or pointless with these numbers.
	Warnings []Warning
}

// Sides holds a time for the larger side of an even split and for a node that is cut off alone.
type Sides struct {
	Majority, Lone Span
}

// Compute works the report out. It never fails: settings that make no sense give times that make none, and a Warning.
func Compute(in Input) Report {
	in.Members = max(1, in.Members)
	if in.LeaseRetry == 0 {
		in.LeaseRetry = defaultRetry
	}
	if in.LeaseRoundTrip == 0 {
		in.LeaseRoundTrip = defaultRoundTrip
	}
	r := Report{StableAfter: Sizing(in.Members)}
	if in.Members > 1 {
		r.detect(in)
		r.decide(in)
	}
	r.Warnings = in.warnings(&r)
	return r
}

// detect fills in when the two kinds of side know of the cut, and how far apart the single condemnations may lie.
func (r *Report) detect(in Input) {
	big := in.Members - in.Members/2
	spread := in.Gossip.Spread(in.Members)
	r.Serf = Sides{Majority: in.Gossip.Detection(big, in.Members), Lone: in.Gossip.Detection(1, in.Members)}
	r.Detection = r.Serf
	r.LargestGap = max(in.Gossip.Gap(big, in.Members), in.Gossip.Gap(1, in.Members))
	if in.Probes.On() {
		r.Probes = Sides{
			Majority: in.Probes.Detection(in.Members-big, spread),
			Lone:     in.Probes.Detection(in.Members-1, spread),
		}
		r.Detection = Sides{Majority: either(r.Serf.Majority, r.Probes.Majority), Lone: either(r.Serf.Lone, r.Probes.Lone)}
		// Two detectors take turns in being first, so only the whole width bounds the gap.
		r.LargestGap = max(r.Detection.Majority.width(), r.Detection.Lone.width())
	}
	r.StableAfter = max(Sizing(in.Members), roundUp(r.LargestGap+max(time.Second, r.LargestGap/5)))
}

func (s Span) width() time.Duration { return s.Worst - s.Fastest }

// decide fills in what follows from the detection once stable-after and the lease are added.
func (r *Report) decide(in Input) {
	big := in.Members - in.Members/2
	r.Decision = Sides{
		Majority: in.decision(r.Detection.Majority, in.Gossip.First(big, in.Members)),
		Lone:     in.decision(r.Detection.Lone, in.Gossip.First(1, in.Members)),
	}
	if in.Lease {
		r.Decision.Lone.Fastest += in.MinorityDelay
		r.Decision.Lone.Worst += in.MinorityDelay
	}
	told := max(r.Decision.Majority.Worst, r.Decision.Lone.Worst) + telling
	r.Resolution, r.ResolutionStoreDown = told, told
	// Anybody may win, so the winner's fastest decision is that of the faster side.
	since := told - min(r.Decision.Majority.Fastest, r.Decision.Lone.Fastest)
	r.DoubleActive = DoubleActive{Watching: since, Asking: since, CutOff: since}
	if in.Lease {
		r.Resolution += in.LeaseTimeout
		r.ResolutionStoreDown += in.givingUp()
		r.DoubleActive.Asking += in.LeaseTimeout
		r.DoubleActive.CutOff += in.givingUp()
		r.DoubleActive.Watching = min(watchRoundTrips*in.LeaseRoundTrip, r.DoubleActive.Asking)
	}
	r.MinorityDelay = roundUp(max(0, r.Detection.Majority.Worst-r.Detection.Lone.Fastest))
}

// givingUp is how long a side needs to give up that does not reach the store: the decision deadline, the attempt that is under way when
// it passes, and the one attempt that a member makes which is told to go down but has not tried itself.
func (in Input) givingUp() time.Duration {
	return in.LeaseDeadline + 2*(in.LeaseTimeout+in.LeaseRetry)
}

// decision adds stable-after. Each change of the view starts it anew, so the last condemnation counts; but a view that keeps
// changing is ended by down-all-when-unstable, counted from the first one.
func (in Input) decision(all, first Span) Span {
	d := Span{Fastest: all.Fastest + in.StableAfter, Worst: all.Worst + in.StableAfter}
	if in.Unstable > 0 {
		d.Worst = min(d.Worst, first.Worst+in.StableAfter+in.Unstable)
	}
	return d
}

func roundUp(d time.Duration) time.Duration {
	if r := d.Truncate(time.Second); r != d {
		return r + time.Second
	}
	return d
}

// Sizing is the stable-after that the reference resolver recommends for so many members: it leaves gossip the time to agree.
func Sizing(members int) time.Duration {
	for _, row := range sizing {
		if members <= row.members {
			return row.stableAfter
		}
	}
	return sizing[len(sizing)-1].stableAfter
}

var sizing = []struct {
	members     int
	stableAfter time.Duration
}{
	{5, 7 * time.Second}, {10, 10 * time.Second}, {20, 13 * time.Second},
	{50, 17 * time.Second}, {100, 20 * time.Second}, {1000, 30 * time.Second},
}

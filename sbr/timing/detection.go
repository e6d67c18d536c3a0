package timing

import (
	"fmt"
	"math"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// Gossip are the settings of Serf's failure detector (memberlist.Config) that its detection times follow
// from.
type Gossip struct {
	// ProbeInterval is the time between two probes of one node. Each probes one member at a time, in turn.
	ProbeInterval time.Duration
	// ProbeTimeout is how long a direct probe waits before others are asked to probe as well.
	ProbeTimeout time.Duration
	// SuspicionMult scales how long a suspect has to refute.
	SuspicionMult int
	// SuspicionMaxTimeoutMult is how many times longer that is as long as no node confirms the suspicion.
	SuspicionMaxTimeoutMult int
	// AwarenessMaxMultiplier bounds how much a node that doubts itself slows its probes down (Lifeguard).
	AwarenessMaxMultiplier int
	// IndirectChecks is how many other nodes are asked; each that does not answer adds one to the doubt.
	IndirectChecks int
	// GossipInterval and GossipNodes say how fast news spreads: so many nodes receive it each interval.
	GossipInterval time.Duration
	GossipNodes    int
}

// LAN returns memberlist.DefaultLANConfig (v0.7.0), Serf's default.
func LAN() Gossip {
	return Gossip{
		ProbeInterval: time.Second, ProbeTimeout: 500 * time.Millisecond,
		SuspicionMult: 4, SuspicionMaxTimeoutMult: 6, AwarenessMaxMultiplier: 8, IndirectChecks: 3,
		GossipInterval: 200 * time.Millisecond, GossipNodes: 3,
	}
}

// Profile returns the preset that Serf calls lan, wan or local: memberlist's defaults (v0.7.0).
func Profile(name string) (g Gossip, ok bool) {
	g = LAN()
	switch name {
	case "lan":
	case "wan":
		g.ProbeInterval, g.ProbeTimeout = 5*time.Second, 3*time.Second
		g.SuspicionMult = 6
		g.GossipInterval, g.GossipNodes = 500*time.Millisecond, 4
	case "local":
		g.ProbeTimeout = 200 * time.Millisecond
		g.SuspicionMult, g.IndirectChecks = 3, 1
		g.GossipInterval = 100 * time.Millisecond
	default:
		return Gossip{}, false
	}
	return g, true
}

// Profiles are the names that Profile knows.
func Profiles() []string { return []string{"lan", "wan", "local"} }

// Span is a time that is never shorter than Fastest and never longer than Worst.
type Span struct {
	Fastest, Worst time.Duration
}

// MarshalJSON writes both as Go writes durations.
func (s Span) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"fastest":%q,"worst":%q}`, s.Fastest, s.Worst), nil
}

// either is when the first of two independent detectors is done.
func either(a, b Span) Span {
	return Span{Fastest: min(a.Fastest, b.Fastest), Worst: min(a.Worst, b.Worst)}
}

// SuspicionMin is how long a suspect has to refute once enough others confirmed the suspicion:
// SuspicionMult * max(1, log10 n) * ProbeInterval (memberlist util.go, suspicionTimeout).
func (g Gossip) SuspicionMin(members int) time.Duration {
	scale := math.Max(1, math.Log10(math.Max(1, float64(members))))
	return time.Duration(g.SuspicionMult) * time.Duration(scale*1000) * g.ProbeInterval / 1000
}

// SuspicionMax is how long a suspect has to refute while no node confirms: SuspicionMaxTimeoutMult times
// SuspicionMin, or SuspicionMin itself where too few members exist for SuspicionMult-2 confirmations
// (memberlist state.go, suspectNode).
func (g Gossip) SuspicionMax(members int) time.Duration {
	confirmations := g.SuspicionMult - 2
	if confirmations < 1 || members-2 < confirmations {
		return g.SuspicionMin(members)
	}
	return time.Duration(g.SuspicionMaxTimeoutMult) * g.SuspicionMin(members)
}

// slowest is the longest that one probe can take: Lifeguard stretches the interval (memberlist awareness.go,
// ScaleTimeout).
func (g Gossip) slowest() time.Duration {
	return time.Duration(max(1, g.AwarenessMaxMultiplier)) * g.ProbeInterval
}

// failing is the time that n probes in a row take when none is answered: each adds up to IndirectChecks to
// the node's doubt in itself, and doubt stretches the next one (memberlist state.go, probeNode).
func (g Gossip) failing(n int) (total time.Duration) {
	step := time.Duration(max(1, g.IndirectChecks)) * g.ProbeInterval
	probe := g.ProbeInterval
	for ; n > 0 && probe < g.slowest(); n-- {
		total += probe
		probe += step
	}
	return total + time.Duration(max(0, n))*g.slowest()
}

// missed is the share of cuts in which a side of several members may take longer than Detection says.
const missed = 1.0 / 1000

// Detection bounds the time from a cut until Serf has told every one of side members that all the others are
// failed.
//
// Fastest is one probe that fails and the shortest suspicion: ProbeInterval + SuspicionMin.
//
// Worst is the probing until the last of the others is suspected, and SuspicionMax: confirmations shorten
// that, but on small sides they are often lost, since much of the gossip goes to the members behind the cut.
// The probing is the smaller of two bounds. One member alone probes in turn, in an order that is drawn anew
// for each pass. The last one to be found was probed just before the cut and is the last of the next pass: so
// come two passes over its own side, one failing probe for each of the others, and the suspects a second
// time, as long as they are not yet declared failed. Several members share the work: after x passes of one of
// them a member is still not probed with probability exp(-x * side), which gives the time until all are found
// but for one cut in a thousand.
func (g Gossip) Detection(side, members int) Span {
	others := members - side
	if side < 1 || others < 1 {
		return Span{}
	}
	again := min(g.failing(2*others-1)-g.failing(others), g.SuspicionMax(members)+g.slowest())
	alone := time.Duration(2*(side-1))*g.ProbeInterval + g.failing(others) + again
	pass := time.Duration(side-1)*g.ProbeInterval + g.failing(others)
	shared := time.Duration(float64(pass) * math.Log(float64(others)/missed) / float64(side)).Round(
		time.Millisecond)
	return Span{
		Fastest: g.ProbeInterval + g.SuspicionMin(members),
		Worst:   g.ProbeInterval + min(alone, shared) + g.SuspicionMax(members),
	}
}

// First bounds the time from a cut until some member of the side sees the first of the others as failed.
func (g Gossip) First(side, members int) Span {
	if side < 1 || members <= side {
		return Span{}
	}
	worst := time.Duration(2*side)*g.ProbeInterval + g.SuspicionMax(members)
	all := g.Detection(side, members)
	return Span{Fastest: all.Fastest, Worst: min(worst, all.Worst)}
}

// Gap bounds the time between two failure detections by one side. All suspicions last equally long while no
// node confirms them, so they end as far apart as they began: at most the suspects that are probed a second
// time, which ends when they are declared failed, and two slow probes.
func (g Gossip) Gap(side, members int) time.Duration {
	d := g.Detection(side, members)
	return min(d.Worst-d.Fastest, g.SuspicionMax(members)+2*g.slowest())
}

// Spread is how long news takes to reach all members by gossip: GossipNodes more receive it in each interval
// from every member that knows, and one interval passes before it starts.
func (g Gossip) Spread(members int) time.Duration {
	if members < 2 {
		return 0
	}
	rounds := math.Ceil(math.Log(float64(members)) / math.Log(float64(1+max(1, g.GossipNodes))))
	return time.Duration(1+rounds) * g.GossipInterval
}

// Probing bounds the time from a cut until own probes have told a side that all the others are unreachable;
// spread is how long members of the side take to tell each other.
//
// Fastest: the cut comes just before a round, and Tries probes in a row run into their timeout. Worst: the
// cut comes just after a round, Rounds follow, the last probe times out, and a report is repeated once before
// it has spread.
func Probing(p reachability.Settings, others int, spread time.Duration) Span {
	rounds := time.Duration(p.Rounds(others))
	if rounds == 0 {
		return Span{}
	}
	return Span{
		Fastest: time.Duration(max(1, p.Tries)-1)*p.Interval + p.Timeout,
		Worst:   (rounds+1)*p.Interval + p.Timeout + spread,
	}
}

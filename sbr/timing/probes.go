package timing

import "time"

// maxProbes is how many members one node probes in one round at most.
const maxProbes = 128

// Probes are the resolver's own reachability probes: direct, without Lifeguard's slow-down. The zero value: there are none.
type Probes struct {
	// Interval is the time between two rounds.
	Interval time.Duration
	// Timeout is how long one probe may take; shorter than Interval.
	Timeout time.Duration
	// Tries is how many probes in a row must fail.
	Tries int
	// Neighbours is how many members a node probes in a round, while all is well. Zero: no probes.
	Neighbours int
}

// On reports whether there are own probes.
func (p Probes) On() bool { return p.Neighbours > 0 && p.Interval > 0 }

// Rounds is how many rounds a node needs that lost others members at once: it doubles the number of members that it probes in each round
// in which probes fail, up to 128, and the last ones it adds must fail Tries times as well. Beyond 128 it goes on with the next ones.
func (p Probes) Rounds(others int) int {
	if !p.On() || others < 1 {
		return 0
	}
	rounds := max(1, p.Tries)
	width := min(p.Neighbours, maxProbes)
	for ; width < others && width < maxProbes; width = min(2*width, maxProbes) {
		rounds++
	}
	// Every third round goes to those that are known to be unreachable, which may take up the whole of it.
	further := max(1, p.Tries) * ((others - 1) / width)
	return rounds + further + (further+1)/2
}

// Detection bounds the time from a cut until own probes have told a side that all the others are unreachable; spread is how long
// members of the side take to tell each other.
//
// Fastest: the cut comes just before a round, and Tries probes in a row run into their timeout.
// Worst: the cut comes just after a round, Rounds follow, the last probe times out, and a report is repeated once before it has spread.
func (p Probes) Detection(others int, spread time.Duration) Span {
	rounds := time.Duration(p.Rounds(others))
	if rounds == 0 {
		return Span{}
	}
	return Span{
		Fastest: time.Duration(max(1, p.Tries)-1)*p.Interval + p.Timeout,
		Worst:   (rounds+1)*p.Interval + p.Timeout + spread,
	}
}

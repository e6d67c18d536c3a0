package scenario

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// unseen is when somebody notices whom nothing tells.
const unseen = time.Duration(math.MaxInt64)

// probing plays what the resolvers' own probes find on one side of a cut (package reachability): each member probes its neighbours
// on a ring, so many at first, twice as many in each round once anybody is in doubt, and misses whom it could not reach Tries times. Whom
// it misses it tells the others. A subject is unreachable when Neighbours members miss it, or as many as can still be asked: on
// a smaller side when all of them do, and the observer misses everybody else across the cut too.
type probing struct {
	reachability.Settings
	side, others int
	place        []int // on the ring: first the members of the side, then the others
	phase        []time.Duration
	doubled      []int // the round, counted from 1, in which a member first probes twice as many
	own          []time.Duration
	agreed       []time.Duration
	report       func() time.Duration
}

// newProbing draws the ring and the rounds. news is how long a report takes to get around at most.
func newProbing(p reachability.Settings, rng *rand.Rand, side, others int, news time.Duration) *probing {
	n := side + others
	b := &probing{
		Settings: p, side: side, others: others, place: rng.Perm(n), phase: make([]time.Duration, side), doubled: make([]int, side),
		report: func() time.Duration { return time.Duration(rng.Int64N(int64(news) + 1)) },
	}
	lost := make([]bool, n) // by place
	for x := range others {
		lost[b.place[side+x]] = true
	}
	first := unseen
	for i := range side {
		b.phase[i] = time.Duration(rng.Int64N(int64(p.Interval)))
		for rank := 1; rank <= min(p.Neighbours, n-1); rank++ {
			if lost[(b.place[i]+rank)%n] {
				b.doubled[i] = 2
				first = min(first, b.missedIn(i, 1))
				break
			}
		}
	}
	for i := range side {
		if b.doubled[i] == 0 && first < unseen { // a report is its first sign
			b.doubled[i] = int((first+news-b.phase[i])/p.Interval) + 2
		}
	}
	b.agree(first)
	return b
}

// missedIn is when a member misses whom it probes from that round on.
func (b *probing) missedIn(i, round int) time.Duration {
	return b.phase[i] + time.Duration(round-1+max(b.Tries, 1)-1)*b.Interval + b.Timeout
}

// missed is when member i misses x by its own probes.
func (b *probing) missed(i, x int) time.Duration {
	n := b.side + b.others
	rank := (b.place[b.side+x] - b.place[i] + n) % n
	switch {
	case rank <= b.Neighbours:
		return b.missedIn(i, 1)
	case rank > reachability.MaxProbes || b.doubled[i] == 0:
		return unseen
	default:
		return b.missedIn(i, b.doubled[i]-1+bits.Len(uint((rank-1)/b.Neighbours)))
	}
}

// agree works out when enough members miss each of the others, but for the time that reports take.
func (b *probing) agree(first time.Duration) {
	b.agreed = make([]time.Duration, b.others)
	b.own = make([]time.Duration, b.side)
	if first == unseen {
		for x := range b.agreed {
			b.agreed[x] = unseen
		}
		return
	}
	need := min(b.Neighbours, b.side)
	n := b.side + b.others
	at := make([]int, n) // the member at each place, counted from 1
	for i := range b.side {
		at[b.place[i]] = i + 1
	}
	for x := range b.others {
		var by []time.Duration
		for back := 1; back <= min(n-1, reachability.MaxProbes); back++ {
			if i := at[(b.place[b.side+x]-back+n)%n]; i > 0 {
				by = append(by, b.missed(i-1, x))
				if b.side < b.Neighbours {
					b.own[i-1] = max(b.own[i-1], by[len(by)-1])
				}
			}
		}
		slices.Sort(by)
		b.agreed[x] = unseen
		if len(by) >= need {
			b.agreed[x] = by[need-1]
		}
	}
}

// at is when member i finds x unreachable.
func (b *probing) at(i, x int) time.Duration {
	d := max(b.agreed[x], b.own[i])
	if d == unseen || b.side == 1 || d == b.missed(i, x) {
		return d
	}
	return d + b.report()
}

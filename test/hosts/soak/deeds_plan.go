//go:build linux

package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/internal/partial"
	"github.com/serf-sbr/serf-sbr/lease/etcd"
	"github.com/serf-sbr/serf-sbr/lease/kubernetes"
)

// What operators and platforms do meanwhile.
const (
	forceLeave    kind = "force-leave"
	forceCron     kind = "force-leave by cron"
	prune         kind = "force-leave -prune"
	stateLost     kind = "restarted without its state folder"
	restarted     kind = "agent restarted"
	rightsTaken   kind = "rights taken away"
	leaseDeleted  kind = "lease deleted"
	leaseReplaced kind = "lease replaced by an older one"
	etcdRestored  kind = "etcd restored"
	storeBack     kind = "store reached again" // by members that could not
	operatorDown  kind = "sbr down"
)

// deeds are in the order of the tables.
var deeds = []kind{
	forceLeave, forceCron, prune, stateLost, restarted, rightsTaken,
	leaseDeleted, leaseReplaced, etcdRestored, storeBack, operatorDown,
}

// moment is when a fault comes that does not come at a time.
type moment string

const (
	beforeCut    moment = "before the cut"
	afterVerdict moment = "after the verdict"
)

// family is what the rounds of a run have in common; without a name they have nothing.
type family string

const (
	mixed        family = ""
	forcedFamily family = "force-leave"
	recordFamily family = "record"
	linksFamily  family = "links"
	faultsFamily family = "links-and-faults"
	timesFamily  family = "times"
)

// families are those that have a name.
var families = []family{forcedFamily, recordFamily, linksFamily, faultsFamily, timesFamily}

// forgets reports whether the store is made to forget something.
func (k kind) forgets() bool { return k == leaseDeleted || k == leaseReplaced || k == etcdRestored }

// refuses says why a store of a kind cannot have a fault; empty: it can.
func refuses(store string, k kind) string {
	switch {
	case k == rightsTaken && store != kubernetes.Key:
		return store + " has no accounts here whose rights could be taken away"
	case k == etcdRestored && store != kubernetes.Key && store != etcd.Key:
		return store + " has no etcd that could be restored"
	default:
		return ""
	}
}

// forgets returns the fault that makes the store forget something; nil: there is none.
func (p *plan) forgets() *fault {
	if i := slices.IndexFunc(p.Faults, func(f fault) bool { return f.Kind.forgets() }); i >= 0 {
		return &p.Faults[i]
	}
	return nil
}

// What is drawn for deeds and families is kept apart from what is drawn for the rest.
const (
	ofDeeds  = 4 << 32
	ofForced = 5 << 32
	ofRecord = 6 << 32
	ofTimes  = 8 << 32
)

// newMixedPlan is that of newPlan, to which every third round adds a deed, and every sixth an operator's
// word.
func newMixedPlan(seed uint64, round int) plan {
	p := newPlan(seed, round)
	d := dice{rand.New(rand.NewPCG(seed, ofDeeds|uint64(round)))}
	if d.IntN(3) == 0 {
		d.deed(&p)
	}
	if d.IntN(6) == 0 {
		d.operator(&p)
	}
	return p
}

// operator downs a member, asking the agent of another member: before any has noticed the cut, while all are
// suspended, in the race, or after the verdict.
func (d dice) operator(p *plan) {
	pair := slices.Clone(hosts)
	d.Shuffle(len(pair), func(i, j int) { pair[i], pair[j] = pair[j], pair[i] })
	f := fault{Kind: operatorDown, At: d.moment(), Hosts: pair[:1], By: pair[1]}
	if d.IntN(3) == 0 {
		f.When, f.At = afterVerdict, d.between(0, 3*time.Second)
	}
	p.Faults = append(p.Faults, f)
	p.order()
}

// deed adds a deed, unless the plan has what it does not go with: a store that cannot be reached cannot be
// made to forget, and a member that learns nothing any more is the exception that the promise makes.
func (d dice) deed(p *plan) {
	var f fault
	switch x := d.IntN(100); {
	case x < 20:
		f = fault{Kind: forceCron, Hosts: hosts}
	case x < 35:
		f = fault{Kind: forceLeave, At: d.between(3*time.Second, 9*time.Second), Hosts: d.some(5)}
	case x < 45:
		f = fault{Kind: prune, At: d.between(3*time.Second, 9*time.Second), Hosts: d.some(5)}
	case x < 60:
		f = fault{Kind: stateLost, At: d.moment(), Hosts: d.some(1), Target: agent}
	case x < 70:
		f = fault{Kind: rightsTaken, At: d.between(0, 6*time.Second)}
		f.For = d.between(2*time.Second, 10*time.Second)
	default:
		f = d.forgetting([]kind{leaseDeleted, leaseReplaced, etcdRestored}[d.IntN(3)], d.IntN(4))
	}
	ofStore := slices.ContainsFunc(p.Faults, func(g fault) bool { return g.ofStore() })
	switch {
	case (f.Kind.forgets() || f.Kind == rightsTaken) && (ofStore || p.Shape == isolated):
	case f.Kind == stateLost && (p.has(kill) != nil || p.has(pause) != nil):
	case (f.Kind == forceCron || f.Kind == forceLeave || f.Kind == prune) && p.Mode == ownMode:
		// It takes no commands of serf.
	default:
		p.Faults = append(p.Faults, f)
		p.order()
	}
}

// forgetting makes the store forget at one of four moments.
func (d dice) forgetting(k kind, when int) fault {
	f := fault{Kind: k, Back: 1}
	switch when {
	case 0:
		f.When = beforeCut
	case 1:
		f.At = d.between(1500*time.Millisecond, 3500*time.Millisecond) // all are suspended
	case 2:
		f.At = d.between(4500*time.Millisecond, 6500*time.Millisecond) // they race
	default:
		f.When, f.At, f.Back = afterVerdict, d.between(0, 2*time.Second), 0
	}
	return f
}

// order sorts the faults by when they come.
func (p *plan) order() {
	rank := map[moment]int{beforeCut: -1, afterVerdict: 1}
	slices.SortStableFunc(p.Faults, func(a, b fault) int {
		if x := rank[a.When] - rank[b.When]; x != 0 {
			return x
		}
		return int(a.At - b.At)
	})
}

// cleanCut draws one of the cuts that make sides; number says of which shape.
func (d dice) cleanCut(p *plan, number int) {
	h := slices.Clone(hosts)
	d.Shuffle(len(h), func(i, j int) { h[i], h[j] = h[j], h[i] })
	switch number % 3 {
	case 0:
		p.Shape, p.Sides = halves, [][]string{h[:3], h[3:]}
	case 1:
		p.Shape, p.Sides = lone, [][]string{h[:4], h[4:]}
	default:
		p.Shape, p.Sides = threeWay, [][]string{h[:2], h[2:4], h[4:]}
	}
}

// stables are the stable-after of the rounds with force-leave.
var stables = []string{"5s", "20s"}

// newForcedPlan cuts, and a cron on each host removes what Serf calls failed: the three shapes of a cut with
// each stable-after in turn.
func newForcedPlan(seed uint64, round int) plan {
	d := dice{rand.New(rand.NewPCG(seed, ofForced|uint64(round)))}
	p := plan{Seed: seed, Round: round, Mode: moduleMode, Family: forcedFamily, Stable: stables[round/3%2]}
	p.Faults = []fault{{Kind: forceCron, Hosts: hosts}}
	if d.IntN(4) == 0 {
		p.Mode = debianMode
	}
	d.cleanCut(&p, round)
	p.RestartEarly = d.IntN(3) == 0
	return p
}

// reference are the stable-after of the rounds about times: the default, and the computed one.
var reference = []string{"20s", "auto"}

// newTimesPlan makes the two cuts of five hosts with each stable-after in turn, the rest as it is by default;
// in every other four rounds the smaller side loses the store as well.
func newTimesPlan(seed uint64, round int) plan {
	d := dice{rand.New(rand.NewPCG(seed, ofTimes|uint64(round)))}
	p := plan{Seed: seed, Round: round, Mode: moduleMode, Family: timesFamily, Faults: []fault{}}
	p.Stable = reference[round%2]
	d.cleanCut(&p, round/2%2)
	if round/4%2 == 0 {
		p.Faults = append(p.Faults, fault{Kind: storeSide, Hosts: sorted(p.Sides[1])})
	}
	return p
}

// newRecordPlan cuts, and the store forgets: each way to forget at each moment in turn. What is forgotten
// before the cut is told again before it; half of the time one or two agents restart in between.
func newRecordPlan(seed uint64, round int) plan {
	d := dice{rand.New(rand.NewPCG(seed, ofRecord|uint64(round)))}
	p := plan{Seed: seed, Round: round, Mode: moduleMode, Family: recordFamily}
	switch x := d.IntN(100); {
	case x < 20:
		p.Mode = debianMode
	case x < 45:
		p.Mode = ownMode
	}
	f := d.forgetting([]kind{leaseDeleted, leaseReplaced, etcdRestored}[round%3], round/3%4)
	p.Faults = []fault{f}
	if f.When == beforeCut && d.IntN(2) == 0 {
		again := fault{Kind: restarted, When: beforeCut, Hosts: d.some(2), Target: agent}
		p.Faults = append(p.Faults, again)
	}
	d.cleanCut(&p, d.IntN(3))
	p.RestartEarly = d.IntN(3) == 0
	if f.When == afterVerdict && d.IntN(2) == 0 {
		d.returning(&p)
	}
	return p
}

// returning keeps one side from the store until it has forgotten what another side decided. It goes back so
// far that the returning side sees that it has gone back.
func (d dice) returning(p *plan) {
	side := sorted(p.Sides[d.IntN(len(p.Sides))])
	f := &p.Faults[0]
	f.At, f.Back = d.between(0, time.Second), 1
	back := fault{Kind: storeBack, When: afterVerdict, Hosts: side}
	back.At = f.At + d.between(500*time.Millisecond, 1500*time.Millisecond)
	p.Faults = append(p.Faults, fault{Kind: storeSide, Hosts: side}, back)
	p.order()
}

// ofShape is the shape of a round that cuts the links of partial.Shapes[i].
func ofShape(i int) shape { return shape("links: " + partial.Shapes[i].Name) }

const ofLinks = 7 << 32

// newLinksPlan cuts links: each shape in turn, between hosts that are drawn, in each mode. Nothing else goes
// wrong, and the store is reached by all; or, in rounds with faults, one or two of the store's and pauses
// come besides.
func newLinksPlan(seed uint64, round int, family family) plan {
	d := dice{rand.New(rand.NewPCG(seed, ofLinks|uint64(round)))}
	p := plan{Seed: seed, Round: round, Mode: moduleMode, Family: family, Faults: []fault{}}
	switch x := d.IntN(100); {
	case x < 20:
		p.Mode = debianMode
	case x < 45:
		p.Mode = ownMode
	}
	i, place := round%len(partial.Shapes), d.Perm(len(hosts))
	p.Shape = ofShape(i)
	for len(p.Links) == 0 { // at random it can be none
		for _, l := range partial.Cut(i, len(hosts), d.Rand) {
			p.Links = append(p.Links, link{hosts[place[l[0]]], hosts[place[l[1]]]})
		}
	}
	if family == faultsFamily {
		d.faultsOfStore(&p)
	}
	return p
}

// faultsOfStore draws one or two faults that a cut of links goes with. No side loses the store: there are
// none.
func (d dice) faultsOfStore(p *plan) {
	for n := 1 + d.IntN(2); len(p.Faults) < n; {
		f := d.fault(&plan{Mode: p.Mode, Sides: [][]string{hosts}})
		again := slices.ContainsFunc(p.Faults, func(g fault) bool {
			return g.Kind == f.Kind || g.ofStore() && f.ofStore()
		})
		if !again && (f.ofStore() && f.Kind != storeSide || f.Kind == pause) {
			p.Faults = append(p.Faults, f)
		}
	}
	p.order()
	p.ContinueEarly = d.IntN(2) == 0 && !slices.ContainsFunc(p.hit(pause), p.cutOffFromStore)
}

// possible is how many hosts can all reach each other, by the links that are cut; zero for rounds that are
// not about links.
func (p *plan) possible() int {
	if p.Family != linksFamily && p.Family != faultsFamily {
		return 0
	}
	var cut [][2]int
	for _, l := range p.Links {
		cut = append(cut, [2]int{slices.Index(hosts, l.From), slices.Index(hosts, l.To)})
	}
	return partial.Possible(len(hosts), cut)
}

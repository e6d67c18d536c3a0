package simulator

import (
	"fmt"
	"time"
)

// deeds happen in most clusters, at any time around the decisions.
func (r *dice) deeds(b *Scenario, decision time.Duration) {
	if r.coin(0.25) {
		b.base.Cluster.ReapAfter = r.span(time.Second, 2*time.Minute)
	}
	for range min(r.IntN(4), r.IntN(4)) {
		at := r.span(0, 4*decision+time.Minute)
		b.At(at, r.deed(at, decision))
	}
	if r.coin(0.4) {
		b.At(r.span(0, 4*decision+time.Minute), r.down())
	}
}

// deed is one of them.
func (r *dice) deed(at, decision time.Duration) Nemesis {
	one := func(f func(name string) Nemesis) Nemesis { return OnRandom(1, f) }
	length := r.span(time.Second, 2*decision+time.Second)
	switch n := r.IntN(12); {
	case n < 2:
		return OnGroup(0, ForceLeave)
	case n < 4: // on one member, which tells those that it reaches
		return one(func(on string) Nemesis {
			return OnGroup(0, func(names ...string) Nemesis { return ForceLeaveOn(on, names...) })
		})
	case n < 6: // by cron, on every host
		times := 2 + r.IntN(6)
		return Repeat(times, r.span(time.Second, 10*time.Second), func(p *Plan) { p.Play(ForceLeave(p.Members()...)) })
	case n < 7:
		return one(RestartWithoutState)
	case n < 8:
		return one(func(name string) Nemesis { return RestartAs(name, fmt.Sprintf("m%d", at/time.Millisecond)) })
	case n < 9:
		return OnGroup(0, func(names ...string) Nemesis { return NoRights(length, names...) })
	case n < 10:
		return r.link(decision)
	case n < 11:
		return ForgetLease()
	default:
		return RestoreLease(r.span(0, at))
	}
}

// link cuts one link and mends it, or mends a link that another step has cut.
func (r *dice) link(decision time.Duration) Nemesis {
	wait := r.span(0, 2*decision)
	return func(p *Plan) {
		if pair := p.shuffled(); len(pair) > 1 {
			p.Play(Sequence(Maybe(0.8, Cut(pair[0], pair[1])), Wait(wait), Mend(pair[0], pair[1])))
		}
	}
}

// down lets an operator down a member by asking another member.
func (r *dice) down() Nemesis {
	return func(p *Plan) {
		if pair := p.shuffled(); len(pair) > 1 {
			p.Play(Down(pair[0], pair[1]))
		}
	}
}

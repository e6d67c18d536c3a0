package explore

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// walkCarrier turns what a resolver wants done in one step into effects that can be compared.
type walkCarrier struct {
	m           *walkMember
	r           *sbr.Resolver
	at          time.Duration
	first, last uint64 // the newest attempts before and after the step
	unrest      walkUnrest
	ticked      bool // a deadline is what happened
	effects     walkEffects
}

func (c *walkCarrier) carry(effects []sbr.Effect) {
	who, w := int8(c.m.i), c.m.w
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case sbr.ReadLease:
			c.ask(e.Attempt, walkEvent{what: walkRead})
		case sbr.AcquireLease:
			c.wrong(w.wrongAcquire(c.m.i, c.r))
			verdict := walkRecord{verdict: toWalkVerdict(&e.Verdict)}
			c.ask(e.Attempt, walkEvent{what: walkAcquire, base: uint16(e.Base), mask: walkBits(e.TakeOver), record: verdict})
		case sbr.RestoreVerdict:
			c.ask(e.Attempt, walkEvent{what: walkRestore, record: walkRecord{verdict: toWalkVerdict(&e.Verdict)}})
		case sbr.ReleaseLease:
			c.ask(e.Attempt, walkEvent{what: walkRelease})
		case sbr.TellVerdict:
			c.tell(e.Targets, walkEvent{what: walkTold, who: who, record: walkRecord{verdict: toWalkVerdict(&e.Verdict)}})
		case sbr.TellOrder:
			c.tell(e.Targets, walkEvent{what: walkOrdered, who: who, flag: uint8(e.Order.Kind), mask: walkBits(e.Order.Down), suspects: walkBits(e.Order.Suspects)})
		case sbr.AskToRace:
			c.tell(e.Targets, walkEvent{what: walkAsked, who: who, suspects: walkBits(e.Suspects)})
		case sbr.AskStanding:
			c.effects.effects = append(c.effects.effects, walkEffect{ask: true})
		case sbr.Remove:
			for _, id := range e.IDs {
				c.carry(c.r.Step(c.at, sbr.MemberGone{ID: id}))
			}
		case sbr.Explain:
			c.decided(e.Decision)
		}
	}
}

// decided looks at a decision; nil is none.
func (c *walkCarrier) decided(d *sbr.Decision) {
	switch {
	case d == nil:
	case d.Final == sbr.DownAll && (c.unrest.on || c.m.w.lease):
		c.effects.unrest = c.m.w.lease
		c.wrong(c.m.w.wrongUnrest(c.m.i, c.unrest))
	case c.ticked && c.unrest.on && (d.Final.NeedsLease() || !c.m.w.lease):
		c.wrong(&wrong{"stable", walkName(c.m.i) + " decides although its view was not stable for long enough"})
	}
}

// ask notes a request to the store. Its age is turned round at the end, when the newest attempt is known.
func (c *walkCarrier) ask(attempt uint64, e walkEvent) {
	c.last = max(c.last, attempt)
	c.effects.effects = append(c.effects.effects, walkEffect{event: c.m.w.events.intern(e), age: uint16(attempt - c.first)})
}

// tell notes a message. It reaches members of the same side only.
func (c *walkCarrier) tell(to []sbr.ID, e walkEvent) {
	c.effects.effects = append(c.effects.effects, walkEffect{event: c.m.w.events.intern(e), to: walkBits(to) & c.m.w.mates[c.m.i]})
}

func (c *walkCarrier) wrong(x *wrong) { c.effects.wrong = c.effects.wrong.or(x) }

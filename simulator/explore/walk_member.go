package explore

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

const (
	// walkFirstAttempt leaves room for answers that are older than the resolver that gets them
	// (sbr.Resolver.SkipAttempts).
	walkFirstAttempt = 1 << 20
	// walkPause is what a member that was paused believes: long enough to matter.
	walkPause = time.Minute
	never     = time.Duration(math.MaxInt64)
)

// walkMember knows all states in which one member's resolver was seen, and what followed from each.
type walkMember struct {
	w       *walker
	i       int
	locals  []walkLocal // zero stands for a member that has ended
	index   map[string]uint32
	steps   []walkEffects
	stepped map[walkStepKey]uint32
	later   map[walkLaterKey]uint32
	answers map[walkAnswerKey]uint32
	buf     []byte
}

// walkLocal is one state of a resolver.
type walkLocal struct {
	r       *sbr.Resolver
	at      time.Duration // the moment of r's clock that this is about
	last    uint64        // the number of its newest attempt
	due     time.Duration // how long until its next deadline
	busy    bool          // it is not simply up
	suspect bool          // a member is unreachable
	racing  bool          // it races for the lease
	out     uint8         // the members that it keeps out
	reach   uint8         // the others that it reaches, downed ones included
	failed  uint8         // the members that it lists and cannot reach
	verdict walkVerdict   // the newest it knows
	wrong   *wrong        // a promise that this state breaks
	unrest  walkUnrest
}

type (
	walkStepKey struct {
		local, event uint32
		age          uint16
	}
	walkLaterKey struct {
		local uint32
		by    time.Duration
	}
	walkAnswerKey struct {
		local uint32
		to    uint8
	}
)

// walkEffects are what one step of one resolver does.
type walkEffects struct {
	to       uint32 // the state after it; zero: it has gone down
	attempts uint16 // how many new attempts it made
	effects  []walkEffect
	wrong    *wrong
}

// walkEffect is one of them: a request to the store, a message to others, or the question about the own
// standing.
type walkEffect struct {
	event uint32
	age   uint16 // of a request, after the step
	to    uint8  // receivers of a message
	ask   bool   // the question
}

func (m *walkMember) init(w *walker, i int) {
	m.w, m.i = w, i
	m.locals = make([]walkLocal, 1)
	m.steps = make([]walkEffects, 1)
	m.index, m.stepped = make(map[string]uint32), make(map[walkStepKey]uint32)
	m.later, m.answers = make(map[walkLaterKey]uint32), make(map[walkAnswerKey]uint32)
}

// intern numbers the state in which r is at the moment at. Equal encodings are one state.
func (m *walkMember) intern(r *sbr.Resolver, at time.Duration, last uint64, u walkUnrest) uint32 {
	if r.Suspects() == 0 {
		u = walkUnrest{}
	}
	m.buf = u.append(r.AppendState(m.buf[:0], at))
	if n, ok := m.index[string(m.buf)]; ok {
		return n
	}
	l := walkLocal{
		r: r, at: at, last: last, due: never, unrest: u,
		busy: r.State() != sbr.StateUp, suspect: r.Suspects() > 0, racing: r.State() == sbr.StateWaiting,
	}
	if due, ok := r.NextDeadline(); ok {
		l.due = max(due-at, 0)
	}
	v := r.Verdict()
	l.verdict = toWalkVerdict(&v)
	l.out = m.w.outOf(r)
	for _, other := range r.Snapshot().Members {
		if !other.Unreachable && other.ID != walkID(m.i) {
			l.reach |= 1 << walkIndex(other.ID)
		}
		if other.Unreachable && !other.Unlisted {
			l.failed |= 1 << walkIndex(other.ID)
		}
	}
	l.wrong = m.w.wrongLocal(m.i, &l)
	n := uint32(len(m.locals))
	m.locals = append(m.locals, l)
	m.index[string(m.buf)] = n
	return n
}

// outOf are the members that r keeps out.
func (w *walker) outOf(r *sbr.Resolver) (mask uint8) {
	for j := range w.n {
		if seen, known := seenBy(r, j); (known || j < w.first) && r.KeptOut(walkID(j), seen) {
			mask |= 1 << j
		}
	}
	return mask
}

// seenBy is the token that member j had read when it started, as far as r knows.
func seenBy(r *sbr.Resolver, j int) (token uint64, known bool) {
	m, known := r.Member(walkID(j))
	return m.Seen, known
}

// wait is the state after some time in which nothing happens.
func (m *walkMember) wait(local uint32, by time.Duration) uint32 {
	key := walkLaterKey{local, by}
	n, ok := m.later[key]
	if !ok {
		l := m.locals[local]
		n = m.intern(l.r, l.at+by, l.last, l.unrest.later(by, m.w.Resolver.StableAfter))
		m.later[key] = n
	}
	return n
}

// step is what an event does in a state.
func (m *walkMember) step(local, event uint32, age uint16) *walkEffects {
	key := walkStepKey{local, event, age}
	n, ok := m.stepped[key]
	if !ok {
		n = uint32(len(m.steps))
		m.steps = append(m.steps, m.work(local, event, age))
		m.stepped[key] = n
	}
	return &m.steps[n]
}

func (m *walkMember) work(local, event uint32, age uint16) walkEffects {
	l := m.locals[local]
	r := l.r.Clone()
	t, last, unrest := m.run(r, &l, event, age)
	if r.State() != sbr.StateDown {
		t.to = m.intern(r, l.at, last, unrest)
	}
	if event == 0 {
		t.wrong = t.wrong.or(m.w.wrongTick(m.i, &m.locals[t.to], t.to))
	}
	return t
}

// run lets an event happen to r, which is in the state l. It returns what r wants done, without the state
// after it, and what l becomes.
func (m *walkMember) run(r *sbr.Resolver, l *walkLocal, event uint32, age uint16) (
	t walkEffects, last uint64, unrest walkUnrest) {
	e := m.w.events.all[event]
	c := walkCarrier{m: m, r: r, at: l.at, first: l.last, last: l.last, unrest: l.unrest,
		ticked: e.what == walkTick}
	switch e.what {
	case walkTick:
		c.carry(r.Tick(l.at))
	case walkSight:
		reached := l.reach>>e.who&1 == 1
		if reached != (e.flag == sightBack) && l.out>>e.who&1 == 0 {
			c.unrest = c.unrest.changed()
		}
		if e.flag == sightBack {
			// it may have been removed meanwhile
			c.carry(r.Step(l.at, sbr.MemberSeen{Member: walkLife(int(e.who), e.base)}))
		}
		c.carry(r.Step(l.at, e.event(0)))
	case walkMet:
		c.carry(r.Step(l.at, sbr.MemberSeen{Member: walkLife(int(e.who), e.base)}))
		for _, id := range walkIDs(e.mask) {
			c.carry(r.Step(l.at, sbr.MemberGone{ID: id, Ended: true}))
		}
	case walkLeft:
		m := walkLife(int(e.who), e.base)
		m.Status = sbr.Leaving
		c.carry(r.Step(l.at, sbr.MemberSeen{Member: m}))
		c.carry(r.Step(l.at, e.event(0)))
	case walkUnlisted:
		if o, ok := r.Member(walkID(int(e.who))); ok && o.Unreachable && !o.Unlisted { // an answer refutes it
			c.carry(r.Step(l.at, e.event(0)))
		}
	default:
		c.carry(r.Step(l.at, e.event(l.last-uint64(age))))
	}
	t = c.done()
	return t, c.last, c.unrest
}

// answer is what the member says when another asks for its standing; zero: nothing.
func (m *walkMember) answer(local uint32, to int) uint32 {
	key := walkAnswerKey{local, uint8(to)}
	n, ok := m.answers[key]
	if !ok {
		if e := m.locals[local].answer(to); e != nil {
			n = m.w.events.intern(toWalkEvent(e))
		}
		m.answers[key] = n
	}
	return n
}

func (l *walkLocal) answer(to int) sbr.Event {
	seen, _ := seenBy(l.r, to)
	return l.r.Answer(walkID(to), seen)
}

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
			c.ask(e.Attempt, walkEvent{what: walkAcquire, base: uint16(e.Base), mask: walkBits(e.TakeOver),
				record: verdict})
		case sbr.RestoreVerdict:
			c.ask(e.Attempt, walkEvent{what: walkRestore, record: walkRecord{verdict: toWalkVerdict(&e.Verdict)}})
		case sbr.ReleaseLease:
			c.ask(e.Attempt, walkEvent{what: walkRelease})
		case sbr.TellVerdict:
			c.tell(e.Targets, walkEvent{what: walkTold, who: who,
				record: walkRecord{verdict: toWalkVerdict(&e.Verdict)}})
		case sbr.TellOrder:
			c.tell(e.Targets, walkEvent{what: walkOrdered, who: who, flag: uint8(e.Order.Kind),
				mask: walkBits(e.Order.Down), suspects: walkBits(e.Order.Suspects)})
		case sbr.AskToRace:
			said := walkEvent{what: walkAsked, who: who, suspects: walkBits(e.Suspects)}
			if e.Contact {
				said.flag = 1
			}
			c.tell(e.Targets, said)
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

// done is what the step does, now that the newest attempt is known.
func (c *walkCarrier) done() walkEffects {
	t := c.effects
	t.attempts = uint16(c.last - c.first)
	for k := range t.effects {
		if x := &t.effects[k]; c.m.w.events.all[x.event].request() {
			x.age = t.attempts - x.age
		}
	}
	return t
}

// decided looks at a decision; nil is none.
func (c *walkCarrier) decided(d *sbr.Decision) {
	switch {
	case d == nil:
	case d.Final == sbr.DownAll && c.m.w.lease:
		c.wrong(&wrong{"L1", walkName(c.m.i) + " downs all although a lease decides"})
	case d.Final == sbr.DownAll && c.unrest.on:
		c.wrong(c.m.w.wrongUnrest("L1", c.m.i, c.unrest, "downs all"))
	case c.ticked && c.unrest.on && d.Final.NeedsLease():
		c.wrong(c.m.w.wrongUnrest("stable", c.m.i, c.unrest,
			"decides although its view was not stable for long enough"))
	case c.ticked && c.unrest.on && !c.m.w.lease:
		c.wrong(&wrong{"stable", walkName(c.m.i) + " decides although its view was not stable for long enough"})
	}
}

// ask notes a request to the store. Its age is turned round at the end, when the newest attempt is known.
func (c *walkCarrier) ask(attempt uint64, e walkEvent) {
	c.last = max(c.last, attempt)
	c.effects.effects = append(c.effects.effects,
		walkEffect{event: c.m.w.events.intern(e), age: uint16(attempt - c.first)})
}

// tell notes a message. It reaches members of the same side only.
func (c *walkCarrier) tell(to []sbr.ID, e walkEvent) {
	c.effects.effects = append(c.effects.effects,
		walkEffect{event: c.m.w.events.intern(e), to: walkBits(to) & c.m.w.mates[c.m.i]})
}

func (c *walkCarrier) wrong(x *wrong) { c.effects.wrong = c.effects.wrong.or(x) }

// walkUnrest is what a bystander notes of one member's view, to judge down-all-when-unstable: since when it
// has been changing, and since when it has not. The zero value is a view that is stable.
type walkUnrest struct {
	on          bool
	since, last time.Duration // how long ago it began, and was fed
}

// changed notes a change.
func (u walkUnrest) changed() walkUnrest {
	return walkUnrest{on: true, since: u.since}
}

// later lets time pass. A view that did not change for as long as makes it stable is at rest.
func (u walkUnrest) later(by, stable time.Duration) walkUnrest {
	if !u.on || u.last+by >= stable {
		return walkUnrest{}
	}
	u.since += by
	u.last += by
	return u
}

func (u walkUnrest) append(b []byte) []byte {
	if !u.on {
		return b
	}
	return binary.AppendVarint(binary.AppendVarint(b, int64(u.since)), int64(u.last))
}

// wrongUnrest looks at a member that goes by a view that keeps changing: it downs all, or races for the
// lease.
func (w *walker) wrongUnrest(promise string, i int, u walkUnrest, does string) *wrong {
	if need := w.Resolver.StableAfter + w.Resolver.DownAllWhenUnstable; u.since < need {
		return &wrong{promise, fmt.Sprintf("%s %s, and its view has not kept changing for %v", walkName(i),
			does, need)}
	}
	return nil
}

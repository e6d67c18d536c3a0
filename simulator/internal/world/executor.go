package world

import (
	"slices"
	"strconv"
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// executor runs a slot on one process: its run, and its way to the lease. The machine of its driver decides.
type executor struct {
	p      *process
	slot   *slot
	driver *driver
	shard  int // its number at the driver
	slotLease
	run    *run   // nil: none has been started, or nothing of it is left
	ending uint64 // the number of the last run that has ended
}

func (t *executor) init(d *driver, s *slot, shard int) {
	t.p, t.slot, t.driver, t.shard = d.p, s, d, shard
	if s.UseLease {
		t.openLease()
	}
}

// tell hands an event to the machine: what has become of a run or of a lease.
func (t *executor) tell(e core.Event) { t.driver.step(t.driver.first, e) }

// trust is how long runs without a lease go on after the process was last sure of its membership.
func (t *executor) trust() time.Duration {
	if at, ok := t.driver.first.Until(); ok {
		return at - t.driver.view.Sure
	}
	return t.slot.rules.Trust
}

// start starts a run.
func (t *executor) start(e core.Start) {
	s, w := t.slot, t.p.w
	r := &run{
		executor: t, number: e.Run, seq: len(s.runs) + 1, token: e.Token, from: e.From,
		verdict: t.p.r.Verdict().Token, stored: w.store.verdict().Token, startedAt: w.now,
	}
	w.note(t.p, "starts", "%s: run %d of all, token %d, from %s, state %s", s.Name, r.seq, r.token, r.from,
		string(e.State))
	if s.shardOf != nil {
		s.shardOf.moves(r)
	}
	from := s.ranOn(r.from)
	for _, o := range s.live {
		if r.unknowing(o) || from != nil && (slices.Contains(from.unmet, o) || slices.Contains(o.unmet, from)) {
			r.unmet = append(r.unmet, o)
		}
	}
	s.alone(r)
	s.allowed(r)
	s.ordered(r)
	s.inherits(r, e.State)
	t.run = r
	s.runs, s.live = append(s.runs, r), append(s.live, r)
	s.outcome.Starts++
	if e.From != "" {
		s.outcome.HandedOver++
	}
	if s.coordinates != nil {
		t.p.shardHost(s.coordinates).coordinate(r)
		return // what a coordinator writes are its orders, and hosts are what they arrive at
	}
	r.writeLater()
	if s.EndsAfter > 0 {
		w.after(w.between(s.EndsAfter/2, s.EndsAfter), t.p, r.endsByItself)
	}
}

// notStarted tells the machine that nothing came of a run: the process stood still, and its lease is over,
// unnoticed yet.
func (t *executor) notStarted(e core.Start) {
	const why = "it may not work already"
	t.p.w.note(t.p, "not-started", "%s: %s", t.slot.Name, why)
	t.ending = e.Run
	t.p.w.after(0, t.p, func() {
		t.forfeit(t.grant, why)
		t.tell(core.RunEnded{Shard: t.shard, Run: e.Run, State: e.State, Again: true, Rest: restsFor, Why: why})
	})
}

// stop asks the executor's run to end.
func (t *executor) stop(number uint64, cause string) {
	r, w := t.run, t.p.w
	if number == t.ending {
		return // it has ended by itself, and the machine is about to hear of it
	}
	if r == nil || r.number != number || r.asked {
		t.slot.broken(6, "%s stops the run %d of %s, which does not run or was asked to stop before", t.p.id,
			number, t.slot)
		return
	}
	r.asked = true
	w.note(t.p, "stops", "%s: run %d of all: %s", t.slot.Name, r.seq, cause)
	w.after(w.between(0, t.slot.StopTakes), t.p, func() { r.end(core.RunEnded{Run: r.number}) })
}

// end says that nothing of the run is left. What it leaves behind for the next one is its token.
func (r *run) end(e core.RunEnded) {
	t := r.executor
	if r.over || !t.driver.of.works() {
		return
	}
	r.cease()
	t.ending = e.Run
	e.State = strconv.AppendUint(nil, r.token, 10)
	e.Shard = t.shard
	t.tell(e)
}

// cease is the end of a run, known to the machine or not.
func (r *run) cease() {
	t := r.executor
	r.over, r.endedAt = true, t.p.w.now
	t.p.w.note(t.p, "ended", "%s: run %d of all", t.slot.Name, r.seq)
	t.run = nil
	t.slot.live = slices.DeleteFunc(t.slot.live, func(o *run) bool { return o == r })
	if t.slot.coordinates != nil {
		t.p.shardHost(t.slot.coordinates).endCoordinator()
	}
}

// vanish is the end of the process.
func (t *executor) vanish() {
	if t.run != nil {
		t.run.cease()
	}
}

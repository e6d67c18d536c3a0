package world

import (
	"slices"
	"strconv"
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
)

// berth is where a slot runs on one process: its run, and its way to the lease. Whose machine decides is the keeper.
type berth struct {
	p      *process
	slot   *slot
	keeper keeper
	tenancy
	run    *run   // nil: none has been started, or nothing of it is left
	ending uint64 // the number of the last run that has ended
}

// keeper is the machine that decides over berths, with what drives it: a seat, or a station.
type keeper interface {
	// works reports whether the process still drives it.
	works() bool
	// trust is how long runs without a lease go on after the process was last sure of its place.
	trust() time.Duration
	// tell hands RunEnded, LeaseAnswer, LeaseLost and LeaseReleased to the machine.
	tell(t *berth, e core.Event)
}

func (t *berth) open(p *process, s *slot, k keeper) {
	t.p, t.slot, t.keeper = p, s, k
	if s.UseLease {
		t.openLease()
	}
}

// start starts a run.
func (t *berth) start(e core.Start) {
	s, w := t.slot, t.p.w
	r := &run{
		berth: t, number: e.Run, seq: len(s.runs) + 1, token: e.Token, from: e.From,
		verdict: t.p.r.Verdict().Token, stored: w.store.verdict().Token, startedAt: w.now,
	}
	w.note(t.p, "starts", "%s: run %d of all, token %d, from %s, state %s", s.Name, r.seq, r.token, r.from, string(e.State))
	if s.shardOf != nil {
		s.shardOf.moves(r)
	}
	s.alone(r)
	s.allowed(r)
	s.ordered(r)
	s.inherits(r, e.State)
	t.run = r
	s.runs, s.live = append(s.runs, r), append(s.live, r)
	s.outcome.Starts++
	if e.From != "" {
		s.outcome.HandOvers++
	}
	if s.chiefOf != nil {
		t.p.station(s.chiefOf).coordinate(r)
		return // what a coordinator writes are its orders, and hosts are what they arrive at
	}
	r.writeLater()
	if s.EndsAfter > 0 {
		w.after(w.between(s.EndsAfter/2, s.EndsAfter), t.p, r.endsByItself)
	}
}

// stop asks the berth's run to end.
func (t *berth) stop(number uint64, cause string) {
	r, w := t.run, t.p.w
	if number == t.ending {
		return // it has ended by itself, and the machine is about to hear of it
	}
	if r == nil || r.number != number || r.asked {
		t.slot.broken(6, "%s stops the run %d of %s, which does not run or was asked to stop before", t.p.id, number, t.slot)
		return
	}
	r.asked = true
	w.note(t.p, "stops", "%s: run %d of all: %s", t.slot.Name, r.seq, cause)
	w.after(w.between(0, t.slot.StopTakes), t.p, func() { r.end(core.RunEnded{Run: r.number}) })
}

// end says that nothing of the run is left. What it leaves behind for the next one is its token.
func (r *run) end(e core.RunEnded) {
	t := r.berth
	if r.over || !t.keeper.works() {
		return
	}
	r.cease()
	t.ending = e.Run
	e.State = strconv.AppendUint(nil, r.token, 10)
	t.keeper.tell(t, e)
}

// cease is the end of a run, known to the machine or not.
func (r *run) cease() {
	t := r.berth
	r.over, r.endedAt = true, t.p.w.now
	t.p.w.note(t.p, "ended", "%s: run %d of all", t.slot.Name, r.seq)
	t.run = nil
	t.slot.live = slices.DeleteFunc(t.slot.live, func(o *run) bool { return o == r })
	if t.slot.chiefOf != nil {
		t.p.station(t.slot.chiefOf).chief = nil
	}
}

// vanish is the end of the process.
func (t *berth) vanish() {
	if t.run != nil {
		t.run.cease()
	}
}

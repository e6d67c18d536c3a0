package world

import (
	"slices"
	"time"

	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// toldWithin is how long what runs on top of a resolver needs to hear of a change.
const toldWithin = 2 * time.Millisecond

// assure notes, before the resolver learns something, that until now nothing was amiss.
func (p *process) assure() {
	if p.certain {
		p.sure = p.clock()
	}
}

// weigh looks, after the resolver has learnt something, whether anything is amiss, and lets the slots hear of what has changed.
func (p *process) weigh() {
	if len(p.w.slots) == 0 {
		return
	}
	p.certain = p.r.State() == sbr.StateUp && !p.paused && p.stage == stageRunning
	p.assure()
	p.tellSeats()
}

// sureAt is the last moment at which nothing was amiss, by the process's clock; negative: there was none.
func (p *process) sureAt() time.Duration {
	if p.certain {
		return p.clock()
	}
	return p.sure
}

// tellSeats lets the process's slots look around soon.
func (p *process) tellSeats() {
	if p.noticing || len(p.seats) == 0 {
		return
	}
	p.noticing = true
	p.w.after(p.w.between(0, toldWithin), p, func() {
		p.noticing = false
		p.eachSeat(func(t *seat) {
			v, state := t.viewNow(), p.r.State()
			if state != t.state || v.Verdict != t.view.Verdict || !slices.Equal(v.Peers, t.view.Peers) {
				t.state = state
				t.look()
			}
		})
		p.eachStation((*station).notice)
	})
}

// offers lets everybody hear of a change of who would run a slot.
func (w *World) offers() {
	for _, p := range w.procs {
		if p.stage == stageRunning {
			p.tellSeats()
		}
	}
}

// viewNow is what the process knows at this moment.
func (t *seat) viewNow() core.View {
	p := t.p
	v := core.View{Armed: p.r.State() != sbr.StateArming, Verdict: p.r.Verdict().Token, Sure: p.sureAt()}
	p.eachMember(func(m *sbr.Member, leaving bool) {
		v.Peers = append(v.Peers, core.Peer{
			ID: m.ID, Born: m.Born, Candidate: p.w.byID[m.ID].offers(t.slot), Leaving: leaving, Down: m.Status == sbr.Down, Unreachable: m.Unreachable,
		})
	})
	return v
}

// eachMember is about those that the process knows. Who was leaving when it failed has left, as Serf has it.
func (p *process) eachMember(f func(m *sbr.Member, leaving bool)) {
	s := p.r.Snapshot()
	for i := range s.Members {
		m := &s.Members[i]
		leaving := m.Status == sbr.Leaving || m.Status == sbr.Exiting || m.ID == p.id && p.stage == stageLeaving
		if !leaving || !m.Unreachable {
			f(m, leaving)
		}
	}
}

// offers reports whether the others know that the process would run a slot.
func (p *process) offers(s *slot) bool {
	return p.seats != nil && p.seats[s.index] != nil && p.seats[s.index].offered
}

package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// carry carries out one effect.
func (p *process) carry(e sbr.Effect) {
	switch e := e.(type) {
	case sbr.ReadLease:
		p.client.read(e)
	case sbr.AcquireLease:
		p.client.acquire(e)
	case sbr.ReleaseLease:
		p.w.note(p, "releases", "attempt %d", e.Attempt)
		p.client.release(e)
	case sbr.TellVerdict:
		p.tellVerdict(e)
	case sbr.TellOrder:
		p.tellOrder(e)
	case sbr.AskToRace:
		p.ask(e)
	case sbr.AskStanding:
		p.askStanding()
	case sbr.Remove:
		p.remove(e.IDs)
	case sbr.Suspend:
		p.w.stirred()
		p.w.note(p, "suspended", "%s", e.Reason)
	case sbr.Resume:
		p.w.stirred()
		p.w.note(p, "resumed", "%s", e.Reason)
	case sbr.DownSelf:
		p.down(e.Reason)
	case sbr.Explain:
		if e.Decision != nil {
			p.node.last = e.Decision
		}
		p.w.note(p, string(e.What), "%s", e.Text)
	}
}

// down ends the process as a driver does: the fact at once, then telling the others, then leaving.
func (p *process) down(reason string) {
	p.stage, p.downReason, p.downAt = stageDowned, reason, p.w.now
	p.w.stirred()
	p.w.note(p, "down", "%s", reason)
	p.w.after(p.w.opts.Grace, p, func() { p.finish() })
	p.maybeFinish()
}

// maybeFinish ends a downed process that has nothing left to say.
func (p *process) maybeFinish() {
	if p.stage == stageDowned && len(p.tells) == 0 {
		p.w.after(100*time.Millisecond, p, p.finish)
	}
}

func (p *process) finish() {
	switch {
	case p.stage != stageDowned:
	case p.w.opts.AbruptDown:
		p.stop()
	default:
		p.leave()
	}
}

// leave tells whoever can hear it that the process leaves, and stops it.
func (p *process) leave() {
	p.stage = stageLeaving
	for _, q := range p.w.procs {
		if q == p || !q.runs() || !q.knows(p) || !p.w.carries(p, q) {
			continue
		}
		p.w.after(p.w.between(50*time.Millisecond, 300*time.Millisecond), q, func() {
			if q.knows(p) && q.runs() {
				m := p.self
				m.Status = sbr.Leaving
				q.step(sbr.MemberSeen{Member: m})
			}
		})
	}
	p.w.after(time.Second, p, func() {
		p.left = true
		p.stop()
	})
}

// remove removes members that the membership calls failed at this moment, and tells whoever can hear it. Now and then one
// that has just come back is removed all the same.
func (p *process) remove(ids []sbr.ID) {
	for _, id := range ids {
		s := p.w.byID[id]
		if s == nil || !p.knows(s) || !p.peers[s.index].failed || !p.w.gone(p, s) && !p.w.chance(0.1) {
			continue
		}
		for _, q := range p.w.procs {
			if !q.runs() || q == s || q != p && !p.w.carries(p, q) {
				continue
			}
			p.w.after(p.w.between(10*time.Millisecond, 300*time.Millisecond), q, func() {
				if q.knows(s) && q.peers[s.index].failed {
					q.forget(s)
				}
			})
		}
	}
}

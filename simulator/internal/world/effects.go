package world

import (
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	core "github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// carry carries out one effect.
func (p *process) carry(e sbr.Effect) {
	switch e := e.(type) {
	case sbr.ReadLease:
		p.readLease(e)
	case sbr.RestoreVerdict:
		p.restoreVerdict(e)
	case sbr.AcquireLease:
		p.acquireLease(e)
	case sbr.ReleaseLease:
		p.releaseLease(e)
	case sbr.RecordLeave:
		p.recordLeave(e)
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
		p.w.note(p, "suspended", "%s", e.Reason)
	case sbr.Resume:
		p.w.note(p, "resumed", "%s", e.Reason)
	case sbr.DownSelf:
		p.down(e.Reason)
	case sbr.AnswerDownRequest:
		p.answerOperator(e)
	case sbr.Explain:
		if e.Decision != nil {
			p.node.last = e.Decision
		}
		p.w.note(p, string(e.What), "%s", e.Text)
	}
}

// down ends the process as a driver does: the fact at once, then telling the others, then leaving.
func (p *process) down(reason string) {
	p.downReason, p.downAt = reason, p.w.now
	p.stage = stageDowned
	p.w.look()
	p.w.account()
	p.w.note(p, "down", "%s", reason)
	p.eachDriver(func(t *driver) { t.step(t.first, core.Downed{Why: reason}) })
	p.eachExecutor((*executor).downed)
	p.w.after(wire.Grace/wire.LastWords, p, p.finish)
	p.maybeFinish()
}

// maybeFinish ends a downed process that has nothing left to say.
func (p *process) maybeFinish() {
	if p.stage == stageDowned && len(p.tells) == 0 {
		p.w.after(100*time.Millisecond, p, p.finish)
	}
}

func (p *process) finish() {
	if p.stage == stageDowned {
		p.leave()
	}
}

// leave tells all members that the process leaves, leaves Serf, and stops it.
func (p *process) leave() {
	p.stage = stageLeaving
	p.refreshViews()
	p.w.account()
	m := p.self
	m.Status = sbr.Leaving
	var news sbr.Event = sbr.MemberSeen{Member: m}
	for q := range p.others() {
		if !q.runs() || !q.knows(p) || !p.w.carries(p, q) {
			continue
		}
		p.w.after(p.w.between(50*time.Millisecond, 300*time.Millisecond), q, func() {
			if q.knows(p) && q.runs() && p.w.carries(p, q) {
				q.peer(p).bye = true
				q.step(news)
			}
		})
	}
	p.sayLeft(func() {
		p.left = true
		p.stop()
	})
}

// remove removes members that Serf calls failed at this moment.
func (p *process) remove(ids []sbr.ID) {
	for _, id := range ids {
		if s := p.w.byID[id]; s != nil && p.knows(s) && p.peer(s).status == failed {
			p.removeFailed(p.peer(s))
		}
	}
}

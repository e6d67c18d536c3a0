package handover_test

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// step shows a member how things are, as a driver does, and lets an event happen to it; nil: time alone.
func (p *planned) step(n *node, e slot.Event) {
	if n.m == nil {
		return
	}
	v := slot.View{Armed: n.armed, Sure: -1}
	if n.armed {
		v.Sure = p.now
	}
	for _, f := range n.known {
		if !f.gone {
			v.Peers = append(v.Peers, f.Peer)
		}
	}
	slices.SortFunc(v.Peers, func(a, b slot.Peer) int { return int(a.Born - b.Born) })
	p.carry(n, n.m.Step(p.now, slot.Viewed{View: v}))
	if n.m != nil && e != nil {
		p.carry(n, n.m.Step(p.now, e))
	}
	if n.m != nil {
		p.carry(n, n.m.Tick(p.now))
	}
	p.finish(n)
}

// finish closes a manager that is done with.
func (p *planned) finish(n *node) {
	if n.m == nil || !n.m.Finished() {
		return
	}
	n.m = nil
	p.say("%s: its manager is over", n.id)
	if n.leaves {
		p.soon(func() { p.depart(n) })
	}
	n.fact.Candidate = false
	p.publish(n)
}

func (p *planned) carry(n *node, effects []slot.Effect) {
	for _, e := range slices.Clone(effects) {
		switch e := e.(type) {
		case slot.Ask[handover.Message]:
			p.ask(n, e)
		case slot.Answer[handover.Message]:
			p.answer(n, e)
		case slot.AcquireLease:
			p.say("%s asks for the lease", n.id)
			n.attempt = e.Attempt
			p.inTurn(n, func() { p.wait(n, e.Attempt) })
		case slot.ReleaseLease:
			p.say("%s releases the lease", n.id)
			p.inTurn(n, func() { p.release(n, e) })
		case slot.Start:
			p.start(n, e)
		case slot.Stop:
			p.say("%s STOP (%v)", n.id, e.Cause)
			p.soon(func() { p.end(n, slot.RunEnded{Run: e.Run, State: []byte("state of " + string(n.id))}) })
		case slot.Explain:
			if e.Topic == handover.TopicYielded || e.Topic == slot.TopicWaiting {
				p.say("%s: %s", n.id, e.Text)
			}
		}
	}
}

func (p *planned) start(n *node, e slot.Start) {
	require.Zero(p.t, p.runs, "%s starts while another run is active\n%s", n.id, &p.trace)
	text := fmt.Sprintf("%s START, token %d", n.id, e.Token)
	if e.State != nil {
		text += fmt.Sprintf(", with %q", e.State)
	}
	if p.ended > 0 {
		gap := p.now - p.ended
		p.gaps = append(p.gaps, gap)
		text += fmt.Sprintf(", %v after the run before", gap)
	}
	p.say("%s", text)
	n.running, n.asked = true, e.Run
	p.runs++
}

func (p *planned) ask(n *node, e slot.Ask[handover.Message]) {
	to := string(e.To)
	if to == "" {
		to = "all"
	}
	p.say("%s -> %s: %v", n.id, to, e.Message.Kind)
	for _, o := range p.nodes {
		if o != n && !o.left && (e.To == "" || e.To == o.id) {
			p.gossips(func() { p.question(n, o, e.Message) })
		}
	}
}

// question is heard. That of a stranger is not.
func (p *planned) question(from, to *node, msg handover.Message) {
	f, known := to.known[from.id]
	switch {
	case to.left || !known || f.gone:
	case to.m == nil:
		p.soon(func() {
			p.step(from, slot.Answered[handover.Message]{From: to.id, Unserved: true, Message: handover.Message{Round: msg.Round}})
		})
	default:
		ref := uint64(len(to.refs) + 1)
		to.refs[ref] = question{from, msg.Round}
		p.step(to, slot.Asked[handover.Message]{Ref: ref, From: from.id, Message: msg})
	}
}

func (p *planned) answer(n *node, e slot.Answer[handover.Message]) {
	q := n.refs[e.Ref]
	text := e.Message.Kind.String()
	if e.Message.Wait > 0 {
		text += fmt.Sprintf(" in %v", e.Message.Wait)
	}
	p.say("%s -> %s: %s", n.id, q.from.id, text)
	p.soon(func() { p.step(q.from, slot.Answered[handover.Message]{From: n.id, Message: e.Message}) })
}

// inTurn lets a request of a member come to the store of the lease, after those before it.
func (p *planned) inTurn(n *node, f func()) {
	n.requested = max(n.requested, p.now) + p.takes()
	p.after(n.requested-p.now, f)
}

// wait is a request at the store of the lease, which grants it once it is free.
func (p *planned) wait(n *node, attempt uint64) {
	if n.attempt == attempt && !n.left {
		p.store.queue = append(p.store.queue, n)
		p.grant()
	}
}

func (p *planned) grant() {
	if p.store.holder != nil || len(p.store.queue) == 0 {
		return
	}
	n := p.store.queue[0]
	p.store.queue = p.store.queue[1:]
	p.store.holder = n
	p.store.token++
	token, attempt := p.store.token, n.attempt
	p.soon(func() { p.step(n, slot.LeaseAnswer{Attempt: attempt, Outcome: sbr.Granted, Token: token}) })
}

// release comes after the request before it, as in the driver.
func (p *planned) release(n *node, e slot.ReleaseLease) {
	p.store.queue = slices.DeleteFunc(p.store.queue, func(q *node) bool { return q == n })
	if p.store.holder == n {
		p.store.holder = nil
		p.soon(p.grant)
	}
	p.soon(func() { p.step(n, slot.LeaseReleased(e)) })
}

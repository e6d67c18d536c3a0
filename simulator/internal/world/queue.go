package world

import "time"

// event is something that happens at a moment. It holds no pointer: events move about in the queue all the
// time, and a collector that runs meanwhile would have to be told of every move.
type event struct {
	at   time.Duration
	seq  uint64 // the tie-break: first scheduled, first run
	proc int32  // the process it is about, by index; -1: none
	act  int32  // what it does: a place in queue.acts, or one of the jobs below
}

// What events do most often.
const (
	jobTick      = -1 - iota // the deadline of the process's resolver
	jobProbes                // the process's next round of probes
	jobProbe                 // its Serf's next probe
	jobGossip                // its Serf's next gossip
	jobExchange              // its Serf's next exchange of lists
	jobReconnect             // its Serf's next attempt to reach a failed member
	jobSuspect               // the end of its suspicion of the name 0; that of others is as much lower
)

// action is what any other event does.
type action interface{ act() }

// call is a function as an action.
type call func()

func (f call) act() { f() }

// run lets the event happen.
func (w *World) run(e event) {
	var p *process
	if e.proc >= 0 {
		p = w.procs[e.proc]
	}
	switch e.act {
	case jobTick:
		p.tick(e.seq)
	case jobProbes:
		p.probe(e.seq)
	default:
		if e.act < 0 && !p.paused {
			p.tickSerf(e.act)
			return
		}
		var a action
		if e.act < 0 {
			a = call(func() { p.tickSerf(e.act) })
		} else {
			a = w.queue.take(e.act)
		}
		if p == nil {
			a.act()
		} else {
			p.dispatch(a)
		}
	}
}

// tickSerf does what the process's Serf has arranged.
func (p *process) tickSerf(job int32) {
	switch job {
	case jobProbe:
		p.probeNext()
	case jobGossip:
		p.gossip()
	case jobExchange:
		p.exchange()
	case jobReconnect:
		p.reconnect()
	default:
		if p.works() {
			p.overdue(jobSuspect - job)
		}
	}
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// at schedules f at t. With a process, f waits while that is paused and is dropped once it has stopped.
func (w *World) at(t time.Duration, p *process, f func()) { w.enact(t, p, call(f)) }

func (w *World) after(d time.Duration, p *process, f func()) { w.enact(w.now+d, p, call(f)) }

// every calls f each time that so much time has passed.
func (w *World) every(d time.Duration, f func()) {
	w.after(d, nil, func() {
		f()
		w.every(d, f)
	})
}

// enact is at with an action.
func (w *World) enact(t time.Duration, p *process, a action) { w.schedule(t, p, w.queue.keep(a)) }

// schedule returns the number of the event.
func (w *World) schedule(t time.Duration, p *process, act int32) uint64 {
	w.seq++
	e := event{at: max(t, w.now), seq: w.seq, proc: -1, act: act}
	if p != nil {
		e.proc = int32(p.index)
	}
	w.queue.push(e)
	return w.seq
}

// queue is a binary heap by time.
type queue struct {
	events []event
	acts   []action
	free   []int32 // unused places in acts
}

func (q *queue) keep(a action) int32 {
	if n := len(q.free); n > 0 {
		i := q.free[n-1]
		q.free = q.free[:n-1]
		q.acts[i] = a
		return i
	}
	q.acts = append(q.acts, a)
	return int32(len(q.acts) - 1)
}

func (q *queue) take(i int32) action {
	a := q.acts[i]
	q.acts[i] = nil
	q.free = append(q.free, i)
	return a
}

func (q *queue) push(e event) {
	h := append(q.events, e)
	q.events = h
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

func (q *queue) pop() event {
	h := q.events
	top, last := h[0], len(h)-1
	e := h[last]
	h = h[:last]
	q.events = h
	if last == 0 {
		return top
	}
	i := 0
	for child := 1; child < last; child = 2*i + 1 {
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&e) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
	return top
}

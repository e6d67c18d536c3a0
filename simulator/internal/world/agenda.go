package world

import "time"

// todo is something that a process will find out about one of the others. There may be one for each pair of members, so each process
// keeps its own, and only the first of them is an event of the world.
type todo struct {
	at   time.Duration
	peer int32 // the place of the other one, see process.others
	gen  uint32
	what task
}

// task is what a process finds out.
type task uint8

const (
	taskFind task = iota // the detector has the word that peer.wantFailed says
	taskMiss             // own probes fail, or work again, as peer.wantMissed says
	taskMeet             // hears of a member that is alive
	taskLose             // hears that a member has left
	taskReap             // forgets a member that failed long ago
)

// before puts the later of two members first, where they come at the same moment: that order costs a resolver least.
func (t *todo) before(o *todo) bool { return t.at < o.at || t.at == o.at && t.peer > o.peer }

// agenda is a binary heap by time.
type agenda struct {
	todos   []todo
	event   uint64 // the event that stands for the first of them; zero: none
	at      time.Duration
	working bool
}

// add puts something on the process's agenda.
func (p *process) add(t todo) {
	a := &p.agenda
	h := append(a.todos, t)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = t
	a.todos = h
	if !a.working {
		p.attend()
	}
}

// attend arranges the event for what comes first.
func (p *process) attend() {
	a := &p.agenda
	if len(a.todos) == 0 || a.event != 0 && a.at <= a.todos[0].at {
		return
	}
	a.at = a.todos[0].at
	a.event = p.w.schedule(a.at, p, jobAgenda)
}

func (a *agenda) pop() todo {
	h := a.todos
	top, last := h[0], len(h)-1
	t := h[last]
	h = h[:last]
	a.todos = h
	if last == 0 {
		return top
	}
	i := 0
	for child := 1; child < last; child = 2*i + 1 {
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&t) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = t
	return top
}

// work does what is due; event tells the present event from one that an earlier entry has replaced.
func (p *process) work(event uint64) {
	a := &p.agenda
	if event != a.event {
		return
	}
	a.event, a.working = 0, true
	for len(a.todos) > 0 && a.todos[0].at <= p.w.now {
		p.w.found++
		p.do(a.pop())
	}
	a.working = false
	p.attend()
}

// drop clears the agenda: a process that is paused or has gone finds out nothing.
func (p *process) drop() {
	p.agenda.todos, p.agenda.event = p.agenda.todos[:0], 0
}

func (p *process) do(t todo) {
	s, q := p.w.procs[t.peer], &p.peers[t.peer]
	switch t.what {
	case taskFind:
		if q.gen == t.gen {
			p.find(s, q)
		}
	case taskMiss:
		if q.missGen == t.gen {
			p.miss(s, q)
		}
	case taskMeet:
		q.meeting = false
		if s.attends() && p.w.net.connected(p.node.index, s.node.index) {
			p.meet(s)
		}
	case taskLose:
		p.forget(s, true)
	case taskReap:
		p.reap(s, q)
	}
}

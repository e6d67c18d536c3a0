package handover_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/handover"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// planned is a cluster in which nothing goes wrong: no message is lost, no member is paused, a member that
// leaves says so. But all that is said, done or becomes known takes a moment, and comes in any order. It
// notes for how long nobody runs the slot.
type planned struct {
	t     require.TestingT
	lease bool
	// takes is how long the next thing takes; gossip, if there is one, how long a question does, or what is
	// new of a member.
	takes, gossip func() time.Duration
	// steady: one member could run the slot all the time, whatever changes of the others.
	steady bool

	now   time.Duration
	trace strings.Builder
	queue []errand
	nodes []*node
	store struct {
		holder *node
		token  uint64
		queue  []*node
	}

	runs, managers uint64
	// idle is since when nobody runs the slot, and nothing has changed who could; ended when the last run has
	// ended.
	idle, ended time.Duration
	// gaps are the times between two runs, longest the longest time since idle.
	gaps    []time.Duration
	longest time.Duration
}

// errand is something that is under way.
type errand struct {
	at time.Duration
	do func()
}

// fact is what is known of a member; a newer version replaces an older one.
type fact struct {
	slot.Peer
	version int
	gone    bool
}

// node is a member, with a manager or without.
type node struct {
	id    sbr.ID
	fact  fact
	known map[sbr.ID]fact
	armed bool

	m        *handover.Machine // nil: no manager
	since    time.Duration     // it has one
	resigned bool
	running  bool
	again    bool // its run ended by itself and starts again
	attempt  uint64
	// requested is when its last request comes to the store.
	requested time.Duration
	refs      map[uint64]question
	asked     uint64
	left      bool
	// leaves: once nothing runs there.
	leaves bool
}

type question struct {
	from  *node
	round uint64
}

func newPlanned(t require.TestingT, lease bool, takes func() time.Duration) *planned {
	return &planned{t: t, lease: lease, takes: takes}
}

func (p *planned) say(format string, args ...any) {
	fmt.Fprintf(&p.trace, "%9.3fs  %s\n", p.now.Seconds(), fmt.Sprintf(format, args...))
}

// soon lets something happen after a moment.
func (p *planned) soon(f func()) { p.after(p.takes(), f) }

func (p *planned) after(d time.Duration, f func()) {
	at := p.now + d
	i, _ := slices.BinarySearchFunc(p.queue, at,
		func(e errand, at time.Duration) int { return cmp.Or(cmp.Compare(e.at, at), -1) })
	p.queue = slices.Insert(p.queue, i, errand{at, f})
}

// pass lets time pass: all that comes, comes at its time.
func (p *planned) pass(d time.Duration) {
	end := p.now + d
	for steps := 0; ; steps++ {
		require.Less(p.t, steps, 100000, "time stands still\n%s", &p.trace)
		at, who := end, (*node)(nil)
		for _, n := range p.nodes {
			if n.m == nil {
				continue
			}
			if due, ok := n.m.NextDeadline(); ok && due < at {
				at, who = max(due, p.now), n
			}
		}
		if len(p.queue) > 0 && p.queue[0].at <= at {
			e := p.queue[0]
			p.queue = p.queue[1:]
			p.move(max(e.at, p.now))
			e.do()
			continue
		}
		p.move(at)
		if who == nil {
			return
		}
		p.step(who, nil)
	}
}

// until lets time pass until something is so.
func (p *planned) until(ok func() bool) {
	for end := p.now + time.Minute; !ok(); p.pass(time.Millisecond) {
		require.Less(p.t, p.now, end, "%s", &p.trace)
	}
}

// move moves the clock. Nobody runs the slot meanwhile, or somebody does.
func (p *planned) move(to time.Duration) {
	if p.runs == 0 && p.someoneCould() {
		p.longest = max(p.longest, to-p.idle)
	} else {
		p.idle = to
	}
	p.now = to
}

// someoneCould reports whether there is a member that could run the slot, and none that is waited for: its
// run rests, or it is not armed yet.
func (p *planned) someoneCould() (could bool) {
	for _, n := range p.nodes {
		if n.m != nil && (!n.armed || n.m.Phase() == slot.Resting) {
			return false
		}
		could = could || n.m != nil && n.armed && !n.resigned && !n.fact.Leaving
	}
	return could
}

// changed notes that who could run the slot has changed.
func (p *planned) changed() {
	if !p.steady {
		p.idle = p.now
	}
}

// gossips lets something happen once it has reached another member.
func (p *planned) gossips(f func()) {
	takes := p.takes
	if p.gossip != nil {
		takes = p.gossip
	}
	p.after(takes(), f)
}

func (p *planned) node(id sbr.ID) *node {
	i := slices.IndexFunc(p.nodes, func(n *node) bool { return n.id == id })
	require.GreaterOrEqual(p.t, i, 0, id)
	return p.nodes[i]
}

// add adds members, which all know each other and are armed, each a second younger than the one before. They
// have no managers.
func (p *planned) add(ids string) {
	for _, id := range ids {
		n := &node{id: sbr.ID(id), armed: true, known: map[sbr.ID]fact{}, refs: map[uint64]question{}}
		n.fact.Peer = slot.Peer{ID: n.id, Born: int64(len(p.nodes)+1) * int64(time.Second)}
		p.nodes = append(p.nodes, n)
	}
	for _, n := range p.nodes {
		for _, o := range p.nodes {
			n.known[o.id] = o.fact
		}
	}
}

// armedAfter is how long after it has joined a member takes part.
const armedAfter = 200 * time.Millisecond

// join adds a member to the cluster, which is armed once all know it.
func (p *planned) join(id sbr.ID, born int64) {
	n := &node{id: id, known: map[sbr.ID]fact{}, refs: map[uint64]question{}}
	n.fact.Peer = slot.Peer{ID: id, Born: born}
	for _, o := range p.nodes {
		if !o.left {
			n.known = maps.Clone(o.known)
			break
		}
	}
	p.say("%s joins", id)
	p.changed() // it has to agree as well
	p.nodes = append(p.nodes, n)
	p.publish(n)
	for _, o := range p.nodes { // what was under way when it came
		p.after(armedAfter/4, func() { p.learn(n, o.fact) })
	}
	p.after(armedAfter, func() {
		p.say("%s is armed", id)
		n.armed = true
		p.changed()
		p.step(n, nil)
	})
}

// publish tells everybody what has changed of a member; itself at once.
func (p *planned) publish(n *node) {
	n.fact.version++
	f := n.fact
	n.known[n.id] = f
	for _, o := range p.nodes {
		if o != n && !o.left {
			p.gossips(func() { p.learn(o, f) })
		}
	}
	p.step(n, nil)
}

func (p *planned) learn(n *node, f fact) {
	if old, ok := n.known[f.ID]; ok && old.version >= f.version {
		return
	}
	n.known[f.ID] = f
	p.step(n, nil)
}

// attach starts a manager on members.
func (p *planned) attach(ids ...sbr.ID) {
	for _, id := range ids {
		n := p.node(id)
		require.Nil(p.t, n.m)
		cfg := config(id, n.fact.Born)
		p.managers++
		cfg.UseLease, cfg.FirstRound = p.lease, p.managers*1000
		n.m = handover.New(cfg, p.now)
		n.resigned, n.again, n.since = false, false, p.now
		p.say("%s: a manager", id)
		n.fact.Candidate = true
		p.changed()
		p.publish(n)
	}
}

// resign stops the manager of a member.
func (p *planned) resign(id sbr.ID) {
	n := p.node(id)
	p.say("%s: its manager is stopped", id)
	n.resigned = true
	p.changed()
	p.step(n, slot.Resign{Patience: time.Duration(config(id, 0).NumberOfRetries) * config(id,
		0).HandOverRetryInterval})
}

// leave takes a member out of the cluster; its manager is not stopped before.
func (p *planned) leave(id sbr.ID) {
	const propagates = time.Second
	n := p.node(id)
	p.say("%s leaves", id)
	n.fact.Leaving = true
	p.changed()
	p.publish(n)
	p.after(propagates, func() {
		n.leaves = true
		if !n.running {
			p.depart(n)
		}
	})
}

func (p *planned) depart(n *node) {
	if n.left {
		return
	}
	p.say("%s has left", n.id)
	n.left, n.m, n.fact.gone = true, nil, true
	p.publish(n)
}

// done lets the run of a member end by itself.
func (p *planned) done(id sbr.ID, again bool) {
	n := p.node(id)
	if !n.running || n.m.Phase() != slot.Active {
		return
	}
	n.again, n.resigned = again, n.resigned || !again
	p.end(n, slot.RunEnded{Run: n.asked, Again: again, Rest: 300 * time.Millisecond,
		State: []byte("state of " + string(id))})
}

func (p *planned) end(n *node, e slot.RunEnded) {
	p.say("%s ENDED", n.id)
	n.running = false
	p.runs--
	p.ended = p.now
	p.changed()
	p.step(n, e)
}

// running are the members that run the slot.
func (p *planned) running() (ids []sbr.ID) {
	for _, n := range p.nodes {
		if n.running {
			ids = append(ids, n.id)
		}
	}
	return ids
}

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
		p.carry(n, n.m.Step(p.now, slot.Tick{}))
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
			p.step(from, slot.Answered[handover.Message]{From: to.id, Unserved: true,
				Message: handover.Message{Round: msg.Round}})
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

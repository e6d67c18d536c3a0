package serf_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// promises are what must hold in every run, whatever the file expects: those that the model checks, as far as
// they can be seen from outside of a provider.
type promises struct {
	last   lease.Record
	chain  map[uint64]*sbr.Verdict
	broken []string
	// replaced says that a step puts another record into the store, which no process wrote.
	replaced bool
}

// watch looks at every record before any process can read it.
func (k *promises) watch(p *player) {
	k.chain = make(map[uint64]*sbr.Verdict)
	p.store.OnCommit(func(r lease.Record) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.committed(&r)
	})
}

// violate is called with p.mu held.
func (p *player) violate(promise, format string, args ...any) {
	line := promise + " broken: " + fmt.Sprintf(format, args...)
	if !slices.Contains(p.promises.broken, line) {
		p.promises.broken = append(p.promises.broken, line)
	}
}

// committed checks one write: a new holder comes with a new token (S3), the token grows by one, and each
// verdict is written by a member that the last one leaves in, for members that it leaves in.
func (p *player) committed(r *lease.Record) {
	k := &p.promises
	last := k.last
	k.last = *r
	switch {
	case k.replaced:
		return
	case r.Token == last.Token:
		if r.Holder != "" && r.Holder != last.Holder {
			p.violate("S3", "%s became the holder under the token %d of %q", r.Holder, r.Token, last.Holder)
		}
		return
	case r.Token != last.Token+1 || r.Verdict == nil:
		p.violate("token", "from %d to %d, verdict %v", last.Token, r.Token, r.Verdict)
		return
	}
	k.chain[r.Token] = r.Verdict.Clone()
	before := last.Verdict
	if before == nil {
		before = &sbr.Verdict{}
	}
	if !before.MayWrite(sbr.ID(r.Holder), p.seenBy(sbr.ID(r.Holder))) {
		p.violate("chain", "%s wrote verdict %d although verdict %d leaves it out", r.Holder, r.Token, before.Token)
	}
	for _, id := range r.Verdict.Survivors {
		if !before.Eligible(id, p.seenBy(id)) {
			p.violate("chain", "verdict %d keeps %s, which verdict %d leaves out", r.Token, id, before.Token)
		}
	}
	if len(r.Verdict.Down) == 0 {
		p.violate("chain", "verdict %d removes nobody", r.Token)
	}
}

// seenBy is the token that an incarnation had read when it started. It is called with p.mu held.
func (p *player) seenBy(id sbr.ID) uint64 { return p.seen[id] }

// observe hears of everything that happens to a process, on its provider's goroutine.
func (p *player) observe(proc *process, o downing.Occurrence) {
	if !proc.running() {
		return // the last words of a crashed process; nobody hears them
	}
	p.mu.Lock()
	if p.heard != nil {
		p.heard(proc, o)
	}
	p.mu.Unlock()
	switch o.Kind {
	case string(sbr.TopicDecision):
		kind, why, _ := strings.Cut(o.Text, ": ")
		p.mu.Lock()
		defer p.mu.Unlock()
		proc.last = kind
		if why == "" {
			p.violate("explained", "%s decides %s without a reason", proc.Name, kind)
		}
	case downing.OccurredAsking:
		if s := proc.provider.Status(); len(s.Unreachable) == 0 && proc.requests.Load() == 0 {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.violate("L3", "%s asks for the lease although nobody is unreachable", proc.id)
		}
	}
}

// view is what the status of a process shows: whether it works, which members it lists, and whether it
// believes in them: not in those that were downed or leave.
type view struct {
	state    sbr.State
	believes map[string]bool
}

// changed reports whether the process went to work, or ceased to, or lists a member no more that it believed
// in. The simulator's World.Stirred counts the same.
func (v view) changed(next view) bool {
	for id, believed := range v.believes {
		if _, listed := next.believes[id]; believed && !listed && next.believes != nil {
			return true
		}
	}
	return v.state != "" && v.state != next.state
}

// sample looks at what all processes show at this moment: whether it has changed, and whether it may.
func (p *player) sample() {
	for _, proc := range p.procs {
		next := view{state: sbr.StateUp} // also that of who is gone, or arms: it waits for nothing
		if proc.up() {
			s := proc.provider.Status()
			next.believes = make(map[string]bool)
			if s.State != sbr.StateArming {
				next.state = s.State
			}
			for _, m := range s.Members {
				status, _ := sbr.ParseStatus(m.Status)
				next.believes[m.Incarnation] = status <= sbr.Up
				proc.met[sbr.ID(m.Incarnation)] = true
			}
			p.mayShow(proc, &s)
		} else if proc.wasDowned() {
			next.state = sbr.StateDown
		}
		if proc.shown.changed(next) {
			p.moved = p.now()
		}
		proc.shown = next
	}
}

// mayShow checks S4, that a verdict that a member believes in was written; and S2, that no member goes on
// that knows a verdict that leaves it out.
func (p *player) mayShow(proc *process, s *downing.Status) {
	if s.Verdict.Token == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.promises.chain[s.Verdict.Token]
	if v == nil {
		p.violate("S4", "%s believes in verdict %d, which was never written", proc.id, s.Verdict.Token)
		return
	}
	for _, id := range s.Verdict.Survivors {
		if !slices.Contains(v.Survivors, sbr.ID(id)) {
			p.violate("S4", "%s believes that %s survives verdict %d, written were %v", proc.id, id, v.Token,
				v.Survivors)
		}
	}
	// A paused process shows what it knew; a status is renewed only when everything was carried out that
	// followed from it.
	if v.Standing(proc.id, proc.seen) != sbr.Out || proc.gate.paused() {
		proc.outSince = 0
	} else if proc.outSince++; proc.outSince > 1 {
		p.violate("S2", "%s knows verdict %d, is not among its survivors, and goes on", proc.id, v.Token)
	}
}

// atTheEnd checks S1, that no two sides are up, and S2, that no downed member is up or still runs.
func (p *player) atTheEnd(up []*process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := func(x *process, by uint64) bool {
		v := p.promises.chain[by]
		return v != nil && v.Standing(x.id, x.seen) == sbr.Out
	}
	for i, x := range up {
		for _, y := range up[:i] {
			switch {
			case strangers(x, y):
			case p.apart(x, y):
				p.violate("S1", "%s and %s are both up and cannot reach each other", y.id, x.id)
			case out(x, y.provider.Status().Verdict.Token) && out(y, x.provider.Status().Verdict.Token):
				p.violate("S1", "%s and %s are both up and have downed each other", y.id, x.id)
			}
		}
		if out(x, p.promises.last.Token) && p.couldKnow(x, up) {
			p.violate("S2", "%s is up although the last verdict (%d) leaves it out", x.id, p.promises.last.Token)
		}
	}
	for _, x := range p.procs {
		switch {
		case !x.wasDowned():
		case x.provider.Reason() == "":
			p.violate("explained", "%s was downed without a reason", x.id)
		case x.serf != nil && !isDone(x):
			p.violate("S2", "%s was downed and its Serf still runs", x.id)
		}
	}
}

// isDone reports whether a downed process has left, or is still doing so within its grace.
func isDone(x *process) bool {
	select {
	case <-x.provider.Done():
		return x.serf.State().String() == "shutdown"
	default:
		return true // the last verdict was a moment ago
	}
}

// couldKnow reports whether x could have heard of the last verdict: it watches the store, or a process it
// knows has heard.
func (p *player) couldKnow(x *process, up []*process) bool {
	token := p.promises.last.Token
	if bool(p.s.Cluster.Rules(x.Name).LeaseMajority.Watch) && x.hurt == 0 {
		return true
	}
	return slices.ContainsFunc(up, func(y *process) bool {
		return y.provider.Status().Verdict.Token >= token && !strangers(x, y)
	})
}

// strangers reports whether neither of two processes ever heard of the other: nobody can tell that they
// belong together.
func strangers(x, y *process) bool { return !x.met[y.id] && !y.met[x.id] }

// apart reports whether two processes cannot reach each other, as far as providers can find out about it.
func (p *player) apart(x, y *process) bool {
	probes := p.s.Cluster.SplitBrainResolver.Probe.Neighbours > 0
	return !p.top.connected(x.index, y.index) || probes && !p.top.direct(x.index, y.index)
}

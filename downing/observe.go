package downing

import (
	"slices"
	"time"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sbr/reachability"
)

// poll looks at the membership and passes on what changed.
func (e *engine) poll() {
	e.nextPoll = e.clock() + e.cfg.PollInterval
	if !e.leaving && e.node.leaving(e.self.Name) {
		e.depart()
	}
	if e.goneByNow(); e.ended {
		return
	}
	seen := e.wokeAt
	if n, ok := e.node.(*beside); ok {
		seen = n.readAt(seen)
	}
	list, current := e.node.members()
	if !e.see(current) {
		return
	}
	e.lookedAt = seen
	e.keepTags(list)
	changes := e.members.look(e.now(), list)
	for _, c := range changes {
		switch {
		case c.failed != nil:
			e.tracker.SetFailed(c.id, *c.failed)
		case c.id == e.self.ID:
			e.step(c.event)
		default:
			if _, gone := c.event.(sbr.MemberGone); gone {
				e.tracker.Remove(c.id)
			} else if !isUntagged(c.id) {
				e.tracker.Add(c.id)
			}
			e.step(c.event)
		}
	}
	if len(changes) > 0 {
		e.members.prune(e.resolver)
		e.checkDigests()
		e.warn()
	}
	if e.newcomer && !e.ended {
		e.lookForOthers(list)
	} else {
		e.inherit()
	}
	e.weigh(false)
	e.seek(list)
}

// weigh forms an opinion of who can be reached and passes on what changed.
func (e *engine) weigh(refresh bool) {
	o := e.tracker.Form(e.now())
	if !slices.Equal(o.Reports, e.reports) {
		e.reports = o.Reports
		e.step(sbr.Observations{Reports: o.Reports})
	}
	for _, c := range o.Changed {
		if c.Unreachable {
			e.occur(about(OccurredUnreachable, c.ID, " is unreachable"))
		} else {
			e.occur(about(OccurredReachable, c.ID, " is reachable again"))
		}
		e.step(c)
	}
	e.spread(o, refresh)
}

// spread tells the others whom this member cannot reach: each change at once, the rest with every other round of probes.
func (e *engine) spread(o reachability.Opinion, refresh bool) {
	var good, bad []sbr.ID
	for id := range e.spreading {
		if slices.Contains(o.Own, id) {
			continue
		}
		delete(e.spreading, id)
		if e.members.known[id] != nil {
			good = append(good, id)
		}
	}
	for _, id := range o.Spread {
		if _, known := e.spreading[id]; !known || refresh {
			bad = append(bad, id)
			e.spreading[id] = struct{}{}
		}
	}
	if len(good)+len(bad) > 0 {
		slices.Sort(good)
		e.send(gossip.Message{Kind: gossip.KindReport, From: e.self.ID, Down: bad, Up: good})
	}
}

// probe starts a round of probes.
func (e *engine) probe() {
	targets := make(map[sbr.ID]Target)
	for _, id := range e.tracker.Probes() {
		if k := e.members.known[id]; k != nil {
			targets[id] = Target{ID: id, Name: k.member.Name, Addr: k.member.Addr, Tag: k.probe}
		}
	}
	if len(targets) == 0 {
		return
	}
	e.probing = true
	e.spawn(&e.workers, func() {
		results := e.node.ping(e.ctx, targets, e.cfg.Probe.Timeout)
		e.inbox.Post(func() {
			for id, p := range results {
				e.metrics.probed(p)
				e.tracker.Probed(id, p.answered)
				if p.answered {
					e.reconnect(id)
				}
			}
			e.rounds++
			e.weigh(e.rounds%2 == 0)
			e.probing = false
		})
	})
}

// reconnectEvery bounds how often this member reconnects to others by itself.
const reconnectEvery = 5 * time.Second

// reconnect joins a member again that answers probes although Serf calls it failed. Serf would do so too, but only every half a
// minute on average, and until then a partition that has healed still looks like one.
func (e *engine) reconnect(id sbr.ID) {
	k := e.members.known[id]
	if k == nil || !k.failed || e.now() < e.nextJoin || e.resolver.KeptOut(id, k.member.Seen) {
		return
	}
	e.nextJoin = e.now() + reconnectEvery
	name, addr := k.member.Name, k.member.Addr
	e.spawn(&e.workers, func() {
		if err := e.node.join(name, addr); err != nil {
			e.log.Debug("sbr: could not reconnect", "member", name, "address", addr, "error", err)
		}
	})
}

// checkDigests names the members that decide by other rules.
func (e *engine) checkDigests() {
	for _, k := range e.members.known {
		if k.config == "" || k.config == e.digest || k.failed {
			continue
		}
		key := string(k.member.ID) + k.config
		if _, said := e.sawDigests[key]; said {
			continue
		}
		e.sawDigests[key] = struct{}{}
		e.log.Error("sbr: a member has another configuration: two sides that decide by different rules are no resolver",
			"member", k.member.Name, "its-digest", k.config, "our-digest", e.digest)
	}
}

// publish renews what Status shows.
func (e *engine) publish() {
	s := e.resolver.Snapshot()
	st := Status{
		System: e.cfg.System, Member: e.self.Name, Incarnation: string(e.self.ID), State: s.State,
		Leader: NameOf(s.Leader), Responsible: s.Responsible, ConfigDigest: e.digest, Version: Version(),
		Lease:   e.leaseStatus(),
		Verdict: verdictStatus(s.Verdict), Unreachable: []string{}, Members: []MemberStatus{}, Reports: e.reportStatus(),
	}
	st.Lease.Holder, st.Lease.Token = string(s.Record.Holder), s.Record.Token
	for i := range s.Members {
		m := &s.Members[i]
		st.Members = append(st.Members, MemberStatus{Name: m.Name, Incarnation: string(m.ID), Status: m.Status.String(), Reachable: !m.Unreachable, Address: m.Addr, Roles: m.Roles})
		if m.Unreachable {
			st.Unreachable = append(st.Unreachable, m.Name)
		}
		if isUntagged(m.ID) {
			st.Untagged = append(st.Untagged, m.Name)
		} else if k := e.members.known[m.ID]; k != nil && k.config != e.digest {
			st.Disagree = append(st.Disagree, m.Name)
		}
	}
	if s.HasDeadline {
		at := e.origin.Add(s.Deadline).Round(time.Millisecond)
		st.Deadline = &at
	}
	st.Newcomer, st.OtherStore = e.newcomer, e.compareStores(&s)
	for _, id := range e.awaited {
		st.Awaiting = append(st.Awaiting, NameOf(id))
	}
	e.endNewness()
	e.showSuspension(&st)
	e.mu.Lock()
	if !e.halted.Load() {
		e.status = st
	}
	e.mu.Unlock()
	if !e.halted.Load() {
		e.share(&s, st.State)
	}
	e.remember(&s)
	e.observeDeadline(&s)
	e.metrics.publish(&s, &st)
	e.episodes.look(&s, len(e.removing) > 0)
}

// Status implements Engine.
func (e *engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.status
	st.Incident = e.episodes.id() // what happened just now may be ahead of the rest
	return st
}

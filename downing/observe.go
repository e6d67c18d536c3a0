package downing

import (
	"time"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
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
	list, asked, silence := e.node.members()
	if !e.see(silence) {
		return
	}
	e.lookedAt = earlier(asked, e.wokeAt)
	e.keepTags(list)
	changes := e.members.look(e.now(), list)
	if copied := e.members.copied; len(copied) > 0 {
		e.complain.log("sbr: members run with a copy of another's state folder: give each an empty one, and start it again",
			"copied", copied)
	}
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
	// With probes those that answer, but a newcomer probes nobody that has failed.
	if _, ok := e.node.(*beside); ok && (!e.cfg.Probe.On() || e.newcomer) {
		for id := range e.members.known {
			e.reconnect(id, blindJoinEvery)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// weighSoon forms an opinion once the reports that are here have all been read, in a large cluster a moment
// later.
func (e *engine) weighSoon() {
	if !e.gathering {
		e.gathering, e.nextWeigh = true, e.clock()+e.tracker.Gather()
	}
}

// weigh works out which members can be reached, and sends what changed to the resolver and to the others.
// With refresh the others get all of it again.
func (e *engine) weigh(refresh bool) {
	e.gathering = false
	for _, id := range e.resolver.Downed() {
		e.tracker.Downed(id)
	}
	o := e.tracker.Form(e.now(), refresh)
	if o.Observed {
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
	if len(o.Bad)+len(o.Good) > 0 && !e.newcomer { // the links of a member that takes no part do not count
		e.send(wire.Report(e.self.ID, e.aged+e.clock(), o.Bad, o.Good), 1)
		if o.News && e.tracker.Small() {
			e.again, e.nextAgain = tellings-1, e.clock()+wire.QueryTime/tellings
		}
	}
}

// tellAgain sends what is new to the others again, a few times within the time of one query: a broadcast is
// likely to miss one of a few.
func (e *engine) tellAgain(now time.Duration) {
	if e.again == 0 || now < e.nextAgain {
		return
	}
	e.again, e.nextAgain = e.again-1, now+wire.QueryTime/tellings
	e.weigh(true)
}

// probe starts a round of probes.
func (e *engine) probe() {
	e.probing = e.ping(e.tracker.Probes(), func(map[sbr.ID]pong) {
		e.rounds++
		e.weigh(e.tracker.Repeats(e.rounds))
		e.probing = false
	})
}

// probeUrgent probes the members that the tracker wants to know about before the next round.
func (e *engine) probeUrgent() {
	if ids := e.tracker.Urgent(); len(ids) > 0 {
		e.ping(ids, func(map[sbr.ID]pong) { e.weigh(false) })
	}
}

// ping probes members and goes on in the loop once the tracker knows the results; it reports whether there
// was any member to probe. Members that cannot be asked are not among the results.
func (e *engine) ping(ids []sbr.ID, then func(map[sbr.ID]pong)) bool {
	targets := make(map[sbr.ID]Target, len(ids))
	for _, id := range ids {
		if k := e.members.known[id]; k != nil {
			targets[id] = Target{ID: id, Name: k.member.Name, Addr: k.member.Addr, Tag: k.tags[TagProbe]}
		}
	}
	if len(targets) == 0 {
		return false
	}
	e.spawn(&e.workers, func() {
		results := e.node.ping(e.ctx, targets, e.cfg.Probe.Timeout)
		e.inbox.Post(func() {
			for id, p := range results {
				e.rec.probed(p)
				e.tracker.Probed(id, p.answered)
				if p.answered {
					e.reconnect(id, wire.ReconnectEvery)
				}
			}
			e.probeUrgent()
			then(results)
		})
	})
	return true
}

// blindJoinEvery is longer than a dial into a cut takes: joins must not queue up in the agent.
const blindJoinEvery = 15 * time.Second

// reconnect joins a member again that Serf calls failed, once in a while. Serf would do so too, but only
// every half a minute on average, and until then a partition that has healed still looks like one; a
// restarted agent has forgotten the addresses to join.
func (e *engine) reconnect(id sbr.ID, every time.Duration) {
	k := e.members.known[id]
	if k == nil || !k.failed || e.joining || e.clock() < e.nextJoin || e.resolver.KeptOut(id, k.member.Seen) {
		return
	}
	e.nextJoin, e.joining = e.clock()+every, true
	name, addr := k.member.Name, k.member.Addr
	e.spawn(&e.workers, func() {
		if err := e.node.join(name, addr); err != nil {
			e.log.Debug("sbr: could not reconnect", "member", name, "address", addr, "error", err)
		}
		e.inbox.Post(func() { e.joining = false })
	})
}

// checkDigests names the members that decide by other rules.
func (e *engine) checkDigests() {
	for _, k := range e.members.known {
		its := k.tags[TagConfig]
		if its == "" || its == e.digest || k.failed || !e.isNews("the digest of "+string(k.member.ID), its) {
			continue
		}
		risk := "both sides of a partition may survive"
		if e.lease != nil {
			risk = "with another lease both sides of a partition may survive, " +
				"with another heartbeat-timeout two members may hold the lease"
		}
		e.log.Error("sbr: a member has another configuration: "+risk+
			"; give all members the same (sbr config check prints the digest)",
			"member", k.member.Name, "its-digest", its, "our-digest", e.digest)
	}
}

// isNews reports whether a text is another one than the last about the same. Loop only.
func (e *engine) isNews(about, text string) bool {
	last := e.said[about]
	e.said[about] = text
	return text != last
}

// warn logs what the strategy has to say against the present membership, once for each sentence.
func (e *engine) warn() {
	w, ok := e.strategy.(interface{ Warning(v *sbr.View) string })
	if !ok {
		return
	}
	s := e.resolver.Snapshot()
	text := w.Warning(&sbr.View{Self: s.Self, Members: s.Members})
	if e.isNews("warning", text) && text != "" {
		e.log.Warn("sbr: "+text, "strategy", e.cfg.Strategy)
	}
}

package downing

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A start is decided like a partition (design rule 22). Members that start in a network that is cut find only
// those of their own part, and would be a second cluster beside the others. So a new member takes no part
// until it has found the cluster that it belongs to: the resolver's clock is stopped, and the application is
// suspended. It looks for the members that its host remembers, whatever min-members is; where the last
// verdict is news to it, or nothing is remembered, for the survivors of that verdict. It takes part
//   - once one of them is here that has been in the cluster all the time: it knows the missing members; and
//     once all that take part have answered it (design rule 17): a member that is started again behind its
//     broken link would be suspected again and again;
//   - once there is a member on each of their hosts: the earlier cluster has ended;
//   - once it has looked for them for lookFor: the missing members are suspects then, and the lease decides,
//     as about any suspect.
//
// The third is not for every member. Members that were downed, that remember nothing, or that left in peace
// know of no cluster that would miss them: by a verdict of theirs they would only down the members that went
// on without them. They may decide where more than half of the members are here, of which they were one;
// without a lease no member may otherwise. That holds as well for a member that had found its cluster, waited
// for the answers of all, and lost it: the cluster lives, or others look for it, too.
//
// A member that waits says so (lookingFor): its links count for no member, and no member suspects it. So the
// others have to learn that it takes part before it does: cut off before that it would decide against members
// that do not miss it.

// sayWaitingAfter is how long a new member may look for the others before that is called a suspension:
// joining takes a moment.
const sayWaitingAfter = 2 * time.Second

// lookFor is how long a new member looks for the others before it suspects them. If they live, and it was
// suspected by them before it started, they have asked for the lease before it does.
func (e *engine) lookFor(s *search) time.Duration {
	return e.cfg.Resolver.StableIn(s.all) + e.cfg.Resolver.LeaseDeadline
}

// search is how far a new member has come in finding its cluster.
type search struct {
	verdict sbr.Verdict // the newest
	last    remembered
	knows   bool     // its host was in the cluster of that verdict, and remembers the others
	places  []place  // members that it looks for
	missing []place  // those without a member on their host
	found   bool     // a member is here that has been in the cluster all the time
	silent  []sbr.ID // members of the cluster that was found, which have not answered this one
	// decides says that the missing ones may be suspected in time; here and all count the hosts of the
	// cluster, this one's included.
	decides   bool
	here, all int
}

// searched compares the members that are here with those that this new member looks for.
func (e *engine) searched(list []serf.Member) search {
	s := search{verdict: e.resolver.Verdict(), last: e.cfg.Memory.load()}
	s.knows = s.last.Verdict.Token >= s.verdict.Token && (s.verdict.Token > 0 || len(s.last.Members) > 0)
	s.places = e.awaits(&s)
	hosts := make(map[string]sbr.ID) // the member on each host now
	for i := range list {
		m := &list[i]
		id := idOf(m)
		if m.Status != serf.StatusAlive || isUntagged(id) {
			continue
		}
		hosts[hostOf(id)] = id
		s.found = s.found || id != e.self.ID && s.wentOn(m)
	}
	all := map[string]struct{}{hostOf(e.self.ID): {}}
	for _, p := range s.places {
		all[hostOf(p.ID)] = struct{}{}
		if now, there := hosts[hostOf(p.ID)]; (!there || now == p.ID) && !e.members.hasEnded(p.ID) {
			s.missing = append(s.missing, p)
		}
	}
	for host := range all {
		if _, there := hosts[host]; there {
			s.here++
		}
	}
	s.all = len(all)
	s.decides = (!e.found || 2*s.here > s.all) && len(hosts) >= e.cfg.Resolver.MinMembers &&
		s.mayDecide(hostOf(e.self.ID), e.lease != nil)
	return s
}

// mayDecide reports whether a new member of this host may suspect missing members.
func (s *search) mayDecide(host string, leased bool) bool {
	hadPlace := slices.ContainsFunc(s.verdict.Remaining(), func(id sbr.ID) bool { return hostOf(id) == host })
	if (s.knows || hadPlace) && 2*s.here > s.all {
		return true
	}
	survived := slices.ContainsFunc(s.last.Before, func(id string) bool {
		return slices.Contains(s.verdict.Survivors, sbr.ID(id))
	})
	return leased && !s.last.Left && (s.knows || survived)
}

// awaits are the members that this new member has to find.
func (e *engine) awaits(s *search) (places []place) {
	v := &s.verdict
	if !s.knows {
		for _, id := range v.Remaining() {
			if id != e.self.ID {
				places = append(places, place{ID: id, Seen: v.Token})
			}
		}
		if v.Partial { // there are survivors that it does not know
			places = append(places, place{ID: v.DecidedBy, Seen: v.Token})
		}
		return places
	}
	for _, p := range s.last.Members {
		if !e.resolver.KeptOut(p.ID, p.Seen) && !slices.Contains(v.Left, p.ID) {
			places = append(places, p)
		}
	}
	return places
}

// wentOn reports whether a member has been in the cluster that a new member looks for since before the new
// member started, or has found it. If the new member knows the cluster, a member of it that started anew is
// no proof: it knows no more.
func (s *search) wentOn(m *serf.Member) bool {
	id := idOf(m)
	if isNew(m.Tags[TagIn]) {
		return false // it looks for the cluster itself
	}
	if slices.Contains(s.verdict.Remaining(), id) {
		return true
	}
	same := slices.ContainsFunc(s.places, func(p place) bool { return p.ID == id })
	if s.verdict.Token == 0 {
		return same
	}
	if parse36(m.Tags[TagIn]) < int64(s.verdict.Token) {
		return false
	}
	anew := slices.ContainsFunc(s.places, func(p place) bool { return hostOf(p.ID) == hostOf(id) })
	return !s.knows || same || !anew
}

// perLife is what makes the node names of one host differ from start to start: serf.unique-node, or the uid
// of a pod.
var perLife = regexp.MustCompile(`\.(u[0-9]{10}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// hostOf is what the incarnations of one host have in common.
func hostOf(id sbr.ID) string { return perLife.ReplaceAllString(strings.ToLower(NameOf(id)), "") }

// answering returns the members that have answered a probe of this new member, and asks the others. Serf's
// list may be out of date: a member that starts again in a cut learns of the other side from a member that
// has not missed it yet, or from an agent that lived on. silent are those of the others that take part. Where
// no member can be asked Serf's list counts.
func (e *engine) answering(list []serf.Member) (here []serf.Member, silent []sbr.ID) {
	if !e.cfg.Probe.On() {
		return list, nil
	}
	var ask []sbr.ID
	here = slices.DeleteFunc(slices.Clone(list), func(m serf.Member) bool {
		id := idOf(&m)
		if m.Status != serf.StatusAlive {
			delete(e.answered, id)
		}
		if m.Status != serf.StatusAlive && m.Status != serf.StatusFailed || isUntagged(id) || id == e.self.ID ||
			e.answered[id] {
			return false
		}
		if m.Status == serf.StatusAlive && e.members.known[id] != nil && len(ask) < e.cfg.Probe.Budget {
			ask = append(ask, id)
		}
		if m.Tags[TagIn] != lookingFor && !e.members.hasEnded(id) &&
			!e.resolver.KeptOut(id, memberOf(&m, sbr.Up).Seen) {
			silent = append(silent, id)
		}
		return true
	})
	if !e.askingAll {
		e.askingAll = e.ping(ask, func(results map[sbr.ID]pong) {
			e.askingAll = false
			before := len(e.answered)
			for _, id := range ask {
				if p, known := results[id]; e.newcomer && (!known || p.answered) {
					e.answered[id] = true
				}
			}
			if len(e.answered) > before {
				e.poll()
			}
		})
	}
	return here, silent
}

// lookForOthers lets a new member take part once it has found the cluster that it belongs to. Loop only.
func (e *engine) lookForOthers(list []serf.Member) {
	if !e.recordTaken {
		return // it is still in the inbox, behind a look that an agent asked for
	}
	here, silent := e.answering(list)
	s := e.searched(here)
	looked := time.Since(e.origin)
	e.found = e.found || s.found
	switch {
	case e.orphaned():
		s.missing = nil
		e.inherit()
	case s.found && len(silent) > 0 && !e.goesOn():
		s.missing, s.silent = nil, silent
	case s.found:
		e.takePart(nil)
		return
	case e.takesPartAlready() || len(s.missing) == 0 || s.decides && looked >= e.lookFor(&s):
		e.takePart(s.missing)
		return
	}
	if time.Since(e.announced) >= announceFor {
		e.setTagIn(lookingFor)
	}
	e.awaited = s.silent
	for _, p := range s.missing {
		e.awaited = append(e.awaited, p.ID)
	}
	if len(s.missing) > 0 {
		e.bootstrap()
	}
	reason := e.awaitedText(&s)
	switch {
	case e.held.is(byNewness):
		e.held.reason = reason // the missing members change
	case looked >= sayWaitingAfter:
		o := because(OccurredWaiting, "waits at the start", reason)
		e.occur(o.with(slog.String("for", waitingNewcomer), ids("awaited", e.awaited)))
		e.hold(byNewness, reason)
	}
}

// takesPartAlready reports whether the newest verdict was written after this member started, or it goes on.
func (e *engine) takesPartAlready() bool {
	v := e.resolver.Verdict()
	return v.Standing(e.self.ID, e.self.Seen) != sbr.Newer || e.goesOn()
}

// goesOn reports whether this process goes on as a member that had found its cluster, or goes down by the
// newest verdict, which the resolver sees to.
func (e *engine) goesOn() bool {
	v := e.resolver.Verdict()
	return v.Standing(e.self.ID, e.self.Seen) == sbr.Out || e.adopted && e.adoptedIn >= int64(v.Token)
}

func (e *engine) awaitedText(s *search) string {
	who, token := someOf(e.awaited), s.verdict.Token
	wayOut := fmt.Sprintf("only if all of them have ended for good: start one member with --bootstrap=%d; should one "+
		"run after all, that downs it", token)
	if token == 0 {
		wayOut = "only if all of them have ended for good: start one member without its state folder"
	}
	switch {
	case len(s.silent) > 0:
		return fmt.Sprintf("members of its cluster do not answer this one: %s (repair the network between them and this "+
			"member; it takes part once all have answered)", who)
	case len(s.missing) == 0:
		return "everybody of the last cluster has left in peace, and the lease store has not yet made this member " +
			"its successor: it is asked again and again"
	case s.decides:
		return fmt.Sprintf("members of its cluster are not here: %s; it looks for them for %v, then they are suspects",
			who, e.lookFor(s))
	case s.knows:
		return fmt.Sprintf("members of its cluster are not here: %s; %d of %d hosts are, and it takes more than half "+
			"of them (%s)", who, s.here, s.all, wayOut)
	default:
		return fmt.Sprintf("no survivor of the last verdict found: %s (if these are another cluster's, give each "+
			"cluster a lease of its own; %s)", who, wayOut)
	}
}

// setTagIn announces whether this member takes part.
func (e *engine) setTagIn(in string) {
	if e.tags[TagIn] != in {
		e.tags[TagIn] = in
		e.setTags()
	}
}

// announceFor is how long the others have to answer once more when a new member has told them that it takes
// part: enough for a thousand of them, asked Probe.Budget at a time.
const announceFor = 30 * time.Second

// takePart admits a new member. If it has said that it takes no part, it takes that back first, and admits
// itself when nothing speaks against it after that.
func (e *engine) takePart(missing []place) {
	waited := e.tags[TagIn] == lookingFor
	if e.goesOn() || !waited && !e.offering.writing {
		e.admit(missing)
		return
	}
	if waited {
		e.announced = time.Now()
		e.setTagIn(entering)
	}
	clear(e.answered) // all have to answer once more, when they know of it
}

// admit makes the new member a member like any other. The time for which it waited never was, for the
// resolver. The missing ones are its suspects: until the resolver has an opinion of them the application
// stays suspended.
func (e *engine) admit(missing []place) {
	e.judgeBootstrap()
	e.newcomer, e.awaited, e.answered, e.found = false, nil, nil, false
	e.origin = time.Now()
	e.nextPoll, e.nextProbe, e.nextJoin, e.nextSeek = e.cfg.PollInterval, 0, 0, 0
	if token := e.resolver.Verdict().Token; token > 0 || e.tags[TagIn] != "" {
		e.setTagIn(format36(int64(token)))
	}
	if len(missing) > 0 {
		e.log.Warn("sbr: members of its cluster did not come, they are suspects now", "members", len(missing))
		e.suspect(missing)
	}
	e.endNewness()
}

// endNewness lets the application of a member go on that takes part. Suspects from before its start hold it
// back until the resolver is armed, which has the say then.
func (e *engine) endNewness() {
	switch {
	case e.newcomer:
	case e.resolver.Suspects() > 0 && e.resolver.State() == sbr.StateArming:
		e.hold(byNewness, "members that could not be reached before this start are not decided about")
	case e.held.is(byNewness):
		e.free(byNewness, "the cluster that this member belongs to is here")
	}
}

// Serf joins once, and then tries to reach members that it calls failed. Members that were removed from its
// list, or that a restarted Serf does not know, are not found again: two parts of a cluster that started
// apart stay apart. So a member joins the remembered addresses of missing members. Those of downed members
// are tried seldom, by one or two of the whole cluster at a time: most of them come back by themselves, or
// never.

const (
	seekEvery = 10 * time.Second
	// seekMost is how many addresses are tried at a time.
	seekMost = 5
)

// seek joins some of the addresses where members are missing. Loop only.
func (e *engine) seek(list []serf.Member) {
	if e.cfg.Memory == nil || e.seeking || e.leaving || e.ended || e.clock() < e.nextSeek {
		return
	}
	first := e.nextSeek == 0
	e.nextSeek = e.clock() + seekEvery
	if first {
		e.nextSeek = e.clock() + sayWaitingAfter // the application joins first
		return
	}
	addrs := e.soughtAddresses(list)
	if len(addrs) == 0 {
		return
	}
	e.seeking = true
	e.spawn(&e.workers, func() {
		for _, addr := range addrs {
			if e.ctx.Err() != nil {
				break
			}
			if err := e.node.join("", addr); err != nil {
				e.log.Debug("sbr: nobody answers where a member was", "address", addr, "error", err)
				continue
			}
			e.log.Info("sbr: joined an address where a member was", "address", addr)
		}
		e.inbox.Post(func() { e.seeking = false })
	})
}

// soughtAddresses are where members are missing: some of those that are remembered, and one of those that
// were downed.
func (e *engine) soughtAddresses(list []serf.Member) (addrs []string) {
	listed, hosts := make(map[string]bool), make(map[string]bool)
	for i := range list {
		m := &list[i] // those that have failed Serf tries to reach by itself
		if m.Status == serf.StatusAlive || m.Status == serf.StatusFailed {
			listed[addrOf(m)] = true
			hosts[hostOf(idOf(m))] = true
		}
	}
	pick := func(places []place, most int) {
		var missing []string
		for _, p := range places {
			if p.Addr != "" && !listed[p.Addr] && !hosts[hostOf(p.ID)] {
				missing = append(missing, p.Addr)
			}
		}
		rand.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
		addrs = append(addrs, missing[:min(len(missing), most)]...)
	}
	last := e.cfg.Memory.load()
	pick(last.Members, seekMost)
	if !e.newcomer && rand.IntN(len(list)+1) < 2 { // not the first: it may have joined since, and know of none
		pick(last.Downed, 1)
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

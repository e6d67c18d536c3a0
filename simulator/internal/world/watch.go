package world

import (
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// watch is what the checkers remember of one process, by its own clock. It is worked out from what the
// process was told alone, so that the resolver's own accounting is not checked against itself.
type watch struct {
	// viewed is when its view of reachability changed last, troubled when that began: when a member became
	// unreachable while none was, or after the view had been stable; both only about members that may still
	// have to be downed.
	viewed, troubled time.Duration
	// reset is the last moment from which stable-after may count: viewed, and whatever else begins the count
	// anew.
	reset time.Duration
	// indirect are the members that were indirectly connected last, reports what was told of who reaches
	// whom.
	indirect []sbr.ID
	reports  []sbr.Report
	judged   judgement
	// since and missed are since when each of the reports, and a member's being unreachable, stand without a
	// gap.
	reported []sbr.Report
	since    []time.Duration
	missed   map[sbr.ID]time.Duration
	// size is how many members there were when none was unreachable, for stable-after: auto.
	size int
	// suspects are the members that are unreachable and may still have to be downed.
	suspects int
	// decided says that it has ever explained a decision, proxy that the last one was the last chance after
	// another member's.
	decided, proxy bool
	// unrest says that its last decision was about a view that had not come to rest.
	unrest bool
	// tryBy is the last moment for the first attempt that follows a decision; zero: none is due.
	tryBy time.Duration
	// late says that it was not there from the start.
	late bool
	// harmed says that something happened to it, or to its way to the store, that excuses it from promise L1.
	harmed bool
}

// judgement is what wouldDown answered last, and about what: most events change neither.
type judgement struct {
	members            []sbr.Member
	reports, confirmed []sbr.Report
	down               []sbr.ID
}

// stableAfter is what stable-after must be at the process.
func (p *process) stableAfter() time.Duration { return p.node.rules.Resolver.StableIn(p.watch.size) }

// count takes the size of a view in which no member is unreachable and the process is not suspended; before
// it is armed, of any.
func (h *watch) count(p *process) {
	rules := &p.node.rules.Resolver
	state := p.r.State()
	settled := state == sbr.StateArming || state != sbr.StateSuspended && p.r.Suspects() == 0
	if rules.StableAfter != sbr.Auto || !settled {
		return
	}
	h.size = 0
	for _, m := range p.r.Snapshot().Members {
		if m.Downable() {
			h.size++
		}
	}
}

// view takes in what an event changes in who can be reached. It runs before the resolver's step.
func (h *watch) view(p *process, e sbr.Event) {
	unreachable, changes := changesView(p, e)
	if !changes {
		return
	}
	now := p.clock()
	if h.suspects == 0 && unreachable || now-h.viewed >= p.stableAfter() {
		h.troubled = now
	}
	h.viewed, h.reset, h.proxy, h.tryBy = now, now, false, 0
}

// changesView reports whether an event makes a member that may still have to be downed unreachable, or
// reachable.
func changesView(p *process, e sbr.Event) (unreachable, changes bool) {
	switch e := e.(type) {
	case sbr.Reachability:
		m, known := p.r.Member(e.ID)
		return e.Unreachable, known && e.ID != p.id && m.Unreachable != e.Unreachable && m.Status <= sbr.Up
	case sbr.Observations:
		before := p.watch.reports
		p.watch.reports = e.Reports
		if sbr.KeepsLargestGroup(p.node.rules.Strategy) {
			if p.r.Suspects() == 0 || p.clean(before) && p.clean(e.Reports) {
				p.watch.judged = judgement{}
				return false, false
			}
			members := p.r.Snapshot().Members
			return false, !slices.Equal(p.wouldDown(members, before), p.wouldDown(members, e.Reports))
		}
		var ids []sbr.ID
		if aboutObservers(e.Reports) {
			v := sbr.View{Self: p.id, Members: p.r.Snapshot().Members, Reports: e.Reports}
			ids = v.IndirectlyConnected()
		}
		changes = !slices.Equal(ids, p.watch.indirect)
		p.watch.indirect = ids
		return false, changes && p.r.Suspects() > 0
	case sbr.MemberGone: // removed from the list, which is no end
		m, known := p.r.Member(e.ID)
		suspected := m.Unreachable && m.Status <= sbr.Up
		return true, known && e.ID != p.id && !e.Ended && m.Downable() && !suspected
	case sbr.Suspected:
		for i := range e.Members {
			_, known := p.r.Member(e.Members[i].ID)
			changes = changes || !known
		}
		return true, changes
	case sbr.MemberSeen: // a member that was leaving, and is not; or that is listed again
		m, known := p.r.Member(e.Member.ID)
		if known && m.Unlisted && m.Status <= sbr.Up {
			return false, true
		}
		return true, known && m.Unreachable && m.Status > sbr.Up && m.Status != sbr.Down &&
			e.Member.Status <= sbr.Up
	}
	return false, false
}

// link joins two members, the lower incarnation first.
type link [2]sbr.ID

func (p *process) misses(id sbr.ID) bool {
	m, _ := p.r.Member(id)
	return m.Unreachable
}

// compareReports is the order of all lists of reports.
func compareReports(a, b sbr.Report) int {
	if a.Observer == b.Observer {
		return strings.Compare(string(a.Subject), string(b.Subject))
	}
	return strings.Compare(string(a.Observer), string(b.Observer))
}

// confirmed are the reports that can break a link: one end is unreachable for p, or both report each other.
func (p *process) confirmed(reports []sbr.Report, unreachable func(sbr.ID) bool) []sbr.Report {
	reached := func(id sbr.ID) bool {
		_, known := p.r.Member(id)
		return known && !unreachable(id)
	}
	kept := make([]sbr.Report, 0, len(reports))
	from := false // whether the observer is reached: reports are in the order of their observers
	for i, r := range reports {
		if i == 0 || r.Observer != reports[i-1].Observer {
			from = reached(r.Observer)
		}
		if from && reached(r.Subject) {
			back := sbr.Report{Observer: r.Subject, Subject: r.Observer}
			if _, both := slices.BinarySearchFunc(reports, back, compareReports); !both {
				continue
			}
		}
		kept = append(kept, r)
	}
	return kept
}

// clean says that members which p reaches report only members which it does not reach: then the members that
// go down do not depend on the reports.
func (p *process) clean(reports []sbr.Report) bool {
	for i, r := range reports {
		if b, known := p.r.Member(r.Subject); !known || !b.Unreachable {
			return false
		}
		if i > 0 && r.Observer == reports[i-1].Observer {
			continue // reports are in the order of their observers
		}
		if a, known := p.r.Member(r.Observer); !known || a.Unreachable {
			return false
		}
	}
	return true
}

// wouldDown lists which of the members p would down if it had to decide by those of the reports that are
// confirmed.
func (p *process) wouldDown(members []sbr.Member, reports []sbr.Report) []sbr.ID {
	last := &p.watch.judged
	same := slices.EqualFunc(members, last.members, func(a, b sbr.Member) bool {
		return a.ID == b.ID && a.Status == b.Status && a.Unreachable == b.Unreachable // nothing else of it changes
	})
	if same && slices.Equal(reports, last.reports) {
		return last.down
	}
	confirmed := p.confirmed(reports, p.misses)
	if !same || !slices.Equal(confirmed, last.confirmed) {
		v, rules := sbr.View{Self: p.id, Members: members, Reports: confirmed}, p.node.rules
		last.down = sbr.Decide(rules.Strategy, &v, rules.Resolver.DownAllWhenIndirectlyConnected).Down
	}
	last.members, last.reports, last.confirmed = members, reports, confirmed
	return last.down
}

// brokenLinks are those between two members that p hears. It says plainly what the resolver and
// View.LargestGroup work out in their own ways.
func (p *process) brokenLinks(reports []sbr.Report, unreachable func(sbr.ID) bool) map[link]bool {
	observers, links := make(map[sbr.ID]bool), make(map[link]bool)
	for _, r := range reports {
		observers[r.Observer] = true
	}
	hears := func(id sbr.ID) bool {
		m, known := p.r.Member(id)
		return known && m.Downable() && (id == p.id || !unreachable(id) || observers[id])
	}
	for _, r := range p.confirmed(reports, unreachable) {
		if hears(r.Observer) && hears(r.Subject) {
			links[link{min(r.Observer, r.Subject), max(r.Observer, r.Subject)}] = true
		}
	}
	return links
}

// aboutObservers reports whether a report is about an observer. If not, no member is indirectly connected.
func aboutObservers(reports []sbr.Report) bool {
	observers := make(map[sbr.ID]bool)
	for i := range reports {
		if i == 0 || reports[i].Observer != reports[i-1].Observer {
			observers[reports[i].Observer] = true
		}
	}
	return len(observers) > 0 && slices.ContainsFunc(reports, func(r sbr.Report) bool {
		return observers[r.Subject]
	})
}

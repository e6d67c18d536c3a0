package downing

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/sbr"
)

// A member that begins after a verdict belongs to the cluster that this verdict has left, and to no other. Members that were downed and started again
// while the cut lasts would find each other, be enough of them, and be a second cluster; its first verdict would even down the other one. So a
// newcomer takes no part until it has found a survivor of the newest verdict, or a member that has; or until every survivor's node is there as a newer
// incarnation, which means that the old cluster is gone. Until then the resolver's clock stands still, and the application is suspended.

// sayWaitingAfter is how long a newcomer may look for the others before that is called a suspension: joining takes a moment.
const sayWaitingAfter = 2 * time.Second

// awaits lists the survivors of the newest verdict whom this newcomer has to find, any of them; empty when it belongs to the cluster.
func (e *engine) awaits(list []serf.Member) (missing []sbr.ID) {
	v := e.resolver.Verdict()
	if e.cfg.Bootstrap || v.Token == 0 || v.Standing(e.self.ID, e.self.Seen) != sbr.Newer {
		return nil // whoever is out goes down, by the resolver
	}
	hosts := make(map[string]sbr.ID) // who runs on each host now
	for i := range list {
		m := &list[i]
		id := idOf(m)
		if m.Status != serf.StatusAlive || isUntagged(id) {
			continue
		}
		if slices.Contains(v.Survivors, id) || parse36(m.Tags[TagIn]) >= int64(v.Token) && (id != e.self.ID || e.adopted) {
			return nil
		}
		hosts[hostOf(id)] = id
	}
	for _, id := range v.Survivors {
		if now, there := hosts[hostOf(id)]; !there || now == id {
			missing = append(missing, id)
		}
	}
	if v.Partial && len(missing) == 0 {
		return []sbr.ID{v.DecidedBy} // there are survivors that it does not know
	}
	return missing
}

// perLife is what makes the node names of one host differ from start to start: serf.unique-node, or the uid of a pod.
var perLife = regexp.MustCompile(`\.(u[0-9]{10}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)

// hostOf is what the incarnations of one host have in common.
func hostOf(id sbr.ID) string { return perLife.ReplaceAllString(strings.ToLower(NameOf(id)), "") }

// lookForSurvivors lets a newcomer take part once it has found the cluster that it belongs to. Loop only.
func (e *engine) lookForSurvivors(list []serf.Member) {
	if !e.recordTaken {
		return // it is still in the inbox, behind a look that an agent asked for
	}
	e.awaited = e.awaits(list)
	if len(e.awaited) == 0 {
		e.admit()
		return
	}
	if !e.held.by[byNewness] && time.Since(e.origin) >= sayWaitingAfter {
		reason := e.awaitedText()
		e.log.Warn("sbr: this newcomer waits: "+reason, "member", e.self.Name)
		e.hold(byNewness, reason)
	}
}

func (e *engine) awaitedText() string {
	names := make([]string, len(e.awaited))
	for i, id := range e.awaited {
		names[i] = NameOf(id)
	}
	const most = 5
	if rest := len(names) - most; rest > 0 {
		names = append(names[:most], "and others")
	}
	return "the last verdict left a cluster of which nobody is to be found here: " + strings.Join(names, ", ") + " (if they are gone for good: start one member with --bootstrap)"
}

// admit makes the newcomer a member like any other. The time for which it waited never was, for the resolver.
func (e *engine) admit() {
	e.newcomer = false
	e.origin = time.Now()
	e.nextPoll, e.nextProbe, e.nextJoin = e.cfg.PollInterval, 0, 0
	if token := e.resolver.Verdict().Token; token > 0 {
		e.tags[TagIn] = format36(int64(token))
		e.setTags()
	}
	e.free(byNewness, "the cluster that the last verdict left is here")
}

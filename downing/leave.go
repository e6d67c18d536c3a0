package downing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A leave in peace is recorded beside the last verdict, so that a start does not wait for a member that has
// left; the last remaining member hands the record to the members that are here (sbr.Verdict.Leave). A member
// that starts when none remains has to inherit the record first, by compare-and-swap: of two parts that
// cannot see each other one does.

const (
	// leaveStagger is the pause between the writes of members that leave at the same moment. A later member
	// has often received the goodbyes of the others by then: one writes for all, and the rest finds itself
	// recorded.
	leaveStagger = 200 * time.Millisecond
	// leaveRanks bounds how long that takes.
	leaveRanks = 8
	// leaveWithin is how long a member may go on that has said goodbye: for the others it has ended, and it may
	// be recorded as left.
	leaveWithin = 30 * time.Second
)

// depart follows the wish of the node to leave: this member decides nothing any more, and says so. Loop only.
func (e *engine) depart() {
	e.leaving, e.leaveBy = true, time.Now().Add(leaveWithin)
	e.step(sbr.Left{})
	e.sayGoodbye()
	e.spawn(&e.workers, e.rememberLeave)
}

// resign is depart for Stop: beside an agent the node may stay, but it is no member any more. Loop only.
func (e *engine) resign() {
	_, ok := e.node.(*beside)
	e.leaving = e.leaving || ok && !e.cfg.KeepTags || e.node.leaving(e.self.Name)
	e.step(sbr.Left{})
	e.ended = true
}

// recordLeave records beside the verdict which members have left, this one among them. Stop waits for it.
// Loop only.
func (e *engine) recordLeave(eff sbr.RecordLeave) {
	switch older := e.olderMember(); {
	case !e.leaving || e.newcomer: // it leaves no cluster
		return
	case older != "":
		e.log.Info("sbr: the leave is not recorded: a member of an earlier version could not read it",
			"member", older)
		return
	}
	wait := time.Duration(e.leaveRank()) * leaveStagger
	e.spawn(&e.tells, func() {
		e.rest(wait)
		gone := e.alsoGone(eff.Gone)
		_, err := e.amend(eff.Token, func(v *sbr.Verdict) bool {
			return !slices.Contains(v.Left, e.self.ID) && v.Leave(gone, eff.Here)
		})
		if err != nil {
			e.log.Warn("sbr: the leave may not be recorded: after a stop of the whole cluster the others may wait for it",
				"lease", e.cfg.leaseName(), "error", oneLine(err))
			return
		}
		e.log.Info("sbr: the leave is recorded: nobody waits for this member", "lease", e.cfg.leaseName())
	})
}

// leaveRank spreads the writes of members that leave at the same moment: those that have received the goodbye
// of a member may have forgotten it by then, so the last verdict gives the order, which is the same for all.
func (e *engine) leaveRank() int {
	v := e.resolver.Verdict()
	place := slices.Index(v.Survivors, e.self.ID)
	if place < 0 {
		place = len(v.Survivors)
	}
	return place%leaveRanks + 1
}

// amend changes what stands beside the verdict with that token, if it is the last.
func (e *engine) amend(token uint64, change func(*sbr.Verdict) bool) (lease.Record, error) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	return e.lease.Amend(ctx, func(v *sbr.Verdict) bool { return v.Token == token && change(v) })
}

// alsoGone adds the members that have said goodbye meanwhile, as long as the loop runs.
func (e *engine) alsoGone(gone []sbr.ID) []sbr.ID {
	all, err := ask(context.Background(), e, func(known chan<- []sbr.ID) {
		all := slices.Clone(gone)
		for id, k := range e.members.known {
			if k.goodbye && !isUntagged(id) {
				all = append(all, id)
			}
		}
		known <- all
	})
	if err != nil {
		return gone
	}
	return all
}

// olderMember names a member whose version may not be able to read a record of leaves; empty if there is
// none.
func (e *engine) olderMember() string {
	for id, k := range e.members.known {
		if !isUntagged(id) && !k.goodbye && !k.saysGoodbye() && id != e.self.ID {
			return k.member.Name
		}
	}
	return ""
}

// staying lists the members that are here and do not leave, in address order, this one among them. Loop only.
func (e *engine) staying() (here []sbr.Member) {
	v := e.resolver.Verdict()
	s := e.resolver.Snapshot()
	for _, m := range s.Members {
		if !m.Unreachable && m.Status <= sbr.Up && !isUntagged(m.ID) && v.Eligible(m.ID, m.Seen) {
			here = append(here, m)
		}
	}
	return here
}

func idsOf(members []sbr.Member) []sbr.ID {
	ids := make([]sbr.ID, len(members))
	for i := range members {
		ids[i] = members[i].ID
	}
	return ids
}

// orphaned reports whether no member remains of the cluster that the last verdict has left: then this member
// has to inherit the record before it may be a member. Loop only.
func (e *engine) orphaned() bool {
	v := e.resolver.Verdict()
	return e.lease != nil && !e.leaving &&
		v.Token > 0 && !v.Partial && len(v.Left) > 0 && len(v.Remaining()) == 0 &&
		v.Standing(e.self.ID, e.self.Seen) == sbr.Newer
}

// inherit hands the record to the members that are here. A member that takes part already may have to, too:
// the last member that left may not have known it yet. Loop only.
func (e *engine) inherit() {
	if e.inheriting || e.ended || !e.orphaned() {
		return
	}
	e.inheriting = true
	token, here := e.resolver.Verdict().Token, idsOf(e.staying())
	e.spawn(&e.workers, func() {
		rec, err := e.amend(token, func(v *sbr.Verdict) bool { return v.Inherit(here) })
		if err != nil {
			e.rest(e.cfg.Resolver.LeaseRetry)
		}
		e.inbox.Post(func() {
			e.inheriting = false
			if err != nil {
				e.complain.log("sbr: everybody of the last cluster has left, and this member cannot inherit its record",
					"error", oneLine(err))
				return
			}
			e.step(sbr.LeaseObserved{Record: recordOf(rec)})
			e.poll()
		})
	})
}

// goneByNow downs a member that has said goodbye and has not left: no verdict reaches it any more, the others
// go on without it, and may have begun anew. Loop only.
func (e *engine) goneByNow() {
	if !e.leaveBy.IsZero() && time.Now().After(e.leaveBy) && !e.node.left(e.self.Name) {
		e.down(fmt.Sprintf("this member said goodbye, and its node has not left within %v", leaveWithin))
	}
}

// An operator who knows that all members of the last cluster have ended for good begins a new cluster
// (Config.Bootstrap). It is a verdict by the lease: of two such members one wins, and an old member that
// still runs is downed.

// bootstrapAfter is how long a member looks for the others before it takes the operator at their word.
const bootstrapAfter = 20 * time.Second

// bootstrap writes the verdict that the operator asks for. Loop only.
func (e *engine) bootstrap() {
	v := e.resolver.Verdict()
	if e.bootstrapping || e.cfg.Bootstrap == 0 || e.cfg.Bootstrap != v.Token ||
		v.Partial || e.clock() < bootstrapAfter {
		return
	}
	e.bootstrapping = true
	p := lease.Proposal{Base: e.resolver.Snapshot().Record.Token, BaseBy: string(v.DecidedBy)}
	p.Verdict = v.Succeed(e.self.ID, idsOf(e.staying()),
		fmt.Sprintf("an operator says by --bootstrap=%d that %s have ended for good", v.Token, someOf(e.awaited)))
	e.occur(e.asking(p.Verdict))
	e.spawn(&e.workers, func() {
		answer := e.acquire(p)
		if answer.Outcome != sbr.Granted {
			e.rest(e.cfg.Resolver.LeaseRetry)
		}
		e.inbox.Post(func() {
			e.bootstrapping = false
			if o, ok := e.leaseAnswered(&answer); ok {
				e.occur(o)
			}
			if answer.Outcome != sbr.Unknown {
				e.step(sbr.LeaseObserved{Record: answer.Record})
			}
			e.poll()
		})
	})
}

// judgeBootstrap says why Config.Bootstrap has no effect. Loop only.
func (e *engine) judgeBootstrap() {
	v := e.resolver.Verdict()
	switch token := e.cfg.Bootstrap; {
	case token == 0 || v.DecidedBy == e.self.ID:
	case token != v.Token:
		e.log.Warn("sbr: --bootstrap has no effect: it speaks of another verdict than the last one",
			"it-names", token, "last", v.Token)
	default:
		e.log.Warn("sbr: --bootstrap is refused: members of the cluster that the last verdict left are here, "+
			"and this member joins them", "verdict", v.Token)
	}
}

// someOf names the first of many members.
func someOf(all []sbr.ID) string {
	names := make([]string, len(all))
	for i, id := range all {
		names[i] = NameOf(id)
	}
	return strings.Join(firstNames(names), ", ")
}

package downing

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// step feeds the resolver and carries out what it wants. Loop only.
func (e *engine) step(ev sbr.Event) {
	e.hearing = kindOf(ev)
	e.carry(e.resolver.Step(e.now(), ev))
}

// carry carries effects out, in order. None of them blocks the loop.
func (e *engine) carry(effects []sbr.Effect) {
	for _, eff := range slices.Clone(effects) {
		if e.halted.Load() {
			return
		}
		switch eff := eff.(type) {
		case sbr.ReadLease:
			e.spawn(&e.workers, func() { e.readLease(eff) })
		case sbr.AcquireLease:
			if e.isBlind() {
				continue // what it proposes rests on what it no longer sees; it begins anew once it sees again
			}
			e.observe(OccurredAsking, "", "asks for the lease %s: %d would stay, %d would go down", e.cfg.leaseName(), len(eff.Verdict.Survivors), len(eff.Verdict.Down))
			e.spawn(&e.workers, func() { e.acquireLease(eff) })
		case sbr.ReleaseLease:
			e.spawn(&e.tells, func() { e.releaseLease(eff) })
		case sbr.TellVerdict:
			e.tellVerdict(eff)
		case sbr.TellOrder:
			e.tellOrder(eff)
		case sbr.AskToRace:
			e.askToRace(eff)
		case sbr.AskStanding:
			e.askStanding()
		case sbr.Remove:
			e.startRemoving(eff.IDs)
		case sbr.Suspend:
			e.hold(byResolver, eff.Reason)
		case sbr.Resume:
			e.free(byResolver, eff.Reason)
		case sbr.DownSelf:
			e.down(eff.Reason)
		case sbr.Explain:
			e.explain(eff)
		}
	}
	e.refreshDenyList()
}

// spawn runs f beside the loop. If it panics (a store of the embedder's, say) the member fails safe, as it does for the loop.
func (e *engine) spawn(group *sync.WaitGroup, f func()) {
	if e.halted.Load() {
		return // the loop was stuck on its way here
	}
	group.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				e.log.Error("sbr: a worker of the resolver panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				e.inbox.Post(func() { e.step(sbr.Failed{Reason: fmt.Sprintf("panic: %v", p)}) })
			}
		}()
		f()
	})
}

// down downs this member: the fact first, then the application, then the others, then Serf. Loop only.
func (e *engine) down(reason string) {
	e.ended = true
	defer e.fall(reason) // whatever a hook or a logger does in between
	e.safely(func() {
		e.log.Error("sbr: this member is down", "member", e.self.Name, "reason", reason)
		e.metrics.downed()
		e.publish()
	})
	e.safely(func() { e.observe(OccurredDown, "", "down: %s", reason) })
}

// safely runs what must not keep a failing member from going down: it may be what has failed.
func (e *engine) safely(f func()) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("sbr: a panic while going down", "panic", fmt.Sprint(p))
		}
	}()
	f()
}

// fall makes the fact known and leaves the cluster. It does not touch what the loop owns.
func (e *engine) fall(reason string) {
	e.episodes.down(reason)
	e.mu.Lock()
	e.status.State = sbr.StateDown
	e.status.Deadline = nil
	e.mu.Unlock()
	e.talk.close()
	e.life.Down(reason, func(deadline time.Time) {
		e.waitForTells(deadline)
		e.lastTrace(deadline)
		e.node.goAway(deadline)
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		_ = e.release(ctx)
	})
}

// waitForTells gives what this member still has to say a third of the grace.
func (e *engine) waitForTells(deadline time.Time) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		e.tells.Wait()
	}()
	timer := time.NewTimer(time.Until(deadline) / 3)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
	}
}

func recordOf(r lease.Record) sbr.Record {
	return sbr.Record{Holder: sbr.ID(r.Holder), Token: r.Token, Verdict: r.Verdict.Clone()}
}

func (e *engine) readLease(eff sbr.ReadLease) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	began := time.Now()
	rec, err := e.lease.Read(ctx)
	e.leaseRead(began, err)
	answer := sbr.LeaseRead{Attempt: eff.Attempt, Record: recordOf(rec)}
	if err != nil {
		answer = sbr.LeaseRead{Attempt: eff.Attempt, Err: oneLine(err)}
	}
	e.inbox.Post(func() { e.step(answer) })
}

func (e *engine) acquireLease(eff sbr.AcquireLease) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	began := time.Now()
	p := lease.Proposal{Verdict: eff.Verdict.Clone(), Base: eff.Base, TakeOver: texts(eff.TakeOver)}
	out := e.lease.Acquire(ctx, p, e.onLost)
	e.acquired(began, &out)
	answer := sbr.LeaseAnswer{Attempt: eff.Attempt, Record: recordOf(out.Record)}
	switch out.Kind {
	case lease.Granted:
		answer.Outcome = sbr.Granted
	case lease.Held:
		answer.Outcome = sbr.Held
	default:
		answer.Outcome, answer.Err = sbr.Unknown, oneLine(out.Err)
	}
	e.inbox.Post(func() {
		switch answer.Outcome {
		case sbr.Granted:
			e.observe(OccurredGranted, "", "holds the lease %s, token %d", e.cfg.leaseName(), answer.Record.Token)
		case sbr.Held:
			e.observe(OccurredHeld, NameOf(answer.Record.Holder), "did not get the lease: %s", out)
		default:
			e.observe(OccurredUnknown, "", "does not know whether it got the lease: %s", answer.Err)
		}
		e.step(answer)
	})
}

// onLost follows the loss of the lease. Nothing that was decided changes by it, but whatever stands in the store now is news.
func (e *engine) onLost(reason error) {
	e.metrics.leaseLosses.add("")
	e.log.Warn("sbr: the lease was lost", "lease", e.cfg.leaseName(), "reason", reason)
	e.inbox.Post(func() { e.step(sbr.LeaseReleased{Done: true}) })
}

func (e *engine) releaseLease(eff sbr.ReleaseLease) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	out := e.lease.Release(ctx)
	e.inbox.Post(func() {
		if out.Kind == lease.Released {
			e.observe(OccurredReleased, "", "released the lease %s", e.cfg.leaseName())
		}
		e.step(sbr.LeaseReleased{Attempt: eff.Attempt, Done: out.Kind != lease.ReleaseUnknown})
	})
}

// watch follows the lease for as long as the engine runs; a store that cannot watch is polled by the lease. A store whose watch
// ends although it should not is watched again: without it a loser learns its fate only when it asks or is told.
func (e *engine) watch() {
	for e.ctx.Err() == nil {
		e.metrics.watching(true)
		err := e.lease.Watch(e.ctx, func(rec lease.Record) {
			e.metrics.answered()
			r := recordOf(rec)
			e.inbox.Post(func() { e.step(sbr.LeaseObserved{Record: r}) })
		})
		e.metrics.watching(false)
		if e.ctx.Err() == nil {
			e.metrics.leaseWatchFailed.add("")
			e.log.Error("sbr: the watch of the lease ended, watching it again", "lease", e.cfg.leaseName(), "error", err, "in", e.cfg.Resolver.LeaseRetry)
			e.rest(e.cfg.Resolver.LeaseRetry)
		}
	}
}

// rest waits, at most until the engine is released.
func (e *engine) rest(d time.Duration) { _ = sleep.For(e.ctx, d) }

// removeLimit is how many members are removed at the same time.
const removeLimit = 16

// startRemoving removes members that are not being removed already. Loop only.
func (e *engine) startRemoving(ids []sbr.ID) {
	e.members.removing(ids)
	due := make([]sbr.ID, 0, len(ids))
	for _, id := range ids {
		if _, busy := e.removing[id]; !busy {
			e.removing[id] = struct{}{}
			due = append(due, id)
		}
	}
	if len(due) > 0 {
		e.spawn(&e.workers, func() { e.remove(due) })
	}
}

func (e *engine) remove(ids []sbr.ID) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, removeLimit)
	for _, id := range ids {
		if e.ctx.Err() != nil {
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			removed, err := e.node.remove(id)
			if err != nil {
				e.metrics.removed(err)
				e.log.Warn("sbr: could not remove a downed member, trying again", "member", NameOf(id), "error", err)
			} else if removed {
				e.metrics.removed(nil)
				e.episodes.happened(stepRemoved, memberKey.String(NameOf(id)))
				e.inbox.Post(func() { e.observe(OccurredRemoved, NameOf(id), "%s is removed", NameOf(id)) })
			}
		})
	}
	wg.Wait()
	e.inbox.Post(func() {
		for _, id := range ids {
			delete(e.removing, id)
		}
		e.poll()
	})
}

// refreshDenyList hands the merge delegate what the resolver knows. It only works when something changed.
func (e *engine) refreshDenyList() {
	old := e.keepOut.list.Load()
	v := e.resolver.Verdict()
	orders := e.resolver.Orders()
	if old.verdict.Token == v.Token && old.verdict.Partial == v.Partial &&
		len(old.verdict.Down) == len(v.Down) && len(old.verdict.Survivors) == len(v.Survivors) && len(old.orders) == len(orders) {
		return
	}
	d := &denyList{self: e.self.ID, verdict: *v.Clone(), orders: make(map[sbr.ID]struct{}, len(orders))}
	for _, id := range orders {
		d.orders[id] = struct{}{}
	}
	e.keepOut.list.Store(d)
}

// onRefused runs under memberlist's node lock: it only posts.
func (e *engine) onRefused(m *serf.Member) {
	name, uid := m.Name, m.Tags[TagUID]
	e.inbox.Post(func() {
		e.metrics.knocks.add("")
		e.log.Warn("sbr: a downed incarnation wants to come back and is refused", "member", name, "incarnation", uid)
		e.observe(OccurredRefused, name, "%s is refused: its incarnation was downed", name)
	})
}

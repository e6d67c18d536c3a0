package downing

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/serf/serf"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// step feeds the resolver and carries out what it wants. Loop only.
func (e *engine) step(ev sbr.Event) {
	e.stepping = ev
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
			e.spawn(&e.workers, func() { e.readLease(eff.Attempt, e.lease.Read) })
		case sbr.RestoreVerdict:
			if e.isAstray() {
				e.inbox.Post(func() { e.step(sbr.LeaseRead{Attempt: eff.Attempt, Err: astray}) })
				continue
			}
			e.spawn(&e.workers, func() {
				e.readLease(eff.Attempt, func(ctx context.Context) (lease.Record, error) {
					return e.lease.Restore(ctx, eff.Verdict)
				})
			})
		case sbr.AcquireLease:
			if e.isBlind() {
				continue // what it proposes rests on what it no longer sees; it begins anew once it sees again
			}
			if e.isAstray() {
				e.inbox.Post(func() { e.step(sbr.LeaseAnswer{Attempt: eff.Attempt, Outcome: sbr.Unknown, Err: astray}) })
				continue
			}
			e.occur(e.asking(&eff.Verdict))
			e.spawn(&e.workers, func() { e.acquireLease(eff) })
		case sbr.ReleaseLease:
			e.releasing = true
			e.spawn(&e.tells, func() { e.releaseLease(eff) })
		case sbr.RecordLeave:
			e.recordLeave(eff)
		case sbr.TellVerdict:
			e.tell(wire.Telling(e.self.ID, &eff.Verdict), eff.Targets)
		case sbr.TellOrder:
			e.tell(wire.Ordering(e.self.ID, &eff.Order, eff.Targets, e.unlisted), eff.Targets)
		case sbr.AskToRace:
			e.send(wire.Asking(e.self.ID, &eff), e.times())
		case sbr.AskStanding:
			e.askStanding()
		case sbr.Remove:
			e.startRemoving(eff.IDs)
		case sbr.Suspend:
			e.hold(byResolver, eff.Reason)
		case sbr.Resume:
			e.free(byResolver, eff.Reason)
		case sbr.AnswerDownRequest:
			e.answerOperator(eff)
		case sbr.DownSelf:
			e.down(eff.Reason)
		case sbr.Explain:
			if eff.What == sbr.TopicArmed {
				e.warnOfTiming()
			}
			e.occur(e.explained(&eff))
		}
	}
	e.refreshDenyList()
}

// spawn runs f beside the loop. If it panics (a store of the embedder's, say) the member fails safe, as it
// does for the loop.
func (e *engine) spawn(group *sync.WaitGroup, f func()) {
	if e.halted.Load() {
		return // the loop was stuck on its way here
	}
	group.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				e.log.Error("sbr: a worker of the resolver panicked", "panic", fmt.Sprint(p), "stack",
					string(debug.Stack()))
				e.inbox.Post(func() { e.step(sbr.Failed{Reason: fmt.Sprintf("the resolver failed: panic: %v", p)}) })
			}
		}()
		f()
	})
}

// down downs this member: the fact first, then its log and its observers, beside which the application, the
// others and Serf get to know. A log that takes nothing keeps no member up. Loop only.
func (e *engine) down(reason string) {
	e.ended = true
	o, repeated := because(OccurredDown, "down", reason), false
	e.safely(func() { repeated = e.count(&o) })
	e.fall(reason)
	e.safely(func() { e.write(&o, repeated) })
	e.safely(e.publish)
	e.safely(func() { e.emit(o) })
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
	e.rec.down(reason)
	e.mu.Lock()
	e.showDown()
	e.mu.Unlock()
	e.talk.close()
	e.life.Down(reason, func(deadline time.Time) {
		e.rememberEnd()
		// what this member still has to say
		sleep.Within(time.After(time.Until(deadline)/wire.LastWords), e.tells.Wait)
		e.rec.lastTrace(deadline)
		// Once: members that do not receive it find out by the verdict, or suspect this one.
		e.exchange(wire.KindBye, wire.Encode(wire.Message{Kind: wire.KindBye, From: e.self.ID}), nil)
		e.node.goAway(deadline)
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		_ = e.release(ctx)
	})
}

func recordOf(r lease.Record) sbr.Record {
	return sbr.Record{Holder: sbr.ID(r.Holder), Token: r.Token, Verdict: r.Verdict.Clone(), Behind: r.Behind}
}

func (e *engine) readLease(attempt uint64, read func(context.Context) (lease.Record, error)) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	began := time.Now()
	rec, err := read(ctx)
	e.leaseRead(began, err)
	answer := sbr.LeaseRead{Attempt: attempt, Record: recordOf(rec)}
	if err != nil {
		answer = sbr.LeaseRead{Attempt: attempt, Err: oneLine(err)}
	}
	e.inbox.Post(func() { e.step(answer) })
}

func (e *engine) acquireLease(eff sbr.AcquireLease) {
	answer := e.acquire(lease.Proposal{
		Verdict: eff.Verdict.Clone(), Base: eff.Base, BaseBy: string(eff.BaseBy), TakeOver: texts(eff.TakeOver),
	})
	answer.Attempt = eff.Attempt
	e.inbox.Post(func() {
		if o, ok := e.leaseAnswered(&answer); ok {
			e.occur(o)
		}
		e.step(answer)
	})
}

// acquire asks for the lease, within the time that the configuration gives an operation. Err says why it was
// not granted.
func (e *engine) acquire(p lease.Proposal) (answer sbr.LeaseAnswer) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	began := time.Now()
	grant, err := e.lease.Acquire(ctx, p)
	answer = sbr.LeaseAnswer{Outcome: lease.OutcomeOf(err), Err: oneLine(err)}
	if held := (*lease.HeldError)(nil); errors.As(err, &held) {
		answer.Record, grant = recordOf(held.Record), held.Grant
	} else if err == nil {
		answer.Record = recordOf(grant.Record())
	}
	if grant != nil {
		e.awaitLoss(grant)
	}
	e.acquired(began, &answer)
	return answer
}

// awaitLoss follows the loss of the lease, once for each time of holding it. Nothing that was decided changes
// by it, but whatever stands in the store now is news.
func (e *engine) awaitLoss(grant *lease.Grant) {
	if old := e.granted.Swap(grant); old != nil && old.Done() == grant.Done() {
		return
	}
	e.spawn(&e.workers, func() {
		select {
		case <-grant.Done():
		case <-e.ctx.Done():
			return
		}
		reason := grant.Lost()
		if reason == nil {
			return
		}
		e.inbox.Post(func() {
			e.occur(because(OccurredLost, "lost the lease "+e.cfg.leaseName(), oneLine(reason)))
			e.step(sbr.LeaseReleased{Done: true})
		})
	})
}

func (e *engine) releaseLease(eff sbr.ReleaseLease) {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	err := e.lease.Release(ctx)
	e.inbox.Post(func() {
		e.releasing = false
		e.step(sbr.LeaseReleased{Attempt: eff.Attempt, Done: err == nil || errors.Is(err, lease.ErrNotHeld)})
	})
}

// watch follows the lease for as long as the engine runs. Without it a downed member learns of that only when
// it asks or receives the verdict.
func (e *engine) watch() {
	e.watching(true)
	defer e.watching(false)
	_ = e.lease.Watch(e.ctx, func(rec lease.Record) {
		e.rec.set(func(now *readings) { now.answered = time.Now() })
		r := recordOf(rec)
		e.inbox.Post(func() {
			if !e.releasing || r.Holder != "" || r.Verdict == nil || r.Verdict.Token != e.resolver.Verdict().Token {
				e.step(sbr.LeaseObserved{Record: r})
			} // else this member's own release: the answer to it says so
		})
	})
}

// watchInterrupted counts the failures of the watch.
func (e *engine) watchInterrupted(err error) {
	e.watching(err == nil)
	if err != nil {
		e.rec.add(countWatchFailures)
	}
}

func (e *engine) watching(on bool) { e.rec.set(func(now *readings) { now.watching = on }) }

// rest waits, at most until the engine is released.
func (e *engine) rest(d time.Duration) { _ = sleep.For(e.ctx, d) }

// removeLimit is how many members are removed at the same time.
const removeLimit = 16

// startRemoving removes members that are not being removed already. Loop only.
func (e *engine) startRemoving(ids []sbr.ID) {
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
				e.rec.add(countRemovals, outcomeFailed)
				e.log.Warn("sbr: could not remove a downed member, trying again", "member", NameOf(id), "error", err)
			} else if removed {
				o := about(OccurredRemoved, id, " is removed")
				o.labels = []string{outcomeRemoved}
				e.inbox.Post(func() { e.occur(o) })
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
	if old.verdict.Token == v.Token && old.verdict.DecidedBy == v.DecidedBy && old.verdict.Partial == v.Partial &&
		len(old.verdict.Down) == len(v.Down) && len(old.verdict.Survivors) == len(v.Survivors) &&
		len(old.orders) == len(orders) {
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
		e.occur(about(OccurredRefused, incarnation(name, uid), " is refused: its incarnation was downed"))
	})
}

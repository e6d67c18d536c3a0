package downing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/cenkalti/backoff/v5"

	"github.com/serf-sbr/serf-sbr/internal/sleep"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// StateStarting is the state of a member that does not take part yet: Status.StartingBecause says what it
// waits for.
const StateStarting sbr.State = "starting"

// openLease makes the lease of this incarnation, if the strategy needs one, and reads it once: a member that
// does not know the last verdict must not join.
func (e *engine) openLease(ctx context.Context) error {
	if !sbr.NeedsLease(e.strategy) {
		return nil
	}
	if e.cfg.Store == nil {
		store, err := lease.Open(ctx, e.cfg.LeaseImplementation, lease.Spec{
			System: e.cfg.System, Name: e.cfg.leaseName(), Owner: string(e.self.ID), Settings: e.cfg.Lease,
			Logger: e.log, Decode: e.cfg.LeaseDecode,
		})
		if err != nil {
			return fmt.Errorf("%w: lease %s: %w", ErrLease, e.cfg.leaseName(), err)
		}
		e.cfg.Store, e.opened = store, store
	}
	l, err := lease.New(e.cfg.Store, string(e.self.ID), e.cfg.Lease, lease.Options{
		Use: "the resolver of " + e.cfg.System, Logger: e.log, OnWatch: e.watchInterrupted,
	})
	if err != nil {
		return fmt.Errorf("downing: lease %s: %w", e.cfg.leaseName(), err)
	}
	if e.lease != nil {
		e.lease.Close() // of an earlier try, which failed later
	}
	e.lease = l
	e.rec.set(func(now *readings) { now.lease, now.store = l, e.cfg.Store })
	rec, err := e.firstRead(ctx)
	if err != nil {
		l.Close()
		e.lease = nil // Prepare may be called again
		return fmt.Errorf("downing: the lease %s must be readable before this node may join: %w",
			e.cfg.leaseName(), err)
	}
	e.firstIdentity(ctx)
	if !e.adopted { // otherwise it is not younger than the verdicts that its predecessor missed
		e.self.Seen = rec.Token
	}
	if rec.Verdict != nil {
		e.keepOut.list.Store(&denyList{self: e.self.ID, verdict: *rec.Verdict})
	}
	e.inbox.Post(func() {
		e.recordTaken = true
		e.step(sbr.LeaseObserved{Record: recordOf(rec)})
	})
	return nil
}

// leaseStatus says which lease it is, and what its store refuses.
func (e *engine) leaseStatus() LeaseStatus {
	kind := e.cfg.LeaseImplementation
	switch {
	case !sbr.NeedsLease(e.strategy):
		return LeaseStatus{}
	case e.cfg.Store != nil && e.opened == nil:
		kind = "store"
	}
	return LeaseStatus{Kind: kind, Name: e.cfg.leaseName(), Store: e.storeID, Refused: e.refused}
}

// startPause is the longest pause between two tries of a lease that cannot be used yet, unless the store asks
// for more.
const startPause = 10 * time.Second

// firstRead returns the record once the store answers and refuses nothing, however long that takes: missing
// rights, credentials and stores come back, or an operator restores them. It logs what it waits for whenever
// that changes.
func (e *engine) firstRead(ctx context.Context) (lease.Record, error) {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = e.cfg.Resolver.LeaseRetry, startPause
	for {
		rec, flaw, err := e.tryLease(ctx)
		if err == nil {
			e.refused = ""
			if flaw != nil {
				// To join a member must know the last verdict. A missing answer proves nothing about rights.
				e.log.Error("sbr: the lease can be read, so the start goes on; but the store does not work "+
					"as it must, and without a write this member wins no partition", "lease", e.cfg.leaseName(), "problems", oneLine(flaw))
			} else if e.held.is(byStart) {
				e.log.Info("sbr: the lease can be used, the start goes on", "lease", e.cfg.leaseName())
			}
			return rec, nil
		}
		if ctx.Err() == nil {
			e.startWaits(err)
		}
		if sleep.For(ctx, max(pause.NextBackOff(), lease.Postponed(err))) != nil || ctx.Err() != nil {
			return lease.Record{}, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// tryLease reads the lease, unless the store refuses what this member will need of it. flaw is what else was
// tried in vain.
func (e *engine) tryLease(ctx context.Context) (rec lease.Record, flaw, err error) {
	bounded, cancel := context.WithTimeout(ctx, 2*e.cfg.Lease.OperationTimeout) // it makes several requests
	flaw = lease.Preflight(bounded, e.cfg.Store)
	cancel()
	if errors.Is(flaw, lease.ErrRefused) {
		return rec, nil, flaw
	}
	began := time.Now()
	rec, readErr := e.lease.Read(ctx)
	if v := e.cfg.Memory.load().Verdict; readErr == nil && rec.Token < v.Token && v.Token < lease.MaxToken {
		// All members that knew it may be starting now, and this is the record that it grows from: two
		// verdicts would have one token.
		e.log.Warn("sbr: the store holds less than a verdict that this host remembers: it is written back",
			"lease", e.cfg.leaseName(), "token", rec.Token, "verdict", v.Token)
		rec, readErr = e.lease.Restore(ctx, v)
	}
	e.leaseRead(began, readErr)
	return rec, flaw, readErr
}

// startWaits shows what the start waits for, and logs it unless it said so before.
func (e *engine) startWaits(err error) {
	text := fmt.Sprintf("the lease %s cannot be used: %s", e.cfg.leaseName(), oneLine(err))
	if errors.Is(err, lease.ErrRefused) {
		e.refused = oneLine(err)
	}
	st := e.firstStatus(StateStarting)
	st.StartingBecause = text
	e.show(st)
	words := strings.Map(func(r rune) rune { // ports and times differ from try to try
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
	if e.isNews("the start", words) {
		o := because(OccurredWaiting, "waits and does not join: the lease "+e.cfg.leaseName()+" cannot be used",
			oneLine(err))
		e.occur(o.with(slog.String("for", waitingLease), slog.String("lease", e.cfg.leaseName())))
	}
	e.rec.set(func(now *readings) { now.awaits = true })
	if !e.held.any() { // nothing runs yet that could be in the way
		e.held.begin(byStart, text)
		e.life.Suspend(text)
		e.rec.add(countSuspensions, string(byStart))
		e.rec.set(func(now *readings) { now.suspended.set(true) })
	}
}

const (
	// rightsEvery is how often, on average, a member asks its store for its rights and for its identity.
	rightsEvery = 5 * time.Minute
	// identityEvery is how often it asks for the identity while the members name several.
	identityEvery = 30 * time.Second
)

// watchStore asks now and then whether the store would take the next verdict, so that rights that are gone
// are noticed before they are needed, and which store it is: an address can lead to another one than before,
// and a right can be given later.
func (e *engine) watchStore() {
	for last := time.Now(); e.ctx.Err() == nil; {
		e.rest(identityEvery*3/4 + rand.N(identityEvery/2)) // not all members at once
		st, due := e.Status(), time.Since(last) >= rightsEvery
		if !due && len(st.OtherStore) == 0 {
			continue
		}
		if id, err := e.identifyStore(e.ctx); err == nil {
			e.inbox.Post(func() { e.storeIs(id) })
		}
		if due {
			last = time.Now()
			e.tryRights(st.State)
		}
	}
}

func (e *engine) tryRights(state sbr.State) {
	store, ok := e.cfg.Store.(lease.DryRunner)
	if !ok || state != sbr.StateUp {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	err := store.DryRun(ctx)
	e.inbox.Post(func() { e.judgeRights(err) })
}

// judgeRights handles the outcome of a dry run. A missing answer proves nothing about rights. Loop only.
func (e *engine) judgeRights(err error) {
	switch {
	case errors.Is(err, lease.ErrRefused):
		if e.refused == "" {
			e.log.Error("sbr: the lease store refuses this member: in a partition it cannot win, and without the others' rights nobody can",
				"lease", e.cfg.leaseName(), "error", oneLine(err))
		}
		e.refused = oneLine(err)
	case err == nil && e.refused != "":
		e.log.Info("sbr: the lease store takes this member's requests again", "lease", e.cfg.leaseName())
		e.refused = ""
	}
}

// announceWithin is how long an announcement may take before it is lost. A member that stops, or is down,
// waits for its last one.
const announceWithin = 2 * time.Second

// announceAtStore shows, where people look at the lease, what they ask about first: suspended members,
// decisions, downed members. The announcements are few, and nothing but the very end waits for them. Loop
// only.
func (e *engine) announceAtStore(o *Occurrence) {
	store, ok := e.cfg.Store.(lease.Announcer)
	reason, text := "", o.Member+": "+o.Text
	switch {
	case !ok:
		return
	case o.Kind == OccurredSuspended &&
		e.isNews("announced", o.Incident): // once for each incident: links can flap
		reason = "Suspended"
	case o.Kind == OccurredVerdict && o.Verdict.DecidedBy == e.self.ID: // all others learn the same
		reason, text = "Verdict", text+" (down: "+someOf(o.Verdict.Down)+")"
	case o.Kind == OccurredDown:
		reason = "Downed"
	default:
		return
	}
	e.spawn(&e.notices, func() {
		ctx, cancel := context.WithTimeout(e.ctx, announceWithin)
		defer cancel()
		err := store.Announce(ctx, reason, text, reason != "Verdict")
		if err != nil {
			e.rec.add(countUnshown)
		}
		if errors.Is(err, lease.ErrRefused) {
			e.inbox.Post(func() {
				if e.isNews("unshown", oneLine(err)) {
					e.log.Warn("sbr: suspensions and verdicts are not shown beside the lease", "error", oneLine(err))
				}
			})
		}
	})
}

// Two sides that ask for the lease in two stores would both get it. So the identity of each member's store
// travels in a tag. A member whose store is not the cluster's is suspended and writes nothing, whatever
// happens: in a cut it goes by what the others of its side get, or down. What is not known is not compared:
// members of an older version, and stores that cannot tell.

// identifyStore asks the store which one it is. Empty: it cannot tell, or not now.
func (e *engine) identifyStore(ctx context.Context) (string, error) {
	store, ok := e.cfg.Store.(lease.Identified)
	if !ok {
		return "", errNoIdentity
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Lease.OperationTimeout)
	defer cancel()
	id, err := store.Identity(ctx)
	if err != nil {
		return "", err
	}
	return shortHash(id), nil
}

var errNoIdentity = fmt.Errorf("stores of this kind do not tell: %w", errors.ErrUnsupported)

// firstIdentity asks before this member shows itself to others. Not to know is no reason to wait. The loop
// does not run yet.
func (e *engine) firstIdentity(ctx context.Context) {
	id, err := e.identifyStore(ctx)
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, errors.ErrUnsupported) {
			level = slog.LevelInfo // nobody can mend it
		}
		e.log.Log(ctx, level, "sbr: it is not known which store keeps the lease: a member with another one is "+
			"not noticed, and both sides of a partition may stay up; sbr lease doctor says what is missing",
			"lease", e.cfg.leaseName(), "reason", oneLine(err))
	}
	e.storeID = id
}

// storeIs notes which store this member uses. Loop only.
func (e *engine) storeIs(id string) {
	if id == e.storeID {
		return
	}
	if e.storeID != "" {
		e.log.Error("sbr: the lease is in another store than before", "lease", e.cfg.leaseName(), "was",
			e.storeID, "now", id)
	}
	e.storeID, e.tags[TagStore] = id, id
	e.setTags()
}

// compareStores suspends this member while its store is not the cluster's. It returns the members that use
// another one than the cluster. Loop only.
func (e *engine) compareStores(s *sbr.Snapshot) (others []string) {
	if e.lease == nil {
		return nil
	}
	cluster := clusterStore(s.Members, e.storeOf)
	var with []string
	for i := range s.Members {
		m := &s.Members[i]
		switch id := e.storeOf(m.ID); {
		case id == "" || !m.Downable():
		case id == cluster:
			with = append(with, m.Name)
		default:
			others = append(others, m.Name)
		}
	}
	e.nameStores(others, cluster)
	if e.storeID == "" || cluster == "" || e.storeID == cluster {
		e.free(byStore, "the lease of this member is in the store of the cluster")
		return others
	}
	e.hold(byStore, fmt.Sprintf("this member keeps the lease in another store (%s) than the cluster (%s: %s): give it the lease section of "+
		"their configuration", e.storeID, cluster, strings.Join(firstNames(with), ", ")))
	return others
}

// nameStores says whose store is not the cluster's, once for each change. Loop only.
func (e *engine) nameStores(others []string, cluster string) {
	if !e.isNews("stores", strings.Join(others, ",")) {
		return
	}
	if len(others) == 0 {
		e.log.Info("sbr: the members keep the lease in one store", "store", cluster)
		return
	}
	e.log.Error("sbr: members keep the lease in another store than the cluster: they are suspended, and write nothing",
		"members", others, "cluster-store", cluster, "our-store", e.storeID)
}

// storeOf is which store a member names, this one included; empty if it names none.
func (e *engine) storeOf(id sbr.ID) string {
	if id == e.self.ID {
		return e.storeID
	}
	tags, _ := e.members.tags(id)
	return tags[TagStore]
}

// clusterStore is the store that the most members name; of several that of the oldest member among them.
// Empty: no member names any. Every member comes to the same answer, because it counts also those that it
// cannot reach and that are not decided about: a cut does not change it, a verdict may. The many are right
// because one member alone is the common mistake, and must not stop the others; the oldest, because a
// newcomer must not stop the member that it joined.
func clusterStore(members []sbr.Member, storeOf func(sbr.ID) string) string {
	votes, oldest := make(map[string]int), make(map[string]*sbr.Member)
	best := ""
	for i := range members {
		m := &members[i]
		store := storeOf(m.ID)
		if store == "" || !m.Downable() {
			continue
		}
		votes[store]++
		if oldest[store] == nil || sbr.Older(m, oldest[store]) {
			oldest[store] = m
		}
	}
	for store, n := range votes {
		if best == "" || n > votes[best] || n == votes[best] && sbr.Older(oldest[store], oldest[best]) {
			best = store
		}
	}
	return best
}

// isAstray reports whether this member's store is not the cluster's. Loop only.
func (e *engine) isAstray() bool { return e.held.is(byStore) }

// astray is why a member writes nothing.
const astray = "the lease of this member is in another store than the cluster's, so it writes nothing there"

// firstNames are the first few of a list.
func firstNames(names []string) []string {
	const most = 5
	if rest := len(names) - most; rest > 0 {
		return append(slices.Clone(names[:most]), fmt.Sprintf("%d more", rest))
	}
	return names
}

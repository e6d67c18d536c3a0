package downing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// readings are what the gauges show. They are guarded by metrics.mu.
type readings struct {
	members, unreachable, untagged, disagreeing, elsewhere, reports int64

	state              sbr.State
	armed, responsible bool
	watching, refused  bool
	token              uint64

	suspended, blind stretch
	active           bool
	awaitsLease      bool // at the start
	awaitsCluster    bool
	paused           time.Duration
	answered         time.Time // when the lease store answered last
	queue            func() int
}

// stretch adds up the times in which something was the case.
type stretch struct {
	since time.Time // zero: it is not
	total time.Duration
}

func (s *stretch) set(on bool, now time.Time) {
	switch {
	case on && s.since.IsZero():
		s.since = now
	case !on && !s.since.IsZero():
		s.total += now.Sub(s.since)
		s.since = time.Time{}
	}
}

func (s *stretch) age(now time.Time) time.Duration {
	if s.since.IsZero() {
		return 0
	}
	return now.Sub(s.since)
}

var states = []sbr.State{StateStarting, sbr.StateArming, sbr.StateUp, sbr.StateSuspended, sbr.StateWaiting, sbr.StateDown}

// gauges are the instruments that are read when somebody collects.
type gauges struct {
	members, unreachable, untagged, disagreeing, reports metric.Int64Observable
	elsewhere                                            metric.Int64Observable
	state, armed, responsible, blind, active, queue      metric.Int64Observable
	token, held, watching, waiting, refused              metric.Int64Observable
	suspendedAge, answerAge                              metric.Float64Observable
	suspendedTime, blindTime, pauseTime                  metric.Float64Observable

	in                          map[sbr.State]metric.ObserveOption
	forTheLease, forTheNewcomer metric.ObserveOption
}

func (b *instruments) gauges() gauges {
	g := gauges{
		members:       b.level("sbr.members", "{member}", "Members that this one knows and that were not downed, this one included."),
		unreachable:   b.level("sbr.unreachable", "{member}", "Of these, the unreachable ones."),
		untagged:      b.level("sbr.untagged", "{member}", "Members that run no resolver."),
		disagreeing:   b.level("sbr.disagreeing", "{member}", "Members whose configuration has another digest than this one's."),
		elsewhere:     b.level("sbr.lease.elsewhere", "{member}", "Members that keep the lease in another store than the cluster: they are suspended."),
		reports:       b.level("sbr.reports", "{report}", "Pairs of members of which the first cannot reach the second, as this member knows."),
		state:         b.level("sbr.state", "", "1 for the state that this member is in, 0 for the others."),
		armed:         b.level("sbr.armed", "", "1 once this member decides about partitions."),
		responsible:   b.level("sbr.responsible", "", "1 if this member would act on a decision of its side now."),
		blind:         b.level("sbr.agent.blind", "", "1 while the Serf agent beside this member does not answer."),
		active:        b.level("sbr.partition.active", "", "1 from the first sign of a partition until it is over."),
		queue:         b.level("sbr.loop.queue", "{task}", "Tasks that wait for the resolver's loop."),
		token:         b.level("sbr.verdict.token", "", "Fencing token of the newest verdict that this member knows, 0 for none."),
		held:          b.level("sbr.lease.held", "", "1 while this member certainly holds the lease."),
		watching:      b.level("sbr.lease.watch.running", "", "1 while the lease is being watched, 0 while that is interrupted."),
		waiting:       b.level("sbr.waiting", "", "1 while this member waits at its start, by what it waits for."),
		refused:       b.level("sbr.lease.refused", "", "1 while the lease store refuses what this member needs: rights or credentials."),
		suspendedAge:  b.age("sbr.suspended.age", "For how long this member has been suspended, 0 if it is not."),
		answerAge:     b.age("sbr.lease.answer.age", "How long ago the lease store last answered this member, as far as it knows."),
		suspendedTime: b.time("sbr.suspended.time", "Time that this member has spent suspended."),
		blindTime:     b.time("sbr.agent.blind.time", "Time for which the Serf agent beside this member did not answer."),
		pauseTime:     b.time("sbr.pause.time", "Time for which this process stood still."),

		in:             make(map[sbr.State]metric.ObserveOption, len(states)),
		forTheLease:    metric.WithAttributeSet(attribute.NewSet(attribute.String("for", waitingLease))),
		forTheNewcomer: metric.WithAttributeSet(attribute.NewSet(attribute.String("for", waitingNewcomer))),
	}
	for _, s := range states {
		g.in[s] = metric.WithAttributeSet(attribute.NewSet(attribute.String("state", string(s))))
	}
	return g
}

// answerer is a store that knows when it had its last answer, also to what it asked by itself.
type answerer interface{ LastAnswer() time.Time }

// follow shows a lease from now on.
func (m *metrics) follow(l *lease.Lease, s lease.Store) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lease = l
	m.store, _ = s.(answerer)
}

// set changes readings.
func (m *metrics) set(f func(*readings)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.now)
}

func (m *metrics) answered() { m.set(func(r *readings) { r.answered = time.Now() }) }

func (m *metrics) watching(on bool) { m.set(func(r *readings) { r.watching = on }) }

func (m *metrics) refused(on bool) { m.set(func(r *readings) { r.refused = on }) }

func (m *metrics) arm() { m.set(func(r *readings) { r.armed = true }) }

func (m *metrics) blind(on bool) { m.set(func(r *readings) { r.blind.set(on, time.Now()) }) }

func (m *metrics) resumed() { m.set(func(r *readings) { r.suspended.set(false, time.Now()) }) }

func (m *metrics) suspended(by holder) {
	m.suspensions.add(holderNames[by])
	m.set(func(r *readings) { r.suspended.set(true, time.Now()) })
}

func (m *metrics) paused(gap time.Duration) {
	m.pauses.add("")
	m.set(func(r *readings) { r.paused += gap })
}

func (m *metrics) downed() {
	m.downs.add("")
	m.set(func(r *readings) {
		r.state, r.responsible = sbr.StateDown, false
		r.suspended.set(false, time.Now())
		r.blind.set(false, time.Now())
	})
}

// publish takes in what the loop sees. It is called on every turn.
func (m *metrics) publish(s *sbr.Snapshot, st *Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &m.now
	r.members, r.unreachable = 0, 0
	for i := range s.Members {
		if x := &s.Members[i]; x.Downable() {
			r.members++
			r.unreachable += flag(x.Unreachable)
		}
	}
	r.untagged, r.disagreeing, r.reports = int64(len(st.Untagged)), int64(len(st.Disagree)), int64(len(st.Reports))
	r.elsewhere = int64(len(st.OtherStore))
	r.token = s.Verdict.Token
	r.awaitsCluster = st.Newcomer && st.SuspendedSince != nil
	if r.state != sbr.StateDown { // nothing comes after that
		r.state, r.responsible = st.State, s.Responsible
	}
}

// read shows the readings of this moment.
func (m *metrics) read(_ context.Context, o metric.Observer) error {
	m.mu.Lock()
	r, l, store := m.now, m.lease, m.store
	m.mu.Unlock()
	now, g := time.Now(), &m.gauges
	for _, x := range []struct {
		gauge metric.Int64Observable
		value int64
	}{
		{g.members, r.members}, {g.unreachable, r.unreachable}, {g.untagged, r.untagged}, {g.disagreeing, r.disagreeing}, {g.reports, r.reports}, {g.elsewhere, r.elsewhere},
		{g.armed, flag(r.armed)}, {g.responsible, flag(r.responsible)}, {g.blind, flag(!r.blind.since.IsZero())}, {g.active, flag(r.active)},
		{g.token, int64(r.token)}, {g.held, flag(l != nil && l.Check())}, {g.watching, flag(r.watching)},
		{g.refused, flag(r.refused)},
	} {
		o.ObserveInt64(x.gauge, x.value)
	}
	for _, s := range states {
		o.ObserveInt64(g.state, flag(s == r.state), g.in[s])
	}
	o.ObserveInt64(g.waiting, flag(r.awaitsLease), g.forTheLease)
	o.ObserveInt64(g.waiting, flag(r.awaitsCluster), g.forTheNewcomer)
	if r.queue != nil {
		o.ObserveInt64(g.queue, int64(r.queue()))
	}
	if store != nil {
		if at := store.LastAnswer(); at.After(r.answered) {
			r.answered = at
		}
	}
	if !r.answered.IsZero() {
		o.ObserveFloat64(g.answerAge, now.Sub(r.answered).Seconds())
	}
	o.ObserveFloat64(g.suspendedAge, r.suspended.age(now).Seconds())
	o.ObserveFloat64(g.suspendedTime, (r.suspended.total + r.suspended.age(now)).Seconds())
	o.ObserveFloat64(g.blindTime, (r.blind.total + r.blind.age(now)).Seconds())
	o.ObserveFloat64(g.pauseTime, r.paused.Seconds())
	return nil
}

func flag(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

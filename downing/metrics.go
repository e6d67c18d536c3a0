package downing

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// scope names this package to OpenTelemetry.
const scope = "github.com/serf-sbr/serf-sbr/downing"

// series are the label values that an instrument can have, joined by "/", each with its attributes. They are
// few and all known beforehand: never a name, never a reason. Without labels there is one, "".
type series map[string]metric.MeasurementOption

// instrument is one metric. Counters and histograms are variables of the code that measures; gauges are read
// at a collection.
type instrument struct {
	name, unit, help string
	series           series
	bounds           []float64 // of a histogram, in seconds
	// read is a gauge's value for a label; below zero there is nothing to show. total: it adds up.
	read  func(r *readings, value string) float64
	total bool
}

var counters, histograms []*instrument

func counter(name, unit, help string, s series) *instrument {
	i := &instrument{name: name, unit: unit, help: help, series: s}
	counters = append(counters, i)
	return i
}

func histogram(name, help string, bounds []float64, s series) *instrument {
	i := &instrument{name: name, unit: "s", help: help, series: s, bounds: bounds}
	histograms = append(histograms, i)
	return i
}

// plain is for an instrument without labels.
var plain = series{"": metric.WithAttributes()}

func by(label string, values ...string) series {
	s := make(series, len(values))
	for _, v := range values {
		s[v] = metric.WithAttributes(attribute.String(label, v))
	}
	return s
}

// The values of labels.
const (
	outcomeOK         = "ok"
	outcomeError      = "error"
	outcomeAnswered   = "answered"
	outcomeUnanswered = "unanswered"
	outcomeGone       = "gone"
	outcomeRemoved    = "removed"
	outcomeFailed     = "failed"

	// What a member waits for at its start.
	waitingLease    = "lease"    // that it can be read
	waitingNewcomer = "newcomer" // the cluster that the last verdict left

	callbackSuspend = "suspend"
	callbackResume  = "resume"
	callbackDown    = "down"

	// Why a message was ignored.
	ignoredInvalid    = "invalid"    // it cannot be read
	ignoredForged     = "forged"     // it cannot be what it says it is
	ignoredUnverified = "unverified" // the lease does not hold the verdict of the message
	ignoredOverload   = "overload"   // too much was waiting already
	ignoredResolver   = "resolver"   // it does not fit what the resolver sees

	noKind = "none" // what cannot be read has no kind
)

var (
	messageKinds = texts([]wire.Kind{
		wire.KindReport, wire.KindVerdict, wire.KindOrder, wire.KindAsk,
		wire.KindStanding, wire.KindClear, wire.KindDone,
	})
	talkKinds       = []string{wire.Question.String(), wire.Answer.String(), wire.Unserved.String()}
	callbackKinds   = []string{callbackSuspend, callbackResume, callbackDown}
	attemptOutcomes = []string{sbr.Granted.String(), sbr.Held.String(), sbr.Unknown.String()}
	agentFaults     = []string{"auth", "closed", "refused", "timeout", "other"}
)

func decisionKinds() (names []string) {
	for k := sbr.None + 1; k <= sbr.AcquireLeaseAndDownIndirectlyConnected; k++ {
		names = append(names, k.String())
	}
	return names
}

func ignoredMessages() series {
	s := make(series)
	for reason, kinds := range map[string][]string{
		ignoredInvalid: {noKind}, ignoredForged: messageKinds, ignoredOverload: messageKinds,
		ignoredUnverified: {string(wire.KindVerdict)},
		ignoredResolver:   {string(wire.KindVerdict), string(wire.KindOrder)},
	} {
		for _, kind := range kinds {
			s[kind+"/"+reason] = metric.WithAttributes(
				attribute.String("message", kind), attribute.String("reason", reason))
		}
	}
	return s
}

var (
	countDecisions = counter("sbr.decisions", "{decision}",
		"Decisions of this member.", by("decision", decisionKinds()...))
	countDowns = counter("sbr.downs", "{down}",
		"How often this member was downed: 0 or 1.", plain)
	countSuspensions = counter("sbr.suspensions", "{suspension}",
		"Suspensions, by what began them.", by("cause", texts(holders)...))
	countAgentFailures = counter("sbr.agent.failures", "{failure}",
		"How often the Serf agent beside this member ceased to answer, by what was seen of it.", by("reason", agentFaults...))
	countPauses = counter("sbr.pauses", "{pause}",
		"Pauses of the process longer than PauseAfter (2 s).", plain)
	countLeaseReads = counter("sbr.lease.reads", "{read}",
		"Reads of the lease by the resolver, by outcome.", by("outcome", outcomeOK, outcomeError))
	countAttempts = counter("sbr.lease.attempts", "{attempt}",
		"Attempts to acquire the lease, by outcome.", by("outcome", attemptOutcomes...))
	countLeaseLosses = counter("sbr.lease.losses", "{loss}",
		"How often the lease was lost while this member held it.", plain)
	countWatchFailures = counter("sbr.lease.watch.failures", "{failure}",
		"Interruptions of the watch of the lease.", plain)
	countUnshown = counter("sbr.lease.unshown", "{event}",
		"What was to be shown beside the lease (Events in Kubernetes), and could not.", plain)
	countBackwards = counter("sbr.lease.backwards", "{time}",
		"How often the lease held less than this member knew: it was deleted, emptied or restored.", plain)
	countConflicts = counter("sbr.lease.conflicts", "{conflict}",
		"How often two verdicts had one token: the store lost one of them, and the chain is broken.", plain)
	countSent = counter("sbr.messages.sent", "{message}",
		"Messages and answers sent to other members, by kind.", by("message", messageKinds...))
	countHeard = counter("sbr.messages.received", "{message}",
		"Valid messages and answers of other members, by kind.", by("message", messageKinds...))
	countIgnored = counter("sbr.messages.ignored", "{message}",
		"Messages that changed nothing, by kind and reason.", ignoredMessages())
	countProbes = counter("sbr.probes", "{probe}",
		"Probes of neighbours, by outcome.", by("outcome", outcomeAnswered, outcomeUnanswered))
	countRejoins = counter("sbr.rejoins.refused", "{rejoin}",
		"Rejoin attempts of downed incarnations that were refused.", plain)
	countTold = counter("sbr.told", "{member}", "Members that were told a verdict or an order, by outcome.",
		by("outcome", outcomeAnswered, outcomeGone, outcomeUnanswered))
	countRemovals = counter("sbr.removals", "{removal}",
		"Removals of downed members from Serf's list by this member, by outcome.",
		by("outcome", outcomeRemoved, outcomeFailed))
	countPartitions = counter("sbr.partitions", "{partition}",
		"Partition episodes that began, by their first sign. Flapping is one episode.", by("cause", causes...))
	countPanics = counter("sbr.callback.panics", "{panic}",
		"Callbacks that panicked.", by("callback", callbackKinds...))
	countTalkSent = counter("sbr.talk.sent", "{message}",
		"Questions and answers sent for what runs on top, by kind.", by("kind", talkKinds...))
	countTalkHeard = counter("sbr.talk.received", "{message}",
		"Questions and answers of other members taken in for what runs on top, by kind.", by("kind", talkKinds...))
	countTalkIgnored = counter("sbr.talk.ignored", "{message}",
		"Questions and answers for what runs on top that changed nothing, by reason.",
		by("reason", ignoredInvalid, ignoredForged, ignoredOverload))
)

var (
	forPartitions = []float64{1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 300, 900, 3600}

	timeAcquire = histogram("sbr.lease.acquire.duration",
		"Time that attempts to acquire the lease took, by outcome.",
		[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, by("outcome", attemptOutcomes...))
	timeProbe = histogram("sbr.probe.duration", "Time until a neighbour's answer to a probe.",
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}, plain)
	timePartition = histogram("sbr.partition.duration",
		"From the first sign of a partition until it was over for this member, by outcome.",
		forPartitions, by("outcome", outcomeResolved, outcomeHealed, outcomeDown, outcomeStopped))
	timeDeciding = histogram("sbr.partition.decision.duration",
		"From the first sign of a partition to the verdict or the order that settled it.", forPartitions, plain)
	timeRemoving = histogram("sbr.partition.removal.duration",
		"From the verdict or the order until the last downed member is gone from this member's list.",
		forPartitions, plain)
	timeCallback = histogram("sbr.callback.duration", "Time that callbacks took.",
		[]float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60}, by("callback", callbackKinds...))
)

// readings are what the gauges show: what is the case at one moment.
type readings struct {
	at     time.Time
	status Status
	queue  int

	members, unreachable          int
	armed, watching, awaits, open bool // awaits: the lease, at the start; open: an episode is under way
	suspended, blind              stretch
	paused                        time.Duration
	answered                      time.Time // when the lease store answered last
	lease                         *lease.Lease
	store                         lease.Store
}

// stretch adds up the times in which something was the case.
type stretch struct {
	since time.Time // zero: it is not
	total time.Duration
}

func (s *stretch) set(on bool) {
	switch {
	case on && s.since.IsZero():
		s.since = time.Now()
	case !on && !s.since.IsZero():
		s.total += time.Since(s.since)
		s.since = time.Time{}
	}
}

// end is what a member that is down shows.
func (r *readings) end() {
	r.suspended.set(false)
	r.blind.set(false)
}

func (s *stretch) age(now time.Time) time.Duration {
	if s.since.IsZero() {
		return 0
	}
	return now.Sub(s.since)
}

func level(name, unit, help string, read func(*readings) int) *instrument {
	return &instrument{
		name: name, unit: unit, help: help, series: plain,
		read: func(r *readings, _ string) float64 { return float64(read(r)) },
	}
}

func flag(name, help string, read func(*readings) bool) *instrument {
	return flags(name, help, plain, func(r *readings, _ string) bool { return read(r) })
}

func flags(name, help string, s series, read func(r *readings, value string) bool) *instrument {
	return &instrument{name: name, help: help, series: s, read: func(r *readings, value string) float64 {
		if read(r, value) {
			return 1
		}
		return 0
	}}
}

func age(name, help string, read func(*readings) time.Duration) *instrument {
	return &instrument{
		name: name, unit: "s", help: help, series: plain,
		read: func(r *readings, _ string) float64 { return read(r).Seconds() },
	}
}

func total(name, help string, read func(*readings) time.Duration) *instrument {
	i := age(name, help, read)
	i.total = true
	return i
}

var gauges = []*instrument{
	level("sbr.members", "{member}", "Members that this one knows and that were not downed, this one included.",
		func(r *readings) int { return r.members }),
	level("sbr.unreachable", "{member}", "Of these, the unreachable ones.",
		func(r *readings) int { return r.unreachable }),
	level("sbr.untagged", "{member}", "Members that run no resolver.",
		func(r *readings) int { return len(r.status.Untagged) }),
	level("sbr.disagreeing", "{member}", "Members whose configuration has another digest than this one's.",
		func(r *readings) int { return len(r.status.Disagree) }),
	level("sbr.lease.elsewhere", "{member}",
		"Members that keep the lease in another store than the cluster: they are suspended. "+
			"Absent while this member does not know which store it uses.",
		func(r *readings) int {
			if n := len(r.status.OtherStore); n > 0 || r.lease == nil || r.status.Lease.Store != "" {
				return n
			}
			return -1
		}),
	level("sbr.reports", "{report}",
		"Pairs of members of which the first cannot reach the second, as this member knows.",
		func(r *readings) int { return len(r.status.Reports) }),
	flags("sbr.state", "1 for the state that this member is in, 0 for the others.",
		by("state", texts([]sbr.State{
			StateStarting, sbr.StateArming, sbr.StateUp, sbr.StateSuspended, sbr.StateWaiting, sbr.StateDown,
		})...),
		func(r *readings, s string) bool { return sbr.State(s) == cmp.Or(r.status.State, StateStarting) }),
	flag("sbr.armed", "1 once this member decides about partitions.",
		func(r *readings) bool { return r.armed }),
	flag("sbr.responsible", "1 if this member would act on a decision of its side now.",
		func(r *readings) bool { return r.status.Responsible && r.status.State != sbr.StateDown }),
	flag("sbr.agent.unreachable", "1 while the Serf agent beside this member does not answer.",
		func(r *readings) bool { return !r.blind.since.IsZero() }),
	flag("sbr.partition.active", "1 from the first sign of a partition until it is over.",
		func(r *readings) bool { return r.open }),
	level("sbr.loop.queue", "{task}", "Tasks that wait for the resolver's loop.",
		func(r *readings) int { return r.queue }),
	level("sbr.verdict.token", "", "Fencing token of the newest verdict that this member knows, 0 for none.",
		func(r *readings) int { return int(r.status.Verdict.Token) }),
	flag("sbr.lease.held", "1 while this member certainly holds the lease.",
		func(r *readings) bool { return r.lease != nil && r.lease.Check() }),
	flag("sbr.lease.watch.running", "1 while the lease is being watched, 0 while that is interrupted.",
		func(r *readings) bool { return r.watching }),
	flags("sbr.waiting", "1 while this member waits at its start, by what it waits for.",
		by("for", waitingLease, waitingNewcomer),
		func(r *readings, what string) bool {
			if what == waitingLease {
				return r.awaits
			}
			return r.status.Newcomer && r.status.SuspendedSince != nil
		}),
	flag("sbr.lease.refused", "1 while the lease store refuses what this member needs: rights or credentials.",
		func(r *readings) bool { return r.status.Lease.Refused != "" }),
	age("sbr.suspended.age", "For how long this member has been suspended, 0 if it is not.",
		func(r *readings) time.Duration { return r.suspended.age(r.at) }),
	age("sbr.lease.answer.age", "How long ago the lease store last answered this member, as far as it knows.",
		(*readings).sinceAnswer),
	total("sbr.suspended.time", "Time that this member has spent suspended.",
		func(r *readings) time.Duration { return r.suspended.total + r.suspended.age(r.at) }),
	total("sbr.agent.unreachable.time", "Time for which the Serf agent beside this member did not answer.",
		func(r *readings) time.Duration { return r.blind.total + r.blind.age(r.at) }),
	total("sbr.pause.time", "Time for which the process was paused.",
		func(r *readings) time.Duration { return r.paused }),
}

// sinceAnswer asks a store that knows when it had its last answer, also to what it asked by itself. Below
// zero: it had none.
func (r *readings) sinceAnswer() time.Duration {
	last := r.answered
	if s, ok := r.store.(interface{ LastAnswer() time.Time }); ok && s.LastAnswer().After(last) {
		last = s.LastAnswer()
	}
	if last.IsZero() {
		return -1
	}
	return r.at.Sub(last)
}

// metrics are the instruments of one engine. They are safe for concurrent use.
type metrics struct {
	counters   map[*instrument]metric.Int64Counter
	histograms map[*instrument]metric.Float64Histogram
	gauges     metric.Registration
}

var background = context.Background()

// newMetrics makes the instruments. Every counter is there with zero from the start: a rate includes the
// first event, too.
func newMetrics(p metric.MeterProvider, read func() readings) (*metrics, error) {
	meter := cmp.Or(p, otel.GetMeterProvider()).Meter(scope, metric.WithInstrumentationVersion(Version()))
	m := &metrics{
		counters:   make(map[*instrument]metric.Int64Counter, len(counters)),
		histograms: make(map[*instrument]metric.Float64Histogram, len(histograms)),
	}
	var errs []error
	for _, i := range counters {
		c, err := meter.Int64Counter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help))
		for _, with := range i.series {
			c.Add(background, 0, with)
		}
		m.counters[i], errs = c, append(errs, err)
	}
	for _, i := range histograms {
		h, err := meter.Float64Histogram(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.help),
			metric.WithExplicitBucketBoundaries(i.bounds...))
		m.histograms[i], errs = h, append(errs, err)
	}
	shown := make([]metric.Observable, len(gauges))
	for n, g := range gauges {
		var err error
		shown[n], err = g.on(meter)
		errs = append(errs, err)
	}
	var err error
	m.gauges, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		r := read()
		for n, g := range gauges {
			g.observe(o, shown[n], &r)
		}
		return nil
	}, shown...)
	return m, errors.Join(append(errs, err)...)
}

// on makes a gauge: of what is counted by integers, of seconds by floats.
func (i *instrument) on(meter metric.Meter) (metric.Observable, error) {
	unit, help := metric.WithUnit(i.unit), metric.WithDescription(i.help)
	switch {
	case i.total:
		return meter.Float64ObservableCounter(i.name, unit, help)
	case i.unit == "s":
		return meter.Float64ObservableGauge(i.name, unit, help)
	default:
		return meter.Int64ObservableGauge(i.name, unit, help)
	}
}

func (i *instrument) observe(o metric.Observer, as metric.Observable, r *readings) {
	for value, with := range i.series {
		v := i.read(r, value)
		if v < 0 {
			continue
		}
		switch as := as.(type) {
		case metric.Int64Observable:
			o.ObserveInt64(as, int64(v), with)
		case metric.Float64Observable:
			o.ObserveFloat64(as, v, with)
		}
	}
}

// add counts one event of the series with these labels. Unknown labels make no new series.
func (m *metrics) add(i *instrument, labels ...string) { m.addN(i, 1, labels...) }

func (m *metrics) addN(i *instrument, n int, labels ...string) {
	if with, known := i.series[strings.Join(labels, "/")]; known && n > 0 {
		m.counters[i].Add(background, int64(n), with)
	}
}

func (m *metrics) took(i *instrument, d time.Duration, labels ...string) {
	if with, known := i.series[strings.Join(labels, "/")]; known {
		m.histograms[i].Record(background, d.Seconds(), with)
	}
}

package downing

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/downing/talk"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// scope names this package to OpenTelemetry.
const scope = "github.com/serf-sbr/serf-sbr/downing"

// metrics are the instruments of one engine. Their labels have few values, all known beforehand: never a name, never a reason.
// Whatever changes all the time is kept as plain numbers and read when somebody collects. All methods are safe for concurrent use.
type metrics struct {
	decisions, downs, suspensions                      tally
	pauses, leaseReads, leaseLosses, leaseWatchFailed  tally
	backwards, conflicts                               tally
	agentFailures                                      tally
	sent, heard                                        tally
	ignored                                            map[string]tally // by reason
	talkSent, talkHeard, talkIgnored                   tally
	probes, knocks, told, removals, partitions, panics tally

	acquiring, probing, partition, deciding, removing, calling spread

	gauges gauges
	unhook metric.Registration

	mu    sync.Mutex
	now   readings
	lease *lease.Lease
	store answerer // may be nil
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
	outcomeOther      = "other"

	// What a member waits for at its start.
	waitingLease    = "lease"    // that it can be read
	waitingNewcomer = "newcomer" // the cluster that the last verdict left

	callbackSuspend = "suspend"
	callbackResume  = "resume"
	callbackDown    = "down"

	// Why a message was ignored.
	ignoredInvalid    = "invalid"    // it cannot be read
	ignoredForged     = "forged"     // it cannot be what it says it is
	ignoredUnverified = "unverified" // the lease does not hold the verdict that it tells of
	ignoredOverload   = "overload"   // too much was waiting already
	ignoredResolver   = "resolver"   // it does not fit what the resolver sees

	noKind = "none" // what cannot be read has no kind
)

var (
	messageKinds = []string{
		string(gossip.KindReport), string(gossip.KindVerdict), string(gossip.KindOrder), string(gossip.KindAsk),
		string(gossip.KindStanding), string(gossip.KindClear), string(gossip.KindDone),
	}
	agentFaults   = []string{"auth", "closed", "refused", "timeout", outcomeOther}
	talkKinds     = []string{talk.Question.String(), talk.Answer.String(), talk.Unserved.String()}
	callbackKinds = []string{callbackSuspend, callbackResume, callbackDown}
	holderNames   = [holders]string{
		byResolver: "resolver", byBlindness: "agent", byStart: "start", byNewness: "newcomer", byAdoption: "adoption",
		byTags: "tags", byStore: "store",
	}
)

func decisionKinds() (names []string) {
	for k := sbr.None + 1; k <= sbr.AcquireLeaseAndDownIndirectlyConnected; k++ {
		names = append(names, k.String())
	}
	return names
}

// The bounds of the histograms' buckets, in seconds.
var (
	forRequests   = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	forProbes     = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
	forPartitions = []float64{1, 2.5, 5, 10, 20, 30, 45, 60, 90, 120, 300, 900, 3600}
	forCallbacks  = []float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60}
)

func newMetrics(p metric.MeterProvider) (*metrics, error) {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	b := &instruments{meter: p.Meter(scope, metric.WithInstrumentationVersion(Version()))}
	m := &metrics{
		decisions:        b.tally("sbr.decisions", "{decision}", "Decisions of this member, by kind.", "kind", decisionKinds()...),
		downs:            b.tally("sbr.downs", "{down}", "How often this member was downed: 0 or 1.", ""),
		suspensions:      b.tally("sbr.suspensions", "{suspension}", "Suspensions, by what began them.", "cause", holderNames[:]...),
		agentFailures:    b.tally("sbr.agent.failures", "{failure}", "How often the Serf agent beside this member ceased to answer, by what was seen of it.", "reason", agentFaults...),
		pauses:           b.tally("sbr.pauses", "{pause}", "How often this process stood still for longer than is safe.", ""),
		leaseReads:       b.tally("sbr.lease.reads", "{read}", "Reads of the lease by the resolver, by outcome.", "outcome", outcomeOK, outcomeError),
		leaseLosses:      b.tally("sbr.lease.losses", "{loss}", "How often the lease was lost while this member held it.", ""),
		leaseWatchFailed: b.tally("sbr.lease.watch.failures", "{failure}", "Interruptions of the watch of the lease.", ""),
		backwards:        b.tally("sbr.lease.backwards", "{time}", "How often the lease held less than this member knew: it was deleted, emptied or restored.", ""),
		conflicts:        b.tally("sbr.lease.conflicts", "{conflict}", "How often two verdicts had one token: the store lost one of them, and the chain is broken.", ""),
		sent:             b.tally("sbr.messages.sent", "{message}", "Messages and answers sent to other members, by kind.", "kind", messageKinds...),
		heard:            b.tally("sbr.messages.received", "{message}", "Valid messages and answers of other members, by kind.", "kind", messageKinds...),
		probes:           b.tally("sbr.probes", "{probe}", "Probes of neighbours, by outcome.", "outcome", outcomeAnswered, outcomeUnanswered),
		knocks:           b.tally("sbr.knocks.refused", "{knock}", "Downed incarnations that wanted to come back and were refused.", ""),
		told:             b.tally("sbr.told", "{member}", "Members that were told a verdict or an order, by outcome.", "outcome", outcomeAnswered, outcomeGone, outcomeUnanswered),
		removals:         b.tally("sbr.removals", "{removal}", "Removals of downed members from Serf's list by this member, by outcome.", "outcome", outcomeRemoved, outcomeFailed),
		partitions:       b.tally("sbr.partitions", "{partition}", "Partition episodes that began, by their first sign. Flapping is one episode.", "cause", causes...),
		panics:           b.tally("sbr.callback.panics", "{panic}", "Callbacks that panicked.", "callback", callbackKinds...),

		ignored: b.ignored(),

		talkSent:    b.tally("sbr.talk.sent", "{message}", "Questions and answers sent for what runs on top, by kind.", "kind", talkKinds...),
		talkHeard:   b.tally("sbr.talk.received", "{message}", "Questions and answers of other members taken in for what runs on top, by kind.", "kind", talkKinds...),
		talkIgnored: b.tally("sbr.talk.ignored", "{message}", "Questions and answers for what runs on top that changed nothing, by reason.", "reason", ignoredInvalid, ignoredForged, ignoredOverload),

		acquiring: b.spread("sbr.lease.acquire.duration", "Attempts to acquire the lease, by outcome.", forRequests, "outcome", lease.Granted.String(), lease.Held.String(), lease.Unknown.String()),
		probing:   b.spread("sbr.probe.duration", "Time until a neighbour's answer to a probe.", forProbes, ""),
		partition: b.spread("sbr.partition.duration", "From the first sign of a partition until it was over for this member, by outcome.", forPartitions, "outcome", outcomes...),
		deciding:  b.spread("sbr.partition.decision.duration", "From the first sign of a partition to the verdict or the order that settled it.", forPartitions, ""),
		removing:  b.spread("sbr.partition.removal.duration", "From the verdict or the order until the last downed member is gone from this member's list.", forPartitions, ""),
		calling:   b.spread("sbr.callback.duration", "Time that callbacks took.", forCallbacks, "callback", callbackKinds...),
	}
	m.now.state = StateStarting
	m.gauges = b.gauges()
	m.unhook = b.observe(m.read)
	return m, b.err()
}

func (b *instruments) ignored() map[string]tally {
	const name, unit, help = "sbr.messages.ignored", "{message}", "Messages that changed nothing, by kind and reason."
	return map[string]tally{
		ignoredInvalid:    b.tallyOf(name, unit, help, fixedLabel{"reason", ignoredInvalid}, "kind", noKind),
		ignoredForged:     b.tallyOf(name, unit, help, fixedLabel{"reason", ignoredForged}, "kind", messageKinds...),
		ignoredOverload:   b.tallyOf(name, unit, help, fixedLabel{"reason", ignoredOverload}, "kind", messageKinds...),
		ignoredUnverified: b.tallyOf(name, unit, help, fixedLabel{"reason", ignoredUnverified}, "kind", string(gossip.KindVerdict)),
		ignoredResolver:   b.tallyOf(name, unit, help, fixedLabel{"reason", ignoredResolver}, "kind", string(gossip.KindVerdict), string(gossip.KindOrder)),
	}
}

// stop ends the reading of gauges: what a stopped member last saw is no news.
func (m *metrics) stop() { _ = m.unhook.Unregister() }

func (m *metrics) decided(d *sbr.Decision) {
	m.decisions.add(d.Final.String())
}

func (m *metrics) acquired(k lease.Kind, took time.Duration) {
	m.acquiring.record(k.String(), took)
	if k != lease.Unknown {
		m.answered()
	}
}

func (m *metrics) leaseRead(err error) {
	if err != nil {
		m.leaseReads.add(outcomeError)
		return
	}
	m.leaseReads.add(outcomeOK)
	m.set(func(r *readings) { r.awaitsLease = false })
	m.answered()
}

// agentFailed notes why the Serf agent does not answer.
func (m *metrics) agentFailed(err error) {
	for i, known := range []error{ErrAgentAuth, ErrAgentClosed, ErrAgentRefused, ErrAgentTimeout} {
		if errors.Is(err, known) {
			m.agentFailures.add(agentFaults[i])
			return
		}
	}
	m.agentFailures.add(outcomeOther)
}

func (m *metrics) dropped(kind, reason string) { m.ignored[reason].add(kind) }

func (m *metrics) probed(p pong) {
	if p.answered {
		m.probes.add(outcomeAnswered)
		m.probing.record("", p.took)
	} else {
		m.probes.add(outcomeUnanswered)
	}
}

func (m *metrics) removed(err error) {
	if err != nil {
		m.removals.add(outcomeFailed)
	} else {
		m.removals.add(outcomeRemoved)
	}
}

// called notes a callback that has returned.
func (m *metrics) called(kind string, took time.Duration, panicked bool) {
	m.calling.record(kind, took)
	if panicked {
		m.panics.add(kind)
	}
}

func (m *metrics) toldAll(answered, gone, unanswered int) {
	m.told.addN(outcomeAnswered, answered)
	m.told.addN(outcomeGone, gone)
	m.told.addN(outcomeUnanswered, unanswered)
}

var background = context.Background()

package downing

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// episode is one partition as this member lives through it: from the first sign until it is over.
type episode struct {
	incident trace.TraceID

	cause   string
	began   time.Time
	ended   time.Time
	outcome string
	reason  string

	suspended  bool
	calmSince  time.Time // when it was resumed last
	flaps      int       // how often it was suspended again
	changed    time.Time // when somebody became unreachable or reachable last
	settled    time.Time // when the verdict or the order was learnt; zero: not yet
	verdict    sbr.Verdict
	reachable  int // the two sides, as they were when most were unreachable
	cutOff     int
	downed     int // most members that were listed as downed at the same time
	downedLeft int

	steps
}

// The first signs of an episode.
const (
	causeUnreachable = "unreachable" // a member cannot be reached
	causePause       = "pause"       // this process stood still, or does not know its fate for another reason
	causeAgent       = "agent"       // the Serf agent does not answer
	causeNewcomer    = "newcomer"    // it has not found its cluster yet
	causeAdoption    = "adoption"    // an earlier process of this incarnation stopped
	causeTags        = "tags"        // its tags cannot be kept
	causeStore       = "store"       // its lease is in another store than the cluster's
	causeVerdict     = "verdict"     // others have decided already
	causeFailure     = "failure"     // this member goes down, and nothing announced it
)

// What became of it.
const (
	outcomeResolved = "resolved" // decided, and everybody who was downed is gone
	outcomeHealed   = "healed"   // nobody was downed that this member knows of
	outcomeDown     = "down"     // this member is down
	outcomeStopped  = "stopped"  // this member left, or was stopped
)

var (
	causes   = []string{causeUnreachable, causePause, causeAgent, causeNewcomer, causeAdoption, causeTags, causeStore, causeVerdict, causeFailure}
	outcomes = []string{outcomeResolved, outcomeHealed, outcomeDown, outcomeStopped}
)

const (
	// calmFor is how long all must be well until an episode is over in which nothing was decided: whoever flaps has one long episode.
	calmFor = time.Minute
	// lingerFor bounds how long a decided episode waits for downed members to vanish: one may be held in Serf's list by somebody else.
	lingerFor = 15 * time.Minute
)

// chronicle writes down the episodes of one member, one at a time. All methods are safe for concurrent use, and none of them blocks.
type chronicle struct {
	metrics *metrics
	// publish takes an episode that is over. Nobody else touches it any more.
	publish func(*episode)

	mu   sync.Mutex
	cur  *episode // nil: all is well
	over bool     // this member is down, and its last episode is written
	work int      // what is under way and belongs to an episode

	// incident is the id of the present episode, or of the one that begins with what happens just now.
	incident trace.TraceID
	early    []step            // unreachable members, before the suspension that begins an episode
	leased   string            // the incident in which the lease was granted: it may be over when the lease is released
	said     map[string]string // what a retried kind of occurrence said last in this incident
}

// open begins an episode unless one is under way.
func (c *chronicle) open(cause string) *episode {
	if c.cur == nil {
		c.begin()
		c.cur = &episode{incident: c.incident, cause: cause, began: time.Now()}
		for _, s := range c.early {
			c.cur.add(s)
		}
		c.early = nil
		c.metrics.partitions.add(cause)
		c.metrics.set(func(r *readings) { r.active = true })
	}
	return c.cur
}

// begin makes an id for the episode that begins now, or is about to.
func (c *chronicle) begin() {
	if !c.incident.IsValid() {
		c.incident, _ = TraceIDs{}.NewIDs(background)
	}
}

// id is the incident that is under way; empty if there is none.
func (c *chronicle) id() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idLocked()
}

func (c *chronicle) idLocked() string {
	if !c.incident.IsValid() {
		return ""
	}
	return c.incident.String()
}

// note puts an occurrence into the episode that it belongs to, or begins, and tells it the id of that. repeated says that it is of a
// retried kind and says nothing new.
func (c *chronicle) note(o *Occurrence) (repeated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o.Kind {
	case OccurredUnreachable, OccurredDown:
		c.begin()
	case OccurredSuspended:
		c.begun(o.cause)
	case OccurredVerdict:
		c.judged(o.Verdict)
	}
	switch o.Incident = c.idLocked(); o.Kind {
	case OccurredGranted:
		c.leased = o.Incident
	case OccurredReleased, OccurredLost:
		o.Incident = c.leased
	}
	switch ep := c.cur; {
	case ep != nil:
		ep.note(c, o)
	case o.Kind == OccurredUnreachable && len(c.early) < keepAlike:
		c.early = append(c.early, step{name: OccurredUnreachable, from: o.At, attrs: o.traced()})
	}
	return c.repeats(o)
}

// repeats reports whether an occurrence of a retried kind says what the last one of that kind has said.
func (c *chronicle) repeats(o *Occurrence) bool {
	if !slices.Contains(retried, o.Kind) {
		return false
	}
	text := o.Incident + o.SubjectIncarnation + o.Text
	if c.said == nil {
		c.said = make(map[string]string)
	}
	defer func() { c.said[o.Kind] = text }()
	return c.said[o.Kind] == text
}

// begun notes a suspension: the first sign of trouble, or that it has begun again. cause counts if it is the first.
func (c *chronicle) begun(cause string) {
	fresh := c.cur == nil
	ep := c.open(cause)
	if !fresh && !ep.suspended {
		ep.flaps++
	}
	ep.suspended = true
}

// note makes an occurrence a step, unless a span tells of it.
func (ep *episode) note(c *chronicle, o *Occurrence) {
	switch o.Kind {
	case OccurredUnreachable, OccurredReachable:
		ep.changed = o.At
	case OccurredResumed:
		ep.suspended, ep.calmSince = false, o.At
	case string(sbr.TopicDecision):
		ep.decided(c, o.decision)
	case OccurredDeadline, OccurredAsking, OccurredGranted, OccurredHeld, OccurredRefused, OccurredDown, string(sbr.TopicArmed),
		string(sbr.TopicIgnored):
		return
	}
	ep.event(o.Kind, o.traced()...)
}

// during runs f on the present episode, if there is one.
func (c *chronicle) during(f func(*episode)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur != nil {
		f(c.cur)
	}
}

func (ep *episode) decided(c *chronicle, d *sbr.Decision) {
	since := ep.changed
	if since.IsZero() {
		since = ep.began
	}
	ep.span(stepStable, since, "")
	if !d.Final.NeedsLease() {
		c.settle(ep)
	}
}

// ordered notes the order of another member that this one obeys.
func (c *chronicle) ordered(by string, m *gossip.Message) {
	c.during(func(ep *episode) {
		c.settle(ep)
		ep.event(stepOrder, memberKey.String(by), decisionKey.String(m.Decided), textKey.String(m.Reason), downKey.Int(len(m.Down)))
	})
}

// judged notes a verdict that is news. Others may have come to it before this member noticed anything.
func (c *chronicle) judged(v *sbr.Verdict) {
	ep := c.open(causeVerdict)
	if ep.verdict.Token == 0 {
		ep.verdict = *v.Clone()
	}
	c.settle(ep)
}

func (c *chronicle) settle(ep *episode) {
	if ep.settled.IsZero() {
		ep.settled = time.Now()
		c.metrics.deciding.record("", ep.settled.Sub(ep.began))
	}
}

// busy says that more or less is under way: an episode waits for it.
func (c *chronicle) busy(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.work += more
}

// worked notes something that took time since began.
func (c *chronicle) worked(name string, began time.Time, failed string, attrs ...attribute.KeyValue) {
	c.during(func(ep *episode) { ep.span(name, began, failed, attrs...) })
}

// look takes in what the loop sees on every turn, and ends the episode once it is over. removing says that members are just being removed.
func (c *chronicle) look(s *sbr.Snapshot, removing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ep := c.cur
	if ep != nil && ep.outcome != "" {
		return
	}
	reachable, cutOff, downed := 0, 0, 0
	for i := range s.Members {
		switch m := &s.Members[i]; {
		case m.Status == sbr.Down:
			downed++
		case m.Downable() && m.Unreachable:
			cutOff++
		case m.Downable():
			reachable++
		}
	}
	if ep == nil {
		if cutOff == 0 { // what was unreachable before this member was armed began nothing
			c.incident, c.early = trace.TraceID{}, nil
		}
		return
	}
	if cutOff > 0 && cutOff >= ep.cutOff {
		ep.reachable, ep.cutOff = reachable, cutOff
	}
	ep.downed, ep.downedLeft = max(ep.downed, downed), downed
	switch {
	case ep.suspended:
	case ep.settled.IsZero():
		if time.Since(ep.calmSince) >= calmFor {
			c.close(outcomeHealed, ep.calmSince)
		}
	case downed == 0 && !removing && c.work == 0 || time.Since(ep.settled) >= lingerFor:
		c.metrics.removing.record("", time.Since(ep.settled))
		if ep.downed > 0 {
			ep.span(stepRemoval, ep.settled, "", downKey.Int(ep.downed))
		}
		c.close(outcomeResolved, time.Now())
	}
}

// down ends the episode of a member that is down, and begins it if nothing announced that. What is still told after that belongs to it;
// take hands it out.
func (c *chronicle) down(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.cur != nil && c.cur.outcome != "" {
		return
	}
	c.finish(c.open(causeFailure), outcomeDown, reason, time.Now())
}

// take hands out the last episode of a member that is down, once; nil after that.
func (c *chronicle) take() *episode {
	c.mu.Lock()
	defer c.mu.Unlock()
	ep := c.cur
	c.cur, c.over = nil, true
	return ep
}

// stop ends an episode that nobody follows any further.
func (c *chronicle) stop() {
	c.during(func(ep *episode) {
		switch {
		case ep.outcome != "": // down: its trace is written elsewhere
		case ep.suspended || !ep.settled.IsZero():
			c.close(outcomeStopped, time.Now())
		default:
			c.close(outcomeHealed, ep.calmSince)
		}
	})
}

func (c *chronicle) close(outcome string, at time.Time) {
	ep := c.cur
	c.cur, c.incident = nil, trace.TraceID{}
	c.finish(ep, outcome, "", at)
	c.publish(ep)
}

func (c *chronicle) finish(ep *episode, outcome, reason string, at time.Time) {
	ep.outcome, ep.reason, ep.ended = outcome, reason, at
	c.metrics.partition.record(outcome, at.Sub(ep.began))
	c.metrics.set(func(r *readings) { r.active = false })
}

// steps are what happened in an episode, the first and the last of them: an episode may last for hours.
type steps struct {
	first, last []step
	skipped     int
	of          map[string]int // how many of each kind
}

// step is one of them. One without an end happened at a moment.
type step struct {
	name     string
	from, to time.Time
	failed   string
	attrs    []attribute.KeyValue
}

const (
	// keepSteps is how many of the first and how many of the last steps are kept.
	keepSteps = 40
	// keepAlike is how many steps are kept of a kind of which each member of a large cluster makes one.
	keepAlike = 16
)

var alike = []string{OccurredUnreachable, OccurredReachable, OccurredRemoved, OccurredTold, stepOrder}

func (s *steps) event(name string, attrs ...attribute.KeyValue) {
	s.add(step{name: name, from: time.Now(), attrs: attrs})
}

func (s *steps) span(name string, from time.Time, failed string, attrs ...attribute.KeyValue) {
	s.add(step{name: name, from: from, to: time.Now(), failed: failed, attrs: attrs})
}

func (s *steps) add(x step) {
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.of[x.name]++
	switch {
	case s.of[x.name] > keepAlike && slices.Contains(alike, x.name):
		s.skipped++
	case len(s.first) < keepSteps:
		s.first = append(s.first, x)
	case len(s.last) < keepSteps:
		s.last = append(s.last, x)
	default:
		s.last = append(s.last[1:], x)
		s.skipped++
	}
}

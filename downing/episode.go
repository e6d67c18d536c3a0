package downing

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/serf-sbr/serf-sbr/downing/gossip"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// episode is one partition as this member lives through it: from the first sign until it is over.
type episode struct {
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
	causes   = []string{causeUnreachable, causePause, causeAgent, causeNewcomer, causeAdoption, causeVerdict, causeFailure}
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
}

// open begins an episode unless one is under way.
func (c *chronicle) open(cause string) *episode {
	if c.cur == nil {
		c.cur = &episode{cause: cause, began: time.Now()}
		c.metrics.partitions.add(cause)
		c.metrics.set(func(r *readings) { r.active = true })
	}
	return c.cur
}

// suspended notes the first sign of trouble, or that it has begun again. cause counts if it is the first.
func (c *chronicle) suspended(cause, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.cur == nil
	ep := c.open(cause)
	if !fresh {
		ep.flaps++
	}
	ep.suspended = true
	ep.event(stepSuspended, textKey.String(reason))
}

func (c *chronicle) resumed(reason string) {
	c.during(func(ep *episode) {
		ep.suspended, ep.calmSince = false, time.Now()
		ep.event(stepResumed, textKey.String(reason))
	})
}

// during runs f on the present episode, if there is one.
func (c *chronicle) during(f func(*episode)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur != nil {
		f(c.cur)
	}
}

// reached notes a change of reachability. By itself it is no first sign: a cluster that is still forming has no partition.
func (c *chronicle) reached(member string, unreachable bool) {
	c.during(func(ep *episode) {
		ep.changed = time.Now()
		if unreachable {
			ep.event(stepUnreachable, memberKey.String(member))
		} else {
			ep.event(stepReachable, memberKey.String(member))
		}
	})
}

func (c *chronicle) decided(d *sbr.Decision) {
	c.during(func(ep *episode) {
		since := ep.changed
		if since.IsZero() {
			since = ep.began
		}
		ep.span(stepStable, since, "")
		ep.event(stepDecision, decisionKey.String(d.Final.String()), textKey.String(d.Reason), downKey.Int(len(d.Down)))
		if !d.Final.NeedsLease() {
			c.settle(ep)
		}
	})
}

// ordered notes the order of another member that this one obeys.
func (c *chronicle) ordered(by string, m *gossip.Message) {
	c.during(func(ep *episode) {
		c.settle(ep)
		ep.event(stepOrder, memberKey.String(by), decisionKey.String(m.Decided), textKey.String(m.Reason), downKey.Int(len(m.Down)))
	})
}

// judged notes a verdict that is news. Others may have come to it before this member noticed anything.
func (c *chronicle) judged(v sbr.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ep := c.open(causeVerdict)
	if ep.verdict.Token == 0 {
		ep.verdict = v
	}
	c.settle(ep)
	ep.event(stepVerdict, tokenKey.Int64(int64(v.Token)), byKey.String(string(v.DecidedBy)), survivorsKey.Int(len(v.Survivors)), downKey.Int(len(v.Down)), textKey.String(v.Reason))
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

func (c *chronicle) happened(name string, attrs ...attribute.KeyValue) {
	c.during(func(ep *episode) { ep.event(name, attrs...) })
}

// look takes in what the loop sees on every turn, and ends the episode once it is over. removing says that members are just being removed.
func (c *chronicle) look(s *sbr.Snapshot, removing bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ep := c.cur
	if ep == nil || ep.outcome != "" {
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
	c.cur = nil
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

var alike = []string{stepUnreachable, stepReachable, stepRemoved, stepTold, stepOrder}

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

package downing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// A process with the gossip key, or with a shell on one node, can send any query. So a message counts only as
// far as it can be what it says it is; what can be looked up is looked up. That is no substitute for the key:
// a member that lies about itself is believed.

const foreignSender = "its sender is no member here"

// forged says why a message cannot be what it says it is; empty if it can. Loop only.
func (e *engine) forged(q *query, m *wire.Message) string {
	from, known := e.resolver.Member(m.From)
	switch {
	case q.from != "" && q.from != NameOf(m.From):
		return fmt.Sprintf("it was sent by the node %s", q.from)
	case !known && m.Kind != wire.KindStanding: // the requester may be downed
		return foreignSender
	case m.Kind == wire.KindOrder && !q.asked:
		return e.unfit(&from, m)
	default:
		return ""
	}
}

// unfit says why a member cannot have given this order.
func (e *engine) unfit(from *sbr.Member, m *wire.Message) string {
	strange := func(id sbr.ID) bool { _, known := e.resolver.Member(id); return !known }
	if sbr.NeedsLease(e.strategy) && e.resolver.State() == sbr.StateUp &&
		!slices.ContainsFunc(m.Suspects, strange) {
		return "with a lease only a verdict downs anybody while nobody is unreachable"
	}
	s := e.resolver.Snapshot()
	givesUp := slices.Contains(m.Down, m.From)
	for i := range s.Members {
		x := &s.Members[i] // in address order
		switch {
		case x.ID == m.From:
			return ""
		case x.Unreachable || x.Status != sbr.Up || !givesUp && slices.Contains(m.Down, x.ID):
		default:
			return fmt.Sprintf("%s leads its side, not %s", x.Name, from.Name)
		}
	}
	return "" // it is known, so it was in the list
}

// verifyTime is how long the lease store may take to confirm a received verdict. Without an answer the
// verdict counts unconfirmed.
const verifyTime = time.Second

// maxVerifying bounds how many received verdicts are looked up at the same time. Senders repeat verdicts
// beyond it.
const maxVerifying = 4

// told handles a verdict that another member sent. If the store can be read it decides. Of two verdicts under
// one token it does so only if it is known which store that is: else the other members may have another one, and
// each store is right about its own. Loop only.
func (e *engine) told(q *query, m wire.Message) {
	v := e.resolver.Verdict()
	news := m.Token > v.Token || m.Token == v.Token && (v.Partial || m.By != v.DecidedBy && e.storeID != "")
	if e.lease == nil || !news || e.isAstray() { // an other store than the cluster's disproves nothing
		e.learn(q, &m)
		return
	}
	if e.verifying >= maxVerifying {
		e.rec.add(countIgnored, string(m.Kind), ignoredOverload)
		return
	}
	e.verifying++
	e.spawn(&e.workers, func() {
		ctx, cancel := context.WithTimeout(e.ctx, min(verifyTime, e.cfg.Lease.OperationTimeout))
		defer cancel()
		began := time.Now()
		rec, err := e.lease.Read(ctx)
		e.leaseRead(began, err)
		e.inbox.Post(func() {
			e.verifying--
			switch {
			case err != nil, rec.Behind: // a store that forgot disproves nothing
				e.learn(q, &m)
			case rec.Verdict == nil || rec.Verdict.Token < m.Token:
				e.ignore(q, &m, ignoredUnverified, fmt.Sprintf("verdict %d is not in the lease %s", m.Token,
					e.cfg.leaseName()))
			default:
				e.step(sbr.LeaseObserved{Record: recordOf(rec)})
				e.acknowledge(q, &m)
			}
		})
	})
}

func (e *engine) learn(q *query, m *wire.Message) {
	e.step(m.Event())
	e.acknowledge(q, m)
}

// ignore records that a message was ignored, and why. Beside a stock agent only the message names its sender.
func (e *engine) ignore(q *query, m *wire.Message, reason, why string) {
	kind := cmp.Or(string(m.Kind), noKind)
	e.rec.add(countIgnored, kind, reason)
	e.complain.log("sbr: ignored a message", "from", cmp.Or(q.from, NameOf(m.From), "unknown"), "kind", kind,
		"why", why)
}

// maxPending is how many messages may wait for the loop. Beyond it they are dropped: whatever matters is sent
// again.
const maxPending = 2048

// complainEvery is how often ignored messages are logged.
const complainEvery = 5 * time.Second

// complaints keeps a flood of junk from becoming a flood of log lines. It is safe for concurrent use.
type complaints struct {
	logger *slog.Logger
	some   rate.Sometimes
	silent atomic.Int64
}

func newComplaints(log *slog.Logger) *complaints {
	return &complaints{logger: log, some: rate.Sometimes{Interval: complainEvery}}
}

func (c *complaints) log(text string, args ...any) {
	c.silent.Add(1)
	c.some.Do(func() {
		if more := c.silent.Swap(0) - 1; more > 0 {
			args = append(args, "more-like-it", more)
		}
		c.logger.Warn(text, args...)
	})
}

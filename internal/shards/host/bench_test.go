package host_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/host"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
)

const digest = 42

// bench is one machine, "me", whose shards are 0 to 3, with n1 and n2 beside it.
type bench struct {
	t    *testing.T
	m    *host.Machine
	now  time.Duration
	view slot.View
	ref  uint64
}

func newBench(t *testing.T, change func(*host.Config)) *bench {
	cfg := host.Config{Rules: slot.DefaultRules(), Shards: 4, Digest: digest}
	cfg.Self = "me"
	if change != nil {
		change(&cfg)
	}
	b := &bench{t: t, m: host.New(cfg, 0), view: slot.View{Armed: true}}
	for _, id := range []sbr.ID{"me", "n1", "n2"} {
		b.view.Peers = append(b.view.Peers, slot.Peer{ID: id, Name: string(id), Candidate: true})
	}
	b.step(slot.Viewed{View: b.view})
	return b
}

// following has reported to n1 under term 5.
func following(t *testing.T, change func(*host.Config)) *bench {
	b := newBench(t, change)
	b.report("n1", 5, 1)
	return b
}

func withLease(c *host.Config) { c.UseLease = true }

func (b *bench) step(e slot.Event) []slot.Effect { return slices.Clone(b.m.Step(b.now, e)) }

// pass lets time pass, with the member sure of its place or not.
func (b *bench) pass(d time.Duration, sure bool) (all []slot.Effect) {
	b.now += d
	if sure {
		b.view.Sure = b.now
	}
	all = b.step(slot.Viewed{View: b.view})
	return append(all, b.m.Step(b.now, slot.Tick{})...)
}

func (b *bench) asks(from sbr.ID, m message.Message) []slot.Effect {
	b.ref++
	if m.Digest == 0 {
		m.Digest = digest
	}
	return b.step(slot.Asked[message.Message]{Ref: b.ref, From: from, Message: m})
}

func (b *bench) report(from sbr.ID, term, n uint64) message.Message {
	return answer(b.t, b.asks(from, message.Message{Kind: message.Report, Term: term,
		Number: message.Number(term, n)}))
}

func (b *bench) order(by sbr.ID, term, n uint64, shard int, from, to sbr.ID) []slot.Effect {
	o := message.Order{Shard: shard, From: message.KeyOf(from), To: message.KeyOf(to),
		Number: message.Number(term, n)}
	return b.asks(by, message.Message{Kind: message.Orders, Term: term, Number: message.Number(term, n+1000),
		Orders: []message.Order{o}})
}

func (b *bench) handOver(from sbr.ID, term, n uint64, shard int) []slot.Effect {
	return b.asks(from, message.Message{Kind: message.HandOver, Term: term,
		Takes: []message.Take{{Shard: shard, Number: message.Number(term, n)}}})
}

func (b *bench) handedOver(from sbr.ID, term, n uint64, shard int) []slot.Effect {
	m := message.Message{Kind: message.HandedOver, Digest: digest,
		Handed: []message.Handed{{Shard: shard, Number: message.Number(term, n), State: []byte("left")}}}
	return b.step(slot.Answered[message.Message]{From: from, Message: m})
}

// handedOverUnder is handedOver by a member whose run had a lease with this token.
func (b *bench) handedOverUnder(from sbr.ID, term, n, token uint64) []slot.Effect {
	m := message.Message{Kind: message.HandedOver, Digest: digest,
		Handed: []message.Handed{{Number: message.Number(term, n), Token: token, State: []byte("left")}}}
	return b.step(slot.Answered[message.Message]{From: from, Message: m})
}

func (b *bench) ends(shard int, run uint64) []slot.Effect {
	return b.step(slot.RunEnded{Shard: shard, Run: run, State: []byte("mine")})
}

func only[E slot.Effect](effects []slot.Effect) (list []E) {
	for _, e := range effects {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

func answer(t *testing.T, effects []slot.Effect) message.Message {
	a := only[slot.Answer[message.Message]](effects)
	require.Len(t, a, 1)
	return a[0].Message
}

func starts(effects []slot.Effect) int { return len(only[slot.Start](effects)) }

func cause(t *testing.T, effects []slot.Effect) slot.Cause {
	s := only[slot.Stop](effects)
	require.Len(t, s, 1)
	return s[0].Cause
}

package host_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/host"
	"github.com/serf-sbr/serf-sbr/sharding/membership"
	"github.com/serf-sbr/serf-sbr/sharding/message"
)

const digest = 42

// bench is one machine, "me", whose shards are 0 to 3, with n1 and n2 beside it.
type bench struct {
	t    *testing.T
	m    *host.Machine
	now  time.Duration
	view membership.View
	ref  uint64
}

func newBench(t *testing.T, change func(*host.Config)) *bench {
	cfg := host.DefaultConfig()
	cfg.Self, cfg.Shards, cfg.Digest = "me", 4, digest
	if change != nil {
		change(&cfg)
	}
	m, err := host.New(cfg, 0)
	require.NoError(t, err)
	b := &bench{t: t, m: m, view: membership.View{Armed: true}}
	for _, id := range []sbr.ID{"me", "n1", "n2"} {
		b.view.Peers = append(b.view.Peers, membership.Peer{ID: id, Name: string(id), Candidate: true})
	}
	b.step(host.Viewed{View: b.view})
	return b
}

// following has reported to n1 under term 5.
func following(t *testing.T, change func(*host.Config)) *bench {
	b := newBench(t, change)
	b.report("n1", 5, 1)
	return b
}

func withLease(c *host.Config) { c.UseLease = true }

func (b *bench) step(e host.Event) []host.Effect { return slices.Clone(b.m.Step(b.now, e)) }

// pass lets time pass, with the member sure of its place or not.
func (b *bench) pass(d time.Duration, sure bool) (all []host.Effect) {
	b.now += d
	if sure {
		b.view.Sure = b.now
	}
	all = b.step(host.Viewed{View: b.view})
	return append(all, b.m.Tick(b.now)...)
}

func (b *bench) asks(from sbr.ID, m message.Message) []host.Effect {
	b.ref++
	if m.Digest == 0 {
		m.Digest = digest
	}
	return b.step(host.Asked{Ref: b.ref, From: from, Message: m})
}

func (b *bench) report(from sbr.ID, term, n uint64) message.Message {
	return answer(b.t, b.asks(from, message.Message{Kind: message.Report, Term: term, Number: message.Number(term, n)}))
}

func (b *bench) order(by sbr.ID, term, n uint64, shard int, from, to sbr.ID) []host.Effect {
	o := message.Order{Shard: shard, From: message.KeyOf(from), To: message.KeyOf(to), Number: message.Number(term, n)}
	return b.asks(by, message.Message{Kind: message.Orders, Term: term, Number: message.Number(term, n+1000), Orders: []message.Order{o}})
}

func (b *bench) handOver(from sbr.ID, term, n uint64, shard int) []host.Effect {
	return b.asks(from, message.Message{Kind: message.HandOver, Term: term, Takes: []message.Take{{Shard: shard, Number: message.Number(term, n)}}})
}

func (b *bench) handedOver(from sbr.ID, term, n uint64, shard int) []host.Effect {
	m := message.Message{Kind: message.HandedOver, Digest: digest, Handed: []message.Handed{{Shard: shard, Number: message.Number(term, n), State: []byte("left")}}}
	return b.step(host.Answered{From: from, Message: m})
}

// handedOverUnder is handedOver by a member whose run had a lease with this token.
func (b *bench) handedOverUnder(from sbr.ID, term, n, token uint64) []host.Effect {
	m := message.Message{Kind: message.HandedOver, Digest: digest, Handed: []message.Handed{{Number: message.Number(term, n), Token: token, State: []byte("left")}}}
	return b.step(host.Answered{From: from, Message: m})
}

func (b *bench) ends(shard int, run uint64) []host.Effect {
	return b.step(host.RunEnded{Shard: shard, Run: run, State: []byte("mine")})
}

func only[E host.Effect](effects []host.Effect) (list []E) {
	for _, e := range effects {
		if e, ok := e.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

func answer(t *testing.T, effects []host.Effect) message.Message {
	a := only[host.Answer](effects)
	require.Len(t, a, 1)
	return a[0].Message
}

func starts(effects []host.Effect) int { return len(only[host.Start](effects)) }

func cause(t *testing.T, effects []host.Effect) host.Cause {
	s := only[host.Stop](effects)
	require.Len(t, s, 1)
	return s[0].Cause
}

func TestOrder_StartsAtOnceWhatNobodyHas(t *testing.T) {
	b := following(t, nil)
	e := b.order("n1", 5, 2, 0, "", "me")
	require.Equal(t, []host.Start{{Shard: 0, Run: 1, Token: message.Number(5, 2)}}, only[host.Start](e))
	require.Equal(t, []message.Entry{{Shard: 0, Phase: message.Running, Number: message.Number(5, 2), Seen: message.Number(5, 2)}}, answer(t, e).Entries)
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")), "the same again")
}

func TestOrder_IsNotFollowedBeforeAReport(t *testing.T) {
	b := newBench(t, nil)
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")))
	b.report("n1", 5, 9)
	require.Zero(t, starts(b.order("n1", 5, 8, 0, "", "me")), "it was given before the report: to one that was here before")
	require.Equal(t, 1, starts(b.order("n1", 5, 10, 0, "", "me")))
}

func TestOrder_OfAnOlderCoordinatorIsRefused(t *testing.T) {
	b := following(t, nil)
	require.False(t, b.report("n2", 6, 1).Refused)
	require.Zero(t, starts(b.order("n1", 5, 90, 0, "", "me")))
	a := b.report("n1", 5, 91)
	require.True(t, a.Refused)
	require.EqualValues(t, 6, a.Term)
	require.True(t, b.report("n1", 6, 1).Refused, "two cannot have the same term")
	require.Equal(t, 1, starts(b.order("n2", 6, 2, 0, "", "me")))
}

func TestOrder_OfAnOlderTermIsRefusedByTheNextMachine(t *testing.T) {
	b := newBench(t, func(c *host.Config) { c.Known = host.Known{Term: 6, Coordinator: "n2", Seq: 70} })
	require.True(t, b.report("n1", 5, 1).Refused)
	require.Greater(t, b.report("n2", 6, 1).Seq, uint64(70))
}

func TestOrder_WaitsForTheFormerHost(t *testing.T) {
	b := following(t, nil)
	e := b.order("n1", 5, 2, 0, "n2", "me")
	require.Zero(t, starts(e))
	require.Equal(t, sbr.ID("n2"), only[host.Ask](e)[0].To)
	require.Zero(t, starts(b.handedOver("n1", 5, 2, 0)), "from another member")
	require.Zero(t, starts(b.handedOver("n2", 5, 1, 0)), "to another order")
	require.Len(t, only[host.Ask](b.pass(time.Second, true)), 1, "asked again")
	s := only[host.Start](b.handedOver("n2", 5, 2, 0))
	require.Equal(t, []host.Start{{Shard: 0, Run: 1, Token: message.Number(5, 2), State: []byte("left"), From: "n2"}}, s)
}

func TestOrder_AMemberWithoutManagerRunsNothing(t *testing.T) {
	b := following(t, nil)
	q := only[host.Ask](b.order("n1", 5, 2, 0, "n2", "me"))[0].Message
	require.Equal(t, 1, starts(b.step(host.Answered{From: "n2", Message: q, Unserved: true})))
}

func TestOrder_TakenAwayBeforeItWasStarted(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "n2", "me")
	b.order("n1", 5, 3, 0, "me", "n1")
	require.Zero(t, starts(b.handedOver("n2", 5, 2, 0)))
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "n2", "me")), "late, and repeated")
	require.Len(t, only[host.Answer](b.handOver("n1", 5, 3, 0)), 1)
}

func TestOrder_ThatGivesARunningShardToOthersStopsIt(t *testing.T) {
	for name, c := range map[string]struct {
		from, to sbr.ID
		stops    bool
	}{
		"from here: when it is asked for": {"me", "n2", false},
		"from elsewhere":                  {"n2", "n1", true},
		"from nobody":                     {"", "n1", true},
		"to nobody, from here":            {"me", "", true},
		"to nobody, from elsewhere":       {"n2", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := following(t, nil)
			b.order("n1", 5, 2, 0, "", "me")
			e := b.order("n1", 5, 3, 0, c.from, c.to)
			require.Equal(t, c.stops, len(only[host.Stop](e)) > 0)
		})
	}
}

func TestHandOver_AnswersOnceTheRunHasEnded(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	require.Equal(t, host.CauseHandOver, cause(t, b.handOver("n2", 5, 3, 0)))
	require.Empty(t, only[host.Answer](b.pass(time.Second, true)))
	a := answer(t, b.ends(0, 1))
	require.Equal(t, []message.Handed{{Shard: 0, Number: message.Number(5, 3), State: []byte("mine")}}, a.Handed)
	require.True(t, answer(t, b.handOver("n2", 5, 1, 0)).Handed[0].Refused, "by an older order")
}

func TestHandOver_OfAnOlderTermIsIgnored(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.report("n2", 6, 1)
	require.Empty(t, b.handOver("n2", 5, 3, 0))
}

func TestHandOver_SeveralInOneAnswer(t *testing.T) {
	b := following(t, nil)
	for s := range 3 {
		b.order("n1", 5, uint64(2+s), s, "", "me")
	}
	takes := []message.Take{{Shard: 0, Number: message.Number(5, 9)}, {Shard: 1, Number: message.Number(5, 10)}, {Shard: 2, Number: message.Number(5, 11)}}
	require.Len(t, only[host.Stop](b.asks("n2", message.Message{Kind: message.HandOver, Term: 5, Takes: takes})), 3)
	require.Empty(t, only[host.Answer](b.ends(0, 1)))
	require.Empty(t, only[host.Answer](b.ends(2, 1)))
	require.Len(t, answer(t, b.pass(100*time.Millisecond, true)).Handed, 2, "the third takes longer")
}

func TestLease_NothingRunsWithoutIt(t *testing.T) {
	b := following(t, withLease)
	e := b.order("n1", 5, 2, 0, "", "me")
	require.Equal(t, []host.AcquireLease{{Shard: 0, Attempt: 1}}, only[host.AcquireLease](e))
	require.Zero(t, starts(e))
	b.step(host.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Held})
	require.Empty(t, only[host.AcquireLease](b.pass(4*time.Second, true)))
	require.Len(t, only[host.AcquireLease](b.pass(time.Second, true)), 1)
	require.Zero(t, starts(b.step(host.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 6})), "of an older attempt")
	require.Equal(t, uint64(7), only[host.Start](b.step(host.LeaseAnswer{Shard: 0, Attempt: 2, Outcome: sbr.Granted, Token: 7}))[0].Token)
}

func TestLease_Lost(t *testing.T) {
	b := following(t, withLease)
	b.order("n1", 5, 2, 0, "", "me")
	b.step(host.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 7})
	require.Empty(t, only[host.Stop](b.step(host.LeaseLost{Shard: 0, Attempt: 9})))
	require.Equal(t, host.CauseLeaseLost, cause(t, b.step(host.LeaseLost{Shard: 0, Attempt: 1})))
	require.Len(t, only[host.ReleaseLease](b.ends(0, 1)), 1)
	require.Empty(t, only[host.AcquireLease](b.step(host.LeaseReleased{Shard: 0, Attempt: 1})))
	require.Len(t, only[host.AcquireLease](b.pass(5*time.Second, true)), 1)
	s := only[host.Start](b.step(host.LeaseAnswer{Shard: 0, Attempt: 2, Outcome: sbr.Granted, Token: 8}))
	require.Equal(t, []host.Start{{Shard: 0, Run: 2, Token: 8, State: []byte("mine")}}, s)
}

func TestLease_GivenBackBeforeTheHandOver(t *testing.T) {
	b := following(t, withLease)
	b.order("n1", 5, 2, 0, "", "me")
	b.step(host.LeaseAnswer{Shard: 0, Attempt: 1, Outcome: sbr.Granted, Token: 7})
	b.handOver("n2", 5, 3, 0)
	require.Empty(t, only[host.Answer](b.ends(0, 1)))
	require.Len(t, only[host.Answer](b.step(host.LeaseReleased{Shard: 0, Attempt: 1})), 1)
}

func TestTrust_UnsureStopsAndStaysStopped(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	at, ok := b.m.Until()
	require.True(t, ok)
	require.Equal(t, host.DefaultConfig().Trust, at)
	require.Empty(t, only[host.Stop](b.pass(host.DefaultConfig().Trust-1, false)))
	require.Equal(t, host.CauseUnsure, cause(t, b.pass(1, false)))
	b.ends(0, 1)
	require.Zero(t, starts(b.pass(time.Second, true)))
	require.Equal(t, 1, starts(b.order("n1", 5, 3, 0, "", "me")), "until it is told to")
}

func TestTrust_NothingStartsWhileUnsure(t *testing.T) {
	b := following(t, nil)
	b.pass(time.Minute, false)
	require.Zero(t, starts(b.order("n1", 5, 2, 0, "", "me")))
	require.Equal(t, 1, starts(b.pass(time.Second, true)))
}

func TestDown_StopsAllFirstAndSaysNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.order("n1", 5, 3, 1, "n2", "me")
	e := b.step(host.Downed{Why: "a verdict"})
	require.Equal(t, host.CauseDown, cause(t, e))
	require.Zero(t, starts(b.handedOver("n2", 5, 3, 1)))
	require.Empty(t, b.asks("n1", message.Message{Kind: message.Report, Term: 5, Number: message.Number(5, 50)}))
	require.False(t, b.m.Finished())
	for _, x := range append(b.ends(0, 1), b.pass(time.Hour, true)...) {
		require.IsType(t, host.Explain{}, x)
	}
	require.True(t, b.m.Finished())
}

func TestLeave_RunsUntilAskedAndTakesNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.order("n1", 5, 3, 1, "n2", "me")
	require.Empty(t, only[host.Stop](b.step(host.Leave{Patience: 10 * time.Second})))
	require.Zero(t, starts(b.handedOver("n2", 5, 3, 1)))
	a := answer(t, b.order("n1", 5, 4, 2, "", "me"))
	require.Equal(t, message.Idle, a.Entries[0].Phase)
	require.Equal(t, message.Number(5, 4), a.Entries[0].Seen, "so that the coordinator knows that nothing comes of it")
	require.True(t, a.Leaving)
	require.Equal(t, host.CauseResigned, cause(t, b.pass(10*time.Second, true)))
	e := b.ends(0, 1)
	require.Equal(t, message.Resigned, only[host.Ask](e)[0].Message.Kind)
	require.True(t, b.m.Finished())
}

func TestLeave_AloneStopsAtOnce(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.view.Peers = b.view.Peers[:1]
	b.pass(time.Second, true)
	require.Equal(t, host.CauseResigned, cause(t, b.step(host.Leave{Patience: 10 * time.Second})))
}

func TestAnotherList_StopsEverything(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	q := message.Message{Kind: message.Report, Digest: 7, Term: 6, Number: message.Number(6, 1)}
	e := b.asks("n2", q)
	require.Equal(t, host.CauseOrdered, cause(t, e))
	require.True(t, answer(t, e).Busy)
	b.ends(0, 1)
	require.False(t, answer(t, b.asks("n2", q)).Busy)
}

func TestNews_ToldUntilNoted(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	b.pass(time.Minute, false) // unsure
	b.ends(0, 1)
	told := only[host.Ask](b.pass(time.Second, true))
	require.Len(t, told, 1)
	require.Equal(t, sbr.ID("n1"), told[0].To)
	require.Equal(t, message.Idle, told[0].Message.Entries[0].Phase)
	again := only[host.Ask](b.pass(time.Second, true))
	require.Len(t, again, 1)
	b.step(host.Answered{From: "n1", Message: message.Message{Kind: message.Noted, Digest: digest, Term: 5, Seq: again[0].Message.Seq}})
	require.Empty(t, only[host.Ask](b.pass(time.Minute, true)))
}

func TestMargin_IsTold(t *testing.T) {
	b := newBench(t, nil)
	peers := b.view.Peers
	b.view.Peers = slices.Clone(peers)
	b.view.Peers[2].Down = true
	b.pass(time.Second, true)
	require.Equal(t, 20*time.Second, b.report("n1", 5, 1).Wait)
	b.view.Peers = peers[:2]
	b.pass(5*time.Second, true)
	require.Equal(t, 15*time.Second, b.report("n1", 5, 2).Wait, "its removal does not begin another one")
}

func TestMargin_NotOfWhoHasResigned(t *testing.T) {
	b := newBench(t, nil)
	b.asks("n2", message.Message{Kind: message.Resigned})
	b.view.Peers = b.view.Peers[:2]
	b.pass(time.Second, true)
	require.Zero(t, b.report("n1", 5, 1).Wait)
}

func TestRunEnded_ByItselfStartsAgain(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	require.Zero(t, starts(b.step(host.RunEnded{Shard: 0, Run: 1, Rest: 2 * time.Second, State: make([]byte, message.MaxState+1)})))
	require.Equal(t, message.Running, b.report("n1", 5, 9).Entries[0].Phase, "for others it runs on")
	s := only[host.Start](b.pass(2*time.Second, true))
	require.Equal(t, []host.Start{{Shard: 0, Run: 2, Token: message.Number(5, 2)}}, s, "without the state, which was too long")
}

func TestConfig_Validate(t *testing.T) {
	require.ErrorContains(t, host.Config{}.Validate(), "Self")
	require.ErrorContains(t, host.Config{}.Validate(), "Shards")
	require.ErrorContains(t, host.Config{}.Validate(), "Trust")
	_, err := host.New(host.Config{}, 0)
	require.Error(t, err)
}

func TestClone_SharesNothing(t *testing.T) {
	b := following(t, nil)
	b.order("n1", 5, 2, 0, "", "me")
	written := func(m *host.Machine) []byte {
		var c message.Canon
		m.AppendState(&c)
		return c.Append(nil)
	}
	before := written(b.m)
	c := b.m.Clone()
	require.Equal(t, before, written(c))
	c.Step(b.now, host.Downed{})
	c.Step(b.now, host.RunEnded{Shard: 0, Run: 1})
	require.Equal(t, before, written(b.m))
	require.NotEqual(t, before, written(c))
	require.Len(t, b.m.Status(), 1)
	require.Empty(t, c.Status())
}

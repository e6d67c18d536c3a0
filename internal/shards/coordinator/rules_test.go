package coordinator_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/shards/coordinator"
	"github.com/serf-sbr/serf-sbr/internal/shards/message"
	"github.com/serf-sbr/serf-sbr/internal/slot"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/sharding/allocation"
)

// desk is one coordinator, on n1 under term 5, with n2 and n3 beside it and the shards "a" and "b".
type desk struct {
	t    *testing.T
	m    *coordinator.Machine
	now  time.Duration
	view slot.View
	seq  uint64
	all  []slot.Effect
}

const deskDigest = 42

func newDesk(t *testing.T, change func(*coordinator.Config)) *desk {
	alloc, err := allocation.New("orders", []string{"a", "b"}, allocation.DefaultConfig())
	require.NoError(t, err)
	cfg := coordinator.Config{Rules: slot.DefaultRules(), AuditInterval: coordinator.AuditInterval}
	cfg.Self, cfg.Term, cfg.Allocator, cfg.Digest = "n1", 5, alloc, deskDigest
	if change != nil {
		change(&cfg)
	}
	d := &desk{t: t, m: coordinator.New(cfg, 0), view: slot.View{Armed: true}}
	for i := range 3 {
		d.view.Peers = append(d.view.Peers, slot.Peer{ID: sbr.ID(fmt.Sprintf("n%d", i+1)),
			Name: fmt.Sprintf("n%d", i+1), Candidate: true})
	}
	d.step(slot.Viewed{View: d.view})
	return d
}

func (d *desk) step(e slot.Event) []slot.Effect {
	d.all = append(d.all, d.m.Step(d.now, e)...)
	return d.all
}

// pass lets time pass, and returns what was done since.
func (d *desk) pass(by time.Duration) []slot.Effect {
	for end := d.now + by; ; {
		at, ok := d.m.NextDeadline()
		if d.now = max(d.now, at); !ok || at > end {
			d.now = end
			break
		}
		d.all = append(d.all, d.m.Step(d.now, slot.Tick{})...)
	}
	list := d.all
	d.all = nil
	return list
}

// change replaces a member in the view.
func (d *desk) change(i int, f func(*slot.Peer)) {
	d.view.Peers = slices.Clone(d.view.Peers)
	f(&d.view.Peers[i])
	d.step(slot.Viewed{View: d.view})
}

func (d *desk) state(from sbr.ID, change func(*message.Message)) {
	d.seq++
	a := message.Message{Kind: message.State, Digest: deskDigest, Term: 5, Number: message.Number(5, 1),
		Seq: d.seq, Full: true, Next: 2}
	if change != nil {
		change(&a)
	}
	d.step(slot.Answered[message.Message]{From: from, Message: a})
}

func runs(shard int, n uint64) func(*message.Message) {
	return func(a *message.Message) {
		a.Entries = []message.Entry{{Shard: shard, Phase: slot.Active, Number: n, Seen: n}}
	}
}

func ordered(effects []slot.Effect) (list []message.Order) {
	for _, e := range effects {
		if e, ok := e.(slot.Ask[message.Message]); ok {
			list = append(list, e.Message.Orders...)
		}
	}
	return list
}

// reporters are the members that are asked what they run, in order.
func reporters(effects []slot.Effect) (list []sbr.ID) {
	for _, e := range effects {
		if e, ok := e.(slot.Ask[message.Message]); ok && e.Message.Kind == message.Report {
			list = append(list, e.To)
		}
	}
	return list
}

func resigned(effects []slot.Effect) *slot.GiveUp {
	for _, e := range effects {
		if e, ok := e.(slot.GiveUp); ok {
			return &e
		}
	}
	return nil
}

func said(effects []slot.Effect, topic slot.Topic) (count int) {
	for _, e := range effects {
		if e, ok := e.(slot.Explain); ok && e.Topic == topic {
			count++
		}
	}
	return count
}

func TestRecovery_NothingIsAssignedBeforeAllHaveReported(t *testing.T) {
	d := newDesk(t, nil)
	d.state("n1", nil)
	d.state("n2", nil)
	require.Empty(t, ordered(d.pass(5*time.Second)))
	require.Equal(t, []sbr.ID{"n3"}, d.m.Status().Silent)
	d.state("n3", runs(0, 7))
	o := ordered(d.pass(100 * time.Millisecond))
	require.Len(t, o, 1)
	require.Equal(t, 1, o[0].Shard, "the one that nobody runs")
}

func TestRecovery_WaitsForMarginsThatHostsKnow(t *testing.T) {
	d := newDesk(t, nil)
	d.state("n1", nil)
	d.state("n2", func(a *message.Message) { a.Wait = 10 * time.Second })
	d.state("n3", nil)
	require.Empty(t, ordered(d.pass(9900*time.Millisecond)))
	require.NotEmpty(t, ordered(d.pass(200*time.Millisecond)))
}

func TestRecovery_AnUnreachableMemberHasToBeRemovedFirst(t *testing.T) {
	d := newDesk(t, nil)
	d.state("n1", nil)
	d.state("n2", nil)
	d.change(2, func(p *slot.Peer) { p.Unreachable = true })
	require.Empty(t, ordered(d.pass(time.Hour)))
	d.change(2, func(p *slot.Peer) { p.Down = true })
	require.Empty(t, ordered(d.pass(19*time.Second)))
	require.NotEmpty(t, ordered(d.pass(time.Second+100*time.Millisecond)))
}

func TestRecovery_AMemberWithoutManagerRunsNothing(t *testing.T) {
	d := newDesk(t, nil)
	d.state("n1", nil)
	d.state("n2", nil)
	d.step(slot.Answered[message.Message]{From: "n3",
		Message: message.Message{Kind: message.Report, Number: message.Number(4, 9)}, Unserved: true})
	require.Empty(t, ordered(d.pass(time.Second)), "it says so to an older coordinator")
	d.step(slot.Answered[message.Message]{From: "n3",
		Message: message.Message{Kind: message.Report, Number: message.Number(5, 1)}, Unserved: true})
	o := ordered(d.pass(100 * time.Millisecond))
	require.NotEmpty(t, o)
	for _, o := range o {
		require.NotEqual(t, message.KeyOf("n3"), o.To)
	}
}

// known is a desk at which n1 runs "a" and n2 runs "b".
func known(t *testing.T, change func(*coordinator.Config)) *desk {
	d := newDesk(t, change)
	d.state("n1", runs(0, 7))
	d.state("n2", runs(1, 8))
	d.state("n3", nil)
	d.pass(5 * time.Second)
	require.Equal(t, 2, d.m.Status().Count[coordinator.Running])
	return d
}

func TestReport_ThatWasOvertakenDoesNotCount(t *testing.T) {
	d := known(t, nil)
	d.state("n1", func(a *message.Message) { a.Seq = 1; a.Entries = nil })
	require.Equal(t, 2, d.m.Status().Count[coordinator.Running])
	d.step(slot.Asked[message.Message]{Ref: 1, From: "n1", Message: message.Message{Kind: message.State,
		Digest: deskDigest, Term: 5, Entries: []message.Entry{{Shard: 0, Seen: 7}}}})
	for _, e := range d.pass(0) {
		_, noted := e.(slot.Answer[message.Message])
		require.False(t, noted, "nor is it noted: it has to be told again")
	}
	d.state("n1", nil)
	require.NotEmpty(t, ordered(d.pass(100*time.Millisecond)))
}

func TestReport_ThatCrossedAnOrderDoesNotEndIt(t *testing.T) {
	d := newDesk(t, nil)
	report := func() {
		for _, id := range []sbr.ID{"n1", "n2", "n3"} {
			d.state(id, nil)
		}
	}
	report()
	first := ordered(d.pass(100 * time.Millisecond))
	require.Len(t, first, 2)
	report() // they may have the orders yet, or get them later
	again := ordered(d.pass(3 * time.Second))
	require.Greater(t, len(again), len(first), "again and again")
	for _, o := range again {
		require.Contains(t, first, o, "the same, and nothing else")
	}
}

func TestReport_OfTwoThatRunOne(t *testing.T) {
	d := known(t, nil)
	d.state("n3", runs(0, 9))
	e := d.pass(100 * time.Millisecond)
	require.Equal(t, 1, said(e, coordinator.TopicConflict))
	o := ordered(e)
	require.Len(t, o, 1)
	require.Equal(t, message.KeyOf("n1"), o[0].From, "the one with the older order stops")
	require.Equal(t, message.Nobody, o[0].To)
}

func TestUnserved_AfterANewerWordDoesNotCount(t *testing.T) {
	d := known(t, nil)
	d.state("n1", func(a *message.Message) { runs(0, 7)(a); a.Number = message.Number(5, 30) })
	d.step(slot.Answered[message.Message]{From: "n1",
		Message: message.Message{Kind: message.Report, Number: message.Number(5, 2)}, Unserved: true})
	require.Equal(t, 2, d.m.Status().Count[coordinator.Running])
}

func TestResign_WhenNumbersAreSpent(t *testing.T) {
	d := known(t, nil)
	d.m.Spend(3)
	d.change(0, func(p *slot.Peer) { p.Leaving = true })
	r := resigned(d.pass(time.Minute)) // the order is repeated
	require.NotNil(t, r)
	require.EqualValues(t, 5, r.Term)
	require.Empty(t, d.pass(time.Hour))
	_, due := d.m.NextDeadline()
	require.False(t, due)
}

func TestResign_WhenAHostFollowsAnother(t *testing.T) {
	d := known(t, nil)
	d.state("n2", func(a *message.Message) { a.Refused, a.Term = true, 9 })
	require.EqualValues(t, 9, resigned(d.pass(0)).Term)
}

func TestMember_WithAnotherList(t *testing.T) {
	d := newDesk(t, nil)
	d.state("n1", nil)
	d.state("n2", nil)
	d.state("n3", func(a *message.Message) { a.Digest, a.Busy = 1, true })
	e := d.pass(5 * time.Second)
	require.Empty(t, ordered(e), "it still runs something")
	require.Equal(t, 1, said(e, coordinator.TopicMember))
	require.Equal(t, []sbr.ID{"n3"}, d.m.Status().Strangers)
	d.state("n3", func(a *message.Message) { a.Digest = 1 })
	o := ordered(d.pass(100 * time.Millisecond))
	require.Len(t, o, 2)
	for _, o := range o {
		require.NotEqual(t, message.KeyOf("n3"), o.To)
	}
}

func TestMember_Silent(t *testing.T) {
	for name, c := range map[string]struct {
		lease bool
		start bool
	}{"without leases it is waited for": {false, false}, "with leases they decide": {true, true}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, func(cfg *coordinator.Config) { cfg.UseLease = c.lease })
			d.state("n1", nil)
			d.state("n2", nil)
			e := d.pass(18 * time.Second)
			require.Equal(t, 1, said(e, slot.TopicStuck))
			require.Equal(t, c.start, len(ordered(e)) > 0)
		})
	}
}

func TestMember_GoneWaitsForItsMargin(t *testing.T) {
	d := known(t, nil)
	d.view.Peers = d.view.Peers[:2]
	d.change(0, func(*slot.Peer) {})
	require.Empty(t, ordered(d.pass(time.Second)), "n3 has run nothing")
	d.view.Peers = d.view.Peers[:1]
	d.change(0, func(*slot.Peer) {})
	require.Empty(t, ordered(d.pass(19*time.Second)))
	require.Equal(t, 1, d.m.Status().Count[coordinator.Waiting])
	o := ordered(d.pass(time.Second + 100*time.Millisecond))
	require.Len(t, o, 1)
	require.Equal(t, message.Order{Shard: 1, To: message.KeyOf("n1"), Number: o[0].Number}, o[0])
}

func TestMember_BackUnderAMarginKeepsItsShards(t *testing.T) {
	d := known(t, nil)
	peers := d.view.Peers
	d.view.Peers = peers[:1]
	d.change(0, func(*slot.Peer) {})
	d.pass(10 * time.Second)
	d.view.Peers = peers
	d.change(0, func(*slot.Peer) {})
	require.Empty(t, ordered(d.pass(time.Minute)))
	require.Equal(t, 2, d.m.Status().Count[coordinator.Running])
}

// A manager that is opened again in the same incarnation knows nothing of what the one before was told.
func TestMember_ThatOffersAgainIsAskedFirst(t *testing.T) {
	d := known(t, nil)
	d.change(1, func(p *slot.Peer) { p.Candidate = false })
	d.pass(0)
	d.change(1, func(p *slot.Peer) { p.Candidate = true })
	require.Equal(t, []sbr.ID{"n2"}, reporters(d.pass(0)))
}

// A member that begins to offer gets shards soon, also where the network has lost what it was asked or what it
// said.
func TestMember_ThatOffersIsAskedAgainSoon(t *testing.T) {
	d := known(t, nil)
	d.change(2, func(p *slot.Peer) { p.Candidate = false })
	d.pass(time.Second)
	d.change(2, func(p *slot.Peer) { p.Candidate = true })
	require.Equal(t, []sbr.ID{"n3", "n3", "n3"}, reporters(d.pass(2*slot.DefaultRules().HandOverRetryInterval)))
}

func TestClone_SharesNothing(t *testing.T) {
	d := known(t, nil)
	// without the effects of the last step
	written := func(m *coordinator.Machine) string { return fmt.Sprintf("%+v", *m.Clone()) }
	before := written(d.m)
	c := d.m.Clone()
	require.Equal(t, before, written(c))
	c.Step(d.now, slot.Viewed{View: slot.View{}})
	require.Equal(t, before, written(d.m))
	require.NotEqual(t, before, written(c))
}

// shardsOf has the coordinator allocate so many shards, so many at once.
func shardsOf(t *testing.T, n, recoveries, moves int) func(*coordinator.Config) {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("s%04d", i)
	}
	limits := allocation.Config{LoadFactor: 1, MaxRecoveries: recoveries, MaxMoves: moves}
	alloc, err := allocation.New("orders", names, limits)
	require.NoError(t, err)
	return func(c *coordinator.Config) { c.Allocator = alloc }
}

// all has a member say in one page that it runs the shards from first up to next.
func all(first, next int) func(*message.Message) {
	return func(a *message.Message) {
		a.First, a.Next = first, next
		for s := first; s < next; s++ {
			n := message.Number(4, uint64(s+1))
			a.Entries = append(a.Entries, message.Entry{Shard: s, Phase: slot.Active, Number: n, Seen: n})
		}
	}
}

// carriedOut has members say that they run what they were ordered to.
func (d *desk) carriedOut(orders []message.Order) {
	for _, o := range orders {
		i := slices.IndexFunc(d.view.Peers, func(p slot.Peer) bool { return message.KeyOf(p.ID) == o.To })
		d.state(d.view.Peers[i].ID, func(a *message.Message) {
			a.Full = false
			a.Entries = []message.Entry{{Shard: o.Shard, Phase: slot.Active, Number: o.Number, Seen: o.Number}}
		})
	}
}

func TestOrders_NoMoreAtOnceThanAllowed(t *testing.T) {
	t.Run("of shards that nobody runs", func(t *testing.T) {
		d := newDesk(t, shardsOf(t, 50, 5, 1))
		for _, p := range d.view.Peers {
			d.state(p.ID, func(a *message.Message) { a.Next = 50 })
		}
		for range 10 {
			o := ordered(d.pass(100 * time.Millisecond))
			require.Len(t, o, 5)
			require.Equal(t, 5, d.m.Status().Count[coordinator.Moving])
			d.carriedOut(o)
		}
		require.Empty(t, ordered(d.pass(time.Second)))
		require.Equal(t, 50, d.m.Status().Count[coordinator.Running])
	})
	t.Run("of shards that run well", func(t *testing.T) {
		d := newDesk(t, shardsOf(t, 30, 5, 1))
		d.state("n1", func(a *message.Message) { all(0, 15)(a); a.Next = 30 })
		d.state("n2", func(a *message.Message) { all(15, 30)(a); a.First = 0 })
		d.state("n3", func(a *message.Message) { a.Next = 30 })
		moved := 0
		for o := ordered(d.pass(100 * time.Millisecond)); len(o) > 0; o = ordered(d.pass(100 * time.Millisecond)) {
			require.Len(t, o, 1)
			d.carriedOut(o)
			moved++
		}
		require.GreaterOrEqual(t, moved, 10)
		require.Equal(t, 30, d.m.Status().Count[coordinator.Running])
	})
}

func TestReport_InPages(t *testing.T) {
	d := newDesk(t, shardsOf(t, message.MaxShards, 1, 1))
	d.state("n2", func(a *message.Message) { a.Next = message.MaxShards })
	d.state("n3", func(a *message.Message) { a.Next = message.MaxShards })
	d.pass(0)
	for first := 0; first < message.MaxShards; first += 64 {
		require.False(t, d.m.Status().Recovered)
		d.state("n1", all(first, first+64))
		for _, e := range d.pass(0) {
			if q, ok := e.(slot.Ask[message.Message]); ok && q.Message.Kind == message.Report {
				require.Equal(t, sbr.ID("n1"), q.To)
				require.Equal(t, first+64, q.Message.First, "the next page")
			}
		}
	}
	d.pass(100 * time.Millisecond)
	require.True(t, d.m.Status().Recovered)
	count := d.m.Status().Count
	require.Equal(t, message.MaxShards, count[coordinator.Running]+count[coordinator.Moving])
}

package leasetest

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/linear"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// The times of the leases in these tests: short, because the clock is moved in steps that leave a real
// backend time to answer.
var (
	timed = lease.Settings{
		HeartbeatTimeout: 12 * time.Second, HeartbeatInterval: 2 * time.Second, OperationTimeout: 4 * time.Second,
	}
	ttl = timed.HeartbeatTimeout
)

const tick = 50 * time.Millisecond

var timedTests = []namedTest{
	{"a crashed holder expires by observation", func(t *testing.T, b *bench) {
		a, clock := b.lease("a", NewClock()), NewClock()
		b.granted(a, verdict(0, "a", "a", "b"))
		a.Close()
		o := b.lease("b", clock)
		out := linear.AnswerOf(o.Acquire(t.Context(), lease.Proposal{}))
		require.Equal(t, sbr.Held, out.Kind, "%v", out)
		require.Equal(t, ttl, out.RetryAfter)
		clock.Advance(ttl - time.Millisecond)
		require.Equal(t, "a", b.held(o, lease.Proposal{}).Holder)
		clock.Advance(time.Millisecond)
		r := b.granted(o, lease.Proposal{})
		require.EqualValues(t, 2, r.Token)
		require.EqualValues(t, 1, r.Verdict.Token)
	}},
	{"a heartbeat is one write", func(t *testing.T, b *bench) {
		clock, faulty := NewClock(), NewFaulty(b.open("a"))
		a := b.leaseOver(faulty, "a", clock)
		seen := b.follow(a)
		b.granted(a, lease.Proposal{})
		const beats = 6
		for range beats {
			before := seen().Renewed
			b.eventually(func() bool {
				if !faulty.busy() { // a standstill of the machine would take the lease from its holder
					clock.Advance(tick)
				}
				return seen().Renewed.After(before)
			}, "time alone does not help")
		}
		passed := clock.Now().Sub(NewClock().Now())
		most := 2 + int(passed/timed.HeartbeatInterval)
		require.LessOrEqual(t, faulty.Counters().Writes, most,
			"in %v: does a watch report other times than were written?", passed)
	}},
}

// What many clients of one lease see must be explained by one lease, one after the other in an order that
// respects real time. No test that looks at one answer after another shows that.
var historyTests = []namedTest{
	{"what many clients see is one lease", func(t *testing.T, b *bench) { b.history(0, nil) }},
	{"what many clients see through a bad connection is one lease", func(t *testing.T, b *bench) { b.history(0.2, nil) }},
	{"a failover forgets nothing that was answered", func(t *testing.T, b *bench) {
		if b.Failover == nil {
			t.Skip("the harness cannot fail over")
		}
		b.history(0, b.Failover)
	}},
}

const (
	historyClients, historySteps = 6, 10
	historyPause                 = 20 * time.Millisecond
	// historySearch bounds the search for an explanation. To run into it is a failure.
	historySearch = time.Minute
)

// history plays clients over the backend. With the chance p a request is broken: its answer is lost, it
// conflicts without a cause, or it is not sent. failover is called in the middle.
func (b *bench) history(p float64, failover func(testing.TB)) {
	b.t.Helper()
	// No holder expires: a backend that needs its time for a failover is no reason to be replaced.
	settings := lease.Settings{HeartbeatTimeout: time.Hour, HeartbeatInterval: time.Second,
		OperationTimeout: 4 * time.Second}
	h := linear.New(linear.Options{})
	var all sync.WaitGroup
	halfway := make(chan struct{}, historyClients)
	for i := range historyClients {
		connection := NewFaulty(b.open("client-" + strconv.Itoa(i)))
		client, err := h.Open(i, 0, connection, settings, lease.Options{})
		require.NoError(b.t, err)
		b.t.Cleanup(client.Close)
		random := rand.New(rand.NewPCG(1, uint64(i)))
		all.Go(func() {
			step := 0
			client.Play(b.t.Context(), random, historySteps, settings.OperationTimeout, func() {
				if step++; step == historySteps/2 {
					halfway <- struct{}{}
				}
				if connection.Heal(); random.Float64() < p {
					faults := []Fault{BreakResponse, Conflict, Refuse, Unavailable}
					connection.Inject(Writes, faults[random.IntN(len(faults))], 1)
				}
				time.Sleep(time.Duration(random.Int64N(int64(historyPause))))
			})
		})
	}
	if failover != nil {
		<-halfway
		failover(b.t)
	}
	all.Wait()
	last, err := h.Open(historyClients, 0, b.open("last"), settings, lease.Options{})
	require.NoError(b.t, err)
	b.t.Cleanup(last.Close)
	b.eventually(func() bool { _, err := last.Read(b.t.Context()); return err == nil },
		"the store does not come back")
	require.NoError(b.t, h.Check(historySearch, linear.Artifacts(b.t)))
}

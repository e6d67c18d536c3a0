package leasetest

import (
	"math/rand/v2"
	"slices"
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
		require.LessOrEqual(t, faulty.Counters().Writes, most, "in %v: does a watch report other times than were written?", passed)
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
	settings := lease.Settings{HeartbeatTimeout: time.Hour, HeartbeatInterval: time.Second, OperationTimeout: 4 * time.Second}
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
	b.eventually(func() bool { _, err := last.Read(b.t.Context()); return err == nil }, "the store does not come back")
	require.NoError(b.t, h.Check(historySearch, linear.Artifacts(b.t)))
}

var _ lease.Clock = (*Clock)(nil)

// Clock is a clock that stops until Advance moves it. It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*clockTimer
}

type clockTimer struct {
	at    time.Time
	fired chan time.Time
}

// NewClock returns a clock that shows a fixed time.
func NewClock() *Clock { return &Clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now implements lease.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// NewTimer implements lease.Clock.
func (c *Clock) NewTimer(d time.Duration) (<-chan time.Time, func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &clockTimer{at: c.now.Add(d), fired: make(chan time.Time, 1)}
	if d <= 0 {
		t.fired <- c.now
		return t.fired, func() bool { return false }
	}
	c.timers = append(c.timers, t)
	return t.fired, func() bool { return c.remove(t) }
}

func (c *Clock) remove(t *clockTimer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.timers, t)
	if i >= 0 {
		c.timers = slices.Delete(c.timers, i, i+1)
	}
	return i >= 0
}

// Advance moves the clock on by d and fires what is due, earliest first. Goroutines that waited run on their
// own afterwards.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	slices.SortStableFunc(c.timers, func(a, b *clockTimer) int { return a.at.Compare(b.at) })
	for len(c.timers) > 0 && !c.timers[0].at.After(c.now) {
		c.timers[0].fired <- c.now
		c.timers = c.timers[1:]
	}
}

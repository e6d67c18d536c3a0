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
)

// What many clients of one lease see must be explained by one lease, one after the other in an order that respects real time. No test
// that looks at one answer after another shows that.
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

// history plays clients over the backend. With the chance p a request is broken: its answer is lost, it conflicts without a cause, or it
// is not sent. failover is called in the middle.
func (b *bench) history(p float64, failover func(testing.TB)) {
	b.t.Helper()
	// Nobody expires: a backend that needs its time for a failover is no reason to be replaced.
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

package downing

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/memnet"
	"github.com/serf-sbr/serf-sbr/downing/memnet/serfnet"
	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// pair starts two nodes in virtual time; the first is slow to send anything.
func pair(t *testing.T, f func(t *testing.T, a, b *serf.Serf)) {
	synctest.Test(t, func(t *testing.T) {
		nodes, err := serfnet.StartAll(memnet.New(memnet.Config{}), func(name string, c *serf.Config) {
			if name == "a" {
				c.MemberlistConfig.GossipInterval = 3 * time.Second
			}
		}, "a", "b")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		f(t, nodes[0], nodes[1])
		require.NoError(t, serfnet.ShutdownAll(nodes...))
		time.Sleep(2 * time.Minute)
	})
}

// An application that leaves by itself when its member goes down meets no Shutdown in the middle of its
// Leave: Serf would panic, and in the application's goroutine.
func TestGoAway_WaitsForTheApplicationsLeave(t *testing.T) {
	pair(t, func(t *testing.T, a, _ *serf.Serf) {
		left := make(chan error, 1)
		go func() { left <- a.Leave() }()
		synctest.Wait()
		require.Equal(t, serf.SerfLeaving, a.State())
		newNode(a).goAway(time.Now().Add(15 * time.Second))
		require.Equal(t, serf.SerfShutdown, a.State())
		require.NoError(t, <-left)
	})
}

// The other way round, the application's Shutdown overtakes our Leave: the panic stays with us.
func TestGoAway_OvertakenByAShutdown(t *testing.T) {
	pair(t, func(t *testing.T, a, _ *serf.Serf) {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			newNode(a).goAway(time.Now().Add(15 * time.Second))
		}()
		synctest.Wait()
		require.NoError(t, a.Shutdown())
		<-gone
	})
}

// A deadline that is too short for a Leave still shuts Serf down.
func TestGoAway_Deadline(t *testing.T) {
	pair(t, func(t *testing.T, a, _ *serf.Serf) {
		began := time.Now()
		newNode(a).goAway(began.Add(time.Second))
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, serf.SerfShutdown, a.State())
	})
}

// A Leave can be told from a Shutdown also when it is over.
func TestNode_Leaving(t *testing.T) {
	pair(t, func(t *testing.T, a, b *serf.Serf) {
		x, y := newNode(a), newNode(b)
		require.False(t, x.leaving("a"))
		left := make(chan error, 1)
		go func() { left <- a.Leave() }()
		synctest.Wait()
		require.True(t, x.leaving("a"))
		require.NoError(t, <-left)
		require.True(t, x.leaving("a"))
		require.NoError(t, a.Shutdown())
		require.True(t, x.leaving("a"))
		require.NoError(t, b.Shutdown())
		require.False(t, y.leaving("b"), "it never left")
	})
}

// Only what Serf calls failed at this moment is removed, and only the incarnation that was meant.
func TestNode_RemovesOnlyTheFailed(t *testing.T) {
	pair(t, func(t *testing.T, a, b *serf.Serf) {
		x := newNode(a)
		for _, id := range []sbr.ID{"?a", "?b", "?c", "b#u"} {
			removed, err := x.remove(id)
			require.NoError(t, err)
			require.False(t, removed, id)
		}
		require.NoError(t, b.Shutdown())
		time.Sleep(time.Minute)
		removed, err := x.remove("b#u")
		require.NoError(t, err)
		require.False(t, removed, "another incarnation")
		removed, err = x.remove("?b")
		require.NoError(t, err)
		require.True(t, removed)
	})
}

// Serf gives two queries that are made at the same moment one number and loses the answers to one of them.
// Ours wait for each other.
func TestNode_QueriesAtTheSameMoment(t *testing.T) {
	ch := make(chan serf.Event, 4096)
	nodes, err := serfnet.StartAll(memnet.New(memnet.Config{}),
		func(_ string, c *serf.Config) { c.EventCh = ch }, "a")
	require.NoError(t, err)
	defer func() { require.NoError(t, serfnet.ShutdownAll(nodes...)) }()
	go func() {
		for e := range ch {
			if q, ok := e.(*serf.Query); ok {
				_ = q.Respond([]byte("yes"))
			}
		}
	}()
	n := newNode(nodes[0])
	const queries = 64
	answered := make(chan int, queries)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range queries {
		all.Go(func() {
			<-begin
			answers, err := n.query(wire.MessageQuery, []byte(wire.MessageQuery), 300*time.Millisecond)
			if err != nil {
				return
			}
			got := 0
			for range answers {
				got++
			}
			answered <- got
		})
	}
	close(begin)
	all.Wait()
	close(answered)
	total := 0
	for got := range answered {
		total += got
	}
	require.Equal(t, queries, total)
}

// Tags that Serf has dropped are set again; a change that is listed is made, whichever members have received
// it.
func TestInsist(t *testing.T) {
	dropped := errors.New("timeout waiting for update broadcast")
	for _, tc := range []struct {
		name       string
		works      int // the try that is listed; 0: none
		told       bool
		tries      int
		wantsError bool
	}{
		{"at once", 1, true, 1, false},
		{"listed, and nobody has confirmed it", 1, false, 1, false},
		{"dropped twice", 3, true, 3, false},
		{"dropped always", 0, false, maxTagTries, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tries := 0
			err := insist(func() error {
				if tries++; tries == tc.works && tc.told {
					return nil
				}
				return dropped
			}, func() bool { return tc.works > 0 && tries >= tc.works })
			require.Equal(t, tc.tries, tries)
			if tc.wantsError {
				require.ErrorIs(t, err, dropped)
			} else {
				require.NoError(t, err)
			}
		})
	}
	require.NoError(t, insist(nil, func() bool { return true }), "there is nothing to do")
}

// A paused process notices the pause, wherever it was, and a process that merely slept or worked does not.
func TestPauses(t *testing.T) {
	const limit = 2 * time.Second
	for _, tc := range []struct {
		name                  string
		work, planned, waited time.Duration
		gap                   time.Duration
	}{
		{name: "it slept as long as planned", planned: time.Second, waited: time.Second},
		{name: "a long sleep that was planned", planned: time.Hour, waited: time.Hour},
		{name: "woken early", planned: time.Hour, waited: time.Second},
		{name: "it overslept a little", planned: time.Second, waited: time.Second + limit - 1},
		{name: "it overslept", planned: time.Second, waited: time.Second + limit, gap: limit},
		{name: "it overslept for long", planned: 0, waited: 10 * time.Minute, gap: 10 * time.Minute},
		{name: "it worked a little", work: limit - 1, planned: time.Second, waited: time.Second},
		{name: "it stood still while it worked", work: time.Minute, planned: time.Second, waited: time.Second, gap: time.Minute},
		{name: "both: the longer one", work: 5 * time.Second, planned: 0, waited: time.Minute, gap: time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPauses(limit)
				time.Sleep(tc.work)
				p.waiting(tc.planned)
				time.Sleep(tc.waited)
				require.Equal(t, tc.gap, p.woke())
				p.waiting(time.Second)
				time.Sleep(time.Second)
				require.Zero(t, p.woke(), "a pause is reported once")
			})
		})
	}
}

package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sharding"
)

// service is members in this process, and the clients of those that are not about to stop.
type service struct {
	t       *testing.T
	lease   string
	mu      sync.Mutex
	members []*member // what a load balancer would send requests to
	next    int
	sent    atomic.Uint64
	failed  []string
}

func (s *service) start(name string) *member {
	o := options{name: name, bind: "127.0.0.1:0", front: "127.0.0.1:0", back: "127.0.0.1:0", lease: s.lease,
		stableAfter: 2 * time.Second, linger: time.Second}
	for _, m := range s.members {
		local := m.node.LocalMember()
		o.join = append(o.join, fmt.Sprintf("%s:%d", local.Addr, local.Port))
	}
	m, err := start(s.t.Context(), o)
	require.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = append(s.members, m)
	return m
}

// remove takes the member that was started first out of those that get requests.
func (s *service) remove() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[0]
	s.members = s.members[1:]
	return m
}

// settled waits until every member knows of all shards that they run.
func (s *service) settled(of func(owners map[string]int) bool) {
	require.Eventually(s.t, func() bool {
		for _, m := range s.members {
			on := make(map[string]int)
			for _, o := range m.shards.Owners() {
				if o.State != sharding.Running {
					return false
				}
				on[o.Name]++
			}
			if len(on) != len(s.members) || !of(on) {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond)
}

// request counts one, wherever.
func (s *service) request(client *http.Client) {
	n := s.sent.Add(1)
	s.mu.Lock()
	s.next++
	front := s.members[s.next%len(s.members)].options.front
	s.mu.Unlock()
	resp, err := client.Post(fmt.Sprintf("http://%s/count/key-%d", front, n), "", nil)
	problem := ""
	if err != nil {
		problem = err.Error()
	} else {
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || err != nil {
			problem = fmt.Sprint(resp.Status, string(body), err)
		}
	}
	if problem != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = append(s.failed, fmt.Sprintf("%d: %s", n, problem))
	}
}

// load sends 200 requests a second until stop is called, which waits for the last answer.
func (s *service) load() (stop func()) {
	const clients, each = 8, 40 * time.Millisecond
	done := make(chan struct{})
	var work sync.WaitGroup
	for range clients {
		client := &http.Client{Transport: new(http.Transport)}
		work.Go(func() {
			defer client.CloseIdleConnections()
			tick := time.NewTicker(each)
			defer tick.Stop()
			for {
				select {
				case <-done:
					return
				case <-tick.C:
					s.request(client)
				}
			}
		})
	}
	return func() { close(done); work.Wait() }
}

// counted is the sum of all counters.
func (s *service) counted() (sum uint64) {
	for _, m := range s.members {
		m.counters.mu.Lock()
		for _, c := range m.counters.open {
			sum += c.n
		}
		m.counters.mu.Unlock()
	}
	return sum
}

// A member is stopped and a new one added while clients send 200 requests a second: every one is answered,
// and counted once.
func TestPlannedChange_NoRequestIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds of real time: left out by -short")
	}
	slog.SetDefault(clustertest.Logger("all"))
	s := &service{t: t, lease: filepath.Join(t.TempDir(), "counters.lease")}
	for _, name := range []string{"n1", "n2", "n3"} {
		s.start(name)
	}
	evenly := func(on map[string]int) bool { return on["n3"] >= shards/5 }
	s.settled(evenly)
	stop := s.load()

	oldest := s.remove() // it is the coordinator's member, too
	require.NoError(t, oldest.stop(t.Context()))
	s.settled(func(map[string]int) bool { return true })
	s.start("n4")
	s.settled(func(on map[string]int) bool { return on["n4"] >= shards/5 })

	stop()
	require.Empty(t, s.failed[:min(3, len(s.failed))])
	require.Equal(t, s.sent.Load(), s.counted())
	t.Logf("%d requests, none lost", s.sent.Load())

	var stops sync.WaitGroup // all at once
	for _, m := range s.members {
		stops.Go(func() { assert.NoError(t, m.stop(t.Context()), m.name) })
	}
	stops.Wait()
	for _, m := range s.members {
		require.Empty(t, m.counters.open)
	}
}

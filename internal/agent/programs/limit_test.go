package programs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/agent/programs"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// An agent takes a bounded number of programs, says so, and takes another one once there is room.
func TestLimit_OfPrograms(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		a := c.agents["n1"]
		for i := range programs.MaxPrograms {
			x := a.post(nil, hello(fmt.Sprintf("job-%d", i), "client", 4711))
			defer x.close()
			require.Equal(t, http.StatusOK, x.resp.StatusCode, "program %d", i)
		}
		x := a.post(nil, hello("one-more", "client", 4711))
		status, text := x.refused()
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, fmt.Sprintf("%d programs are attached to this agent: no more are",
			programs.MaxPrograms))
	})
}

// arming is a member that is not armed before it is told to be.
type arming struct {
	singleton.Cluster

	mu     sync.Mutex
	armed  bool
	follow func()
}

func (a *arming) Peers() downing.Peers {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.Cluster.Peers()
	if !a.armed {
		p.State = sbr.StateArming
	}
	return p
}

func (a *arming) Follow(f func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.follow = f
	return a.Cluster.Follow(f)
}

func (a *arming) arm() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.armed = true
	a.follow()
}

// A member that takes no part yet is no candidate: others would wait for it. Its program waits in its place.
func TestLimit_ByArming(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		cluster := &arming{Cluster: c.Member("n1").Provider}
		c.Eventually(time.Minute, "it is not armed",
			func() bool { return cluster.Cluster.Peers().State == sbr.StateUp })
		candidate := func() bool {
			p := cluster.Peers()
			return len(p.Find(p.Self).Serves) > 0
		}
		a := c.agentOf("arming", cluster, nil)

		x := a.post(nil, hello("backup", "client", 4711))
		status, text := x.refused()
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, text, "it is arming")
		require.Equal(t, "1", x.resp.Header.Get("Retry-After"))
		require.False(t, candidate())

		time.AfterFunc(3*time.Second, cluster.arm)
		began := time.Now()
		x = a.post(nil, hello("backup", "client", 4711))
		defer x.close()
		require.Equal(t, http.StatusOK, x.resp.StatusCode)
		require.InDelta(t, 3, time.Since(began).Seconds(), 0.5, "as soon as it is armed")
		c.Eventually(time.Second, "it is no candidate", candidate) // the run has begun before the tags are set
	})
}

// tagged is a member whose tags take their time.
type tagged struct {
	singleton.Cluster
	err error
}

const tagging = 3 * time.Second

func (s *tagged) Offer(ctx context.Context, topic string, on bool) error {
	if !on {
		return s.Cluster.Offer(ctx, topic, on)
	}
	time.Sleep(tagging)
	if s.err != nil {
		return s.err
	}
	return s.Cluster.Offer(ctx, topic, on)
}

// Follow tells of a change elsewhere meanwhile.
func (s *tagged) Follow(f func()) (stop func()) {
	time.AfterFunc(tagging/10, f)
	return s.Cluster.Follow(f)
}

// A run waits for its program, so that one does not wait for the tags. Where they cannot be set after all it
// ends again.
func TestLimit_BySlowTags(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		member := &tagged{Cluster: c.Member("n1").Provider}
		c.Eventually(time.Minute, "it is not armed", func() bool { return member.Peers().State == sbr.StateUp })
		c.agentOf("slow", member, nil)
		p := c.attach("slow", nil)
		c.runs(p, tagging/2)
		time.Sleep(time.Minute)
		require.True(t, p.running())
		require.Equal(t, 1, p.count())
		p.end()

		member.err = errors.New("no room")
		p = c.attach("slow", nil)
		c.runs(p, tagging/2)
		// it attaches again at once
		c.Eventually(2*tagging, "the first run goes on", func() bool { return p.count() > 1 || !p.running() })
	})
}

// Long names fill the node's tags before that, and the program is told what to do about it.
func TestLimit_OfNames(t *testing.T) {
	with(t, 1, clustertest.Options{}, nil, func(t *testing.T, c *crew) {
		a := c.agents["n1"]
		for i := range programs.MaxPrograms {
			x := a.post(nil, hello(fmt.Sprintf("%s-%d", strings.Repeat("long", 10), i), "client", 4711))
			defer x.close()
			if x.resp.StatusCode == http.StatusOK {
				continue
			}
			status, text := x.refused()
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.Contains(t, text, "offer fewer or shorter topics")
			require.Greater(t, i, 5)
			return
		}
		require.Fail(t, "there was room for all")
	})
}

// A removal margin that leaves little more time than that between two answers of the agent leaves none for a
// notice: the program goes on.
func TestLimit_ByAShortMargin(t *testing.T) {
	with(t, 1, clustertest.Options{}, func(_ string, c *singleton.Config) { c.RemovalMargin = 2 * time.Second },
		func(t *testing.T, c *crew) {
			p := c.starts("n1")
			time.Sleep(time.Minute)
			require.True(t, p.running())
			require.Equal(t, 1, p.count())
		})
}

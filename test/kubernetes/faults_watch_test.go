package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// runWatch breaks the stream and strikes its next opening, and then lets B bring news.
func (c *cell) runWatch() {
	c.free()
	c.takes(c.b)
	seen := c.follow(func(ctx context.Context, s *sightings) error { return c.a.Watch(ctx, s.add) })
	c.within(faultSlack, "the watch", func() bool { return seen.last() == "B 2" })
	c.begin()
	c.breakStream()
	c.struck()
	c.judged()
	news := c.news()
	outcome := "catches up"
	if c.fault.stays && !c.catchesUp(seen, news, 6*time.Second) {
		outcome = "blind until healed"
	}
	c.heal()
	require.True(c, c.catchesUp(seen, news, 2*faultSlack), "the watch ends on %q, the object says %q", seen.last(), news)
	require.Empty(c, seen.problem())
	require.False(c, c.a.Check())
	c.got = result{outcome, c.object()}
	c.settle(news)
	last := c.b.Token()
	c.gives(c.b)
	require.True(c, c.catchesUp(seen, fmt.Sprintf("free %d", last), faultSlack), "the watch goes on")
	c.takes(c.a)
	require.Greater(c, c.a.Token(), last)
}

func (c *cell) catchesUp(seen *sightings, news string, bound time.Duration) bool {
	for end := time.Now().Add(bound); time.Now().Before(end) && c.ctx.Err() == nil; c.pause(20 * time.Millisecond) {
		if seen.last() == news {
			return true
		}
	}
	return false
}

// news is a change of the object that A did not make.
func (c *cell) news() string {
	_ = c.b.Release(c.ctx) // whatever became of the object
	c.takes(c.b)
	return c.object()
}

// breakStream takes down the connection that the stream shares with a read.
func (c *cell) breakStream() {
	var poked atomic.Bool
	c.proxy.SetFault(func(r *http.Request) kubetest.Fault {
		if kubetest.Verb(r) == http.MethodGet && !poked.Swap(true) {
			return kubetest.Fault{Kind: kubetest.FaultDropRequest, Cut: c.fault.cut}
		}
		return c.hook(r)
	})
	_, err := c.behind.Read(c.ctx)
	require.Error(c, err)
}

// sightings is what a watch brought.
type sightings struct {
	mu      sync.Mutex
	records []lease.Record
}

// follow collects what a watch brings until the end of the cell.
func (c *cell) follow(watch func(context.Context, *sightings) error) *sightings {
	s := &sightings{}
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan error, 1)
	go func() { done <- watch(ctx, s) }()
	c.cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			c.Errorf("a watch ended: %v", err)
		}
	})
	return s
}

func (s *sightings) all() []lease.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

func (s *sightings) add(r lease.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, r)
}

// attempt reports whether the object has ever shown a holder with this nonce, and then, under the same nonce, none.
func (s *sightings) attempt(nonce string) (won, freed bool) {
	for _, r := range s.all() {
		won = won || r.Nonce == nonce && r.Holder != ""
		freed = freed || won && r.Nonce == nonce && r.Holder == ""
	}
	return won, freed
}

func (s *sightings) last() string {
	all := s.all()
	if len(all) == 0 {
		return ""
	}
	return describe(lease.Snapshot{Record: all[len(all)-1], Version: "seen"})
}

// problem: a watch may skip states but never goes backwards.
func (s *sightings) problem() string {
	all := s.all()
	for i := range all[1:] {
		if all[i+1].Token < all[i].Token {
			return fmt.Sprintf("the watch went from token %d back to %d", all[i].Token, all[i+1].Token)
		}
	}
	return ""
}

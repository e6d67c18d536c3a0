package kubernetes_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/serf-sbr/serf-sbr/test/faults"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// runWatch breaks the stream and strikes its next opening, and then lets B bring news.
func (c *cell) runWatch() {
	c.free()
	c.takes(c.b)
	seen := faults.Follow(c.ctx, c.T, func(ctx context.Context, s *faults.Sightings) error { return c.a.Watch(ctx, s.Add) })
	c.within(faultSlack, "the watch", func() bool { return seen.Last() == "B 2" })
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
	require.True(c, c.catchesUp(seen, news, 2*faultSlack), "the watch ends on %q, the object says %q", seen.Last(), news)
	require.Empty(c, seen.Problem())
	require.False(c, c.a.Check())
	c.got = result{outcome, c.object()}
	c.settle(news)
	last := c.b.Token()
	c.gives(c.b)
	require.True(c, c.catchesUp(seen, fmt.Sprintf("free %d", last), faultSlack), "the watch goes on")
	c.takes(c.a)
	require.Greater(c, c.a.Token(), last)
}

func (c *cell) catchesUp(seen *faults.Sightings, news string, bound time.Duration) bool {
	for end := time.Now().Add(bound); time.Now().Before(end) && c.ctx.Err() == nil; c.pause(20 * time.Millisecond) {
		if seen.Last() == news {
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

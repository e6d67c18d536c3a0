package downing_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// exits notes with which status members end.
type exits struct {
	mu sync.Mutex
	of map[string]int
}

func (x *exits) config(next func(string, *downing.Config)) func(string, *downing.Config) {
	x.of = make(map[string]int)
	return func(name string, c *downing.Config) {
		next(name, c)
		c.Exit = func(status int) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.of[name] = status
		}
	}
}

func (x *exits) all() map[string]int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.of)
}

func noLease(_ string, c *downing.Config) { c.Strategy = "keep-majority" }

// down asks a member to down another one.
func (c *cluster) down(by, name string) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	return c.provider(by).Down(ctx, name, "its disk is broken")
}

// requireDowned waits until a member is down for good, and the others go on without it.
func (c *cluster) requireDowned(x *exits, name string, left int) {
	c.t.Helper()
	c.Whole(left)
	c.Eventually(time.Minute, "it does not end", func() bool { return len(x.all()) > 0 })
	require.Equal(c.t, map[string]int{name: downing.ExitDowned}, x.all())
	require.Contains(c.t, c.provider(name).Reason(), "an operator downs "+name+": its disk is broken")
	require.Len(c.t, c.Up(), left)
	for _, m := range c.Members() {
		require.False(c.t, m.Name != name && len(m.Provider.Status().Unreachable) > 0, m.Name)
	}
}

// A member that can be reached is told the verdict or the order, goes down with status 70, leaves its
// cluster, and is removed.
func TestDown_Reachable(t *testing.T) {
	for name, c := range map[string]struct {
		config     func(string, *downing.Config)
		by, member string
		token      uint64
	}{
		"by a verdict":                    {clustertest.MajorityFirst, "n2", "n4", 1},
		"the first member, by a verdict":  {clustertest.MajorityFirst, "n4", "n1", 1},
		"by a verdict that nobody sees":   {unwatched, "n2", "n4", 1},
		"by an order":                     {noLease, "n1", "n4", 0},
		"the first member, by the second": {noLease, "n2", "n1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var x exits
			formed(t, 4, x.config(c.config), func(t *testing.T, k *cluster) {
				require.NoError(t, k.down(c.by, c.member))
				require.Equal(t, c.token, k.provider(c.by).Status().Verdict.Token, "whoever looks next sees the verdict")
				k.requireDowned(&x, c.member, 3)
				require.Equal(t, serf.SerfShutdown, k.Member(c.member).Serf.State())
				require.ErrorContains(t, k.down(c.by, c.member), c.member+" is no member here")
				k.Start(c.member) // a new incarnation is welcome
				k.Whole(4)
			})
		})
	}
}

func unwatched(name string, c *downing.Config) {
	clustertest.MajorityFirst(name, c)
	c.Resolver.Watched = false
}

// Beside a stock agent it is the same: the agent leaves, and sbr agent ends.
func TestDown_Beside(t *testing.T) {
	var x exits
	beside(t, 3, x.config(clustertest.MajorityFirst), func(t *testing.T, b *besides) {
		require.NoError(t, b.down("n1", "n3"))
		b.requireDowned(&x, "n3", 2)
		require.Equal(t, serf.SerfShutdown, b.agents["n3"].node.State())
	})
}

// The one member that cannot be reached is decided about at once. That is safe on both sides of a cut: the
// lease has one verdict.
func TestDown_Unreachable(t *testing.T) {
	var x exits
	formed(t, 3, x.config(clustertest.MajorityFirst), func(t *testing.T, c *cluster) {
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		c.Eventually(2*time.Minute, "the cut is not seen",
			func() bool { return len(c.provider("n2").Status().Unreachable) == 1 })
		require.NoError(t, c.down("n2", string(c.provider("n3").Peers().Self)), "by its incarnation")
		c.requireDowned(&x, "n3", 2)
	})
}

// Two members that down each other at the same time: the lease takes one word.
func TestDown_EachOther(t *testing.T) {
	var x exits
	formed(t, 2, x.config(clustertest.MajorityFirst), func(t *testing.T, c *cluster) {
		words := make(chan error, 2)
		go func() { words <- c.down("n1", "n2") }()
		go func() { words <- c.down("n2", "n1") }()
		first, second := <-words, <-words
		require.NotEqual(t, first == nil, second == nil, "%v, %v", first, second)
		c.Eventually(time.Minute, "nobody ends", func() bool { return len(x.all()) > 0 })
		time.Sleep(time.Minute)
		require.Len(t, c.Up(), 1)
	})
}

// What cannot be decided is refused with a sentence, and nobody goes down.
func TestDown_Refused(t *testing.T) {
	formed(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		plain := c.Node("plain", nil)
		require.NoError(t, c.Join(plain, "n1"))
		c.Eventually(time.Minute, "the plain node is not seen",
			func() bool { return len(c.provider("n1").Status().Untagged) == 1 })
		refused := func(by, name, why string) {
			t.Helper()
			err := c.down(by, name)
			require.ErrorIs(t, err, downing.ErrDownRefused)
			require.ErrorContains(t, err, why)
		}
		refused("n1", "n1", "a member does not down itself: stop it")
		refused("n1", "n9", "n9 is no member here")
		refused("n1", "plain", "plain runs no resolver, so no verdict reaches it: end it where it runs")
		err := c.provider("n1").Down(t.Context(), "n2", strings.Repeat("x", 201))
		require.ErrorContains(t, err, "the reason has 201 bytes: at most 200")
		require.ErrorContains(t, c.provider("n1").Down(t.Context(), "n2", "two\nlines"), "one line of text")
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "plain"}, []string{"n3"}))
		c.Eventually(2*time.Minute, "the cut is not seen",
			func() bool { return len(c.provider("n1").Status().Unreachable) == 1 })
		refused("n1", "n2", "nothing is decided yet about n3, which cannot be reached: wait for the resolver")
		c.requireOneSide([][]string{{"n1", "n2"}}, 5*time.Minute)
	})
	formed(t, 3, noLease, func(t *testing.T, c *cluster) {
		err := c.down("n2", "n3")
		require.ErrorIs(t, err, downing.ErrDownRefused)
		require.ErrorContains(t, err, "without a lease only n1 can order that")
		require.Len(t, c.Up(), 3)
	})
}

// While the lease store is silent nothing is known, and nobody goes down for that: the cluster is whole.
func TestDown_StoreSilent(t *testing.T) {
	formed(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		for _, m := range c.Members() {
			m.Store.SetUnavailable(true)
		}
		err := c.down("n1", "n3")
		require.NotErrorIs(t, err, downing.ErrDownRefused)
		require.ErrorContains(t, err,
			"downing: it is not known whether n3 is downed: the lease store gave no answer within 15s")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = c.provider("n1").Down(ctx, "n3", "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "it is not known whether n3 is downed")
		require.ErrorContains(t, c.down("n1", "n2"), "an earlier request is not decided yet")
		time.Sleep(time.Minute)
		require.Len(t, c.Up(), 3)
		for _, m := range c.Members() {
			m.Store.SetUnavailable(false)
			require.Equal(t, sbr.StateUp, m.Provider.Status().State)
		}
		require.NoError(t, c.down("n1", "n3"))
	})
}

// A provider that watches nothing, or nothing any more, refuses.
func TestDown_NotRunning(t *testing.T) {
	none := downing.DefaultConfig()
	none.System, none.Provider = "payments", downing.NoDowning
	p, err := downing.New(none)
	require.NoError(t, err)
	require.ErrorIs(t, p.Down(t.Context(), "n2", ""), downing.ErrDownRefused)
	formed(t, 2, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		require.ErrorContains(t, c.NewMember("n0").Provider.Down(t.Context(), "n2", ""),
			"this member has not started")
		require.NoError(t, c.Member("n2").Stop())
		require.ErrorContains(t, c.down("n2", "n1"), "the resolver of this member has ended")
	})
}

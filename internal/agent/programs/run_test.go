package programs_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/internal/slot/drive"
	"github.com/serf-sbr/serf-sbr/lease/leasetest"
	"github.com/serf-sbr/serf-sbr/singleton"
)

// eachWay runs a test with a lease for the singleton, and without.
func eachWay(t *testing.T, n int, o clustertest.Options, test func(t *testing.T, c *crew)) {
	t.Run("without a lease", func(t *testing.T) { with(t, n, o, nil, test) })
	t.Run("with a lease", func(t *testing.T) {
		stores := leasetest.NewMemory()
		with(t, n, o, func(name string, c *singleton.Config) { c.Store = stores.View(name) }, test)
	})
}

func TestAttach_StartsTheProgramAndTellsItTheFacts(t *testing.T) {
	eachWay(t, 2, clustertest.Options{}, func(t *testing.T, c *crew) {
		p := c.starts("n1")
		r := p.last()
		require.Equal(t, "backup", r.facts["SBR_SINGLETON"])
		require.Equal(t, "payments", r.facts["SBR_SYSTEM"])
		require.Equal(t, "n1", r.facts["SBR_MEMBER"])
		require.Equal(t, string(c.Member("n1").Provider.Peers().Self), r.facts["SBR_INCARNATION"])
		require.Empty(t, r.facts["SBR_FROM"])
		require.Empty(t, r.state)
		time.Sleep(5 * time.Minute)
		require.True(t, p.running(), "it is renewed: %+v", p.last())
		require.Equal(t, 1, p.count())
	})
}

// The agent leaves: the program on the other member starts where this one has stopped, with its state and a
// larger token.
func TestLeave_HandsOverWithState(t *testing.T) {
	eachWay(t, 2, clustertest.Options{}, func(t *testing.T, c *crew) {
		first := c.starts("n1")
		second := c.attach("n2", nil)
		time.Sleep(time.Minute)
		require.Zero(t, second.count())
		c.agents["n1"].host.Leave(t.Context())
		c.runs(second, time.Second)
		require.Equal(t, "of n1", second.last().state)
		require.Equal(t, "n1", second.last().facts["SBR_FROM"])
		require.Contains(t, first.last().because, "(hand-over)")
		gap := second.last().start.Sub(first.last().end)
		t.Logf("nothing ran for %v", gap)
		require.LessOrEqual(t, gap, 200*time.Millisecond)
		time.Sleep(time.Minute)
		require.True(t, second.running())
		require.Equal(t, 1, first.count(), "an agent that leaves starts nothing")
		c.alone()
	})
}

// `sbr run` gets a signal: its program runs on until the other one asks, and is stopped then.
func TestDetach_HandsOverBeforeTheProgramIsStopped(t *testing.T) {
	eachWay(t, 2, clustertest.Options{}, func(t *testing.T, c *crew) {
		first := c.starts("n1")
		second := c.waits("n2")
		first.leave <- struct{}{}
		c.runs(second, 5*time.Second)
		require.LessOrEqual(t, second.last().start.Sub(first.last().end), 200*time.Millisecond)
		require.Equal(t, "of n1", second.last().state)
		c.alone()
	})
}

// `sbr run` gets a signal while it waits, when its agent has asked the program on another member to end
// already: it runs it, and hands it over.
func TestDetach_OfTheOneThatTakesOver(t *testing.T) {
	eachWay(t, 3, clustertest.Options{}, func(t *testing.T, c *crew) {
		first := c.starts("n1")
		second := c.waits("n2")
		third := c.waits("n3")
		first.leave <- struct{}{}
		c.Eventually(5*time.Second, "nobody has asked for it", func() bool { return !first.last().told.IsZero() })
		require.True(t, first.running(), "it takes its time")
		second.cancel()
		c.runs(third, 5*time.Second)
		require.Equal(t, 1, second.count())
		require.Contains(t, second.last().because, "(hand-over)")
		require.LessOrEqual(t, second.last().start.Sub(first.last().end), 200*time.Millisecond)
		require.LessOrEqual(t, third.last().start.Sub(second.last().end), 200*time.Millisecond)
		require.Equal(t, "of n2", third.last().state)
		c.Eventually(5*time.Second, "its agent does not let it go",
			func() bool { return drive.Closed(second.done) })
		c.alone()
	})
}

// A program that waits is let go at once.
func TestDetach_OfOneThatWaits(t *testing.T) {
	eachWay(t, 2, clustertest.Options{}, func(t *testing.T, c *crew) {
		first := c.starts("n1")
		second := c.waits("n2")
		second.cancel()
		c.Eventually(time.Second, "its agent does not let it go", func() bool { return drive.Closed(second.done) })
		require.ErrorIs(t, second.err, context.Canceled)
		require.Zero(t, second.count())
		require.True(t, first.running())
	})
}

// Nobody is there to take over: the program is stopped at once.
func TestDetach_NobodyThere(t *testing.T) {
	eachWay(t, 1, clustertest.Options{}, func(t *testing.T, c *crew) {
		p := c.starts("n1")
		asked := time.Now()
		p.leave <- struct{}{}
		c.Eventually(5*time.Second, "it is not stopped", func() bool { return !p.running() })
		require.LessOrEqual(t, p.last().told.Sub(asked), 100*time.Millisecond)
	})
}

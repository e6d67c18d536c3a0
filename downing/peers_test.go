package downing_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/lease"
	"github.com/serf-sbr/serf-sbr/sbr"
)

func (c *cluster) peer(of, name string) (downing.Peer, bool) {
	list := c.provider(of).Peers().List
	i := slices.IndexFunc(list, func(p downing.Peer) bool { return p.Name == name })
	if i < 0 {
		return downing.Peer{}, false
	}
	return list[i], true
}

func namesOf(peers downing.Peers) (names []string) {
	for i := range peers.List {
		names = append(names, peers.List[i].Name)
	}
	return names
}

// All members list the same, oldest first, whatever their addresses are; a node without a provider is not
// among them.
func TestPeers_OldestFirst(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Boot("n3")
		require.Zero(t, c.provider("n3").Peers(), "it has not looked yet")
		time.Sleep(time.Second)
		c.Boot("n2", "n3")
		plain := c.Node("plain", nil)
		require.NoError(t, c.Join(plain, "n3"))
		time.Sleep(time.Second)
		c.Boot("n4", "n3")
		time.Sleep(20 * time.Second)
		for _, name := range []string{"n2", "n3", "n4"} {
			peers := c.provider(name).Peers()
			require.Equal(t, []string{"n3", "n2", "n4"}, namesOf(peers))
			require.Equal(t, c.id(name), peers.Self)
			require.Equal(t, c.id("n3"), peers.Leader)
			require.Equal(t, sbr.StateUp, peers.State)
			require.Zero(t, peers.Verdict)
			for _, p := range peers.List {
				require.Equal(t, sbr.Up, p.Status)
			}
		}
	})
}

// What one caller does to its copy nobody else sees.
func TestPeers_ShareNothing(t *testing.T) {
	virtual(t, nil, func(t *testing.T, c *cluster) {
		c.Options.Serf = func(_ string, conf *serf.Config) { conf.Tags = map[string]string{"role": "db,web"} }
		c.Form(2)
		require.NoError(t, c.provider("n1").Offer(t.Context(), "who", true))
		time.Sleep(time.Second)
		before := c.provider("n1").Peers()
		mine := c.provider("n1").Peers()
		for i := range mine.List {
			mine.List[i].Name = "changed"
			for _, texts := range [][]string{mine.List[i].Roles, mine.List[i].Serves} {
				for j := range texts {
					texts[j] = "changed"
				}
				_ = append(texts, "changed")
			}
		}
		after := c.provider("n1").Peers()
		require.Equal(t, []string{"db", "web"}, after.List[0].Roles)
		require.Equal(t, []string{"who"}, after.List[0].Serves)
		require.Equal(t, before.List, after.List)
	})
}

// sureSince is how old Sure is.
func (c *cluster) sureSince(name string) time.Duration {
	return time.Since(c.provider(name).Peers().Sure)
}

// Sure goes with the time while nothing is amiss, stands still from the moment in which somebody is
// unreachable, on both sides, and goes on for the winners once it is decided, although those that were downed
// are not removed yet.
func TestPeers_SureStandsStillInAPartition(t *testing.T) {
	virtual(t, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		c.Boot("n1")
		time.Sleep(time.Millisecond)
		require.Zero(t, c.provider("n1").Peers().Sure, "it is not armed")
		for _, name := range []string{"n2", "n3", "n4", "n5"} {
			c.Boot(name, "n1")
		}
		c.Eventually(time.Minute, "not armed",
			func() bool { return c.provider("n5").Status().State == sbr.StateUp })
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			require.LessOrEqual(t, c.sureSince("n5"), downing.DefaultConfig().PollInterval)
		}
		var downed atomic.Bool
		c.provider("n1").Follow(func() {
			if n5, _ := c.peer("n1", "n5"); n5.Status == sbr.Down {
				downed.Store(true)
			}
		})
		require.NoError(t, c.Net.Partition(upper, lower))
		cut := time.Now()
		for _, name := range []string{"n1", "n5"} {
			c.Eventually(time.Minute, "it notices nothing",
				func() bool { return c.provider(name).Status().State != sbr.StateUp })
			require.LessOrEqual(t, c.provider(name).Peers().Sure, time.Now())
		}
		stood := map[string]time.Time{"n1": c.provider("n1").Peers().Sure, "n5": c.provider("n5").Peers().Sure}
		for c.provider("n1").Peers().Verdict == 0 {
			time.Sleep(100 * time.Millisecond)
			for _, name := range []string{"n1", "n5"} {
				if s := c.provider(name).Peers(); s.State != sbr.StateUp {
					require.Equal(t, stood[name], s.Sure, name)
				}
			}
		}
		time.Sleep(downing.DefaultConfig().PollInterval)
		_, listed := c.peer("n1", "n5")
		require.True(t, downed.Load() || !listed, "it is shown as downed, or is removed already")
		require.LessOrEqual(t, c.sureSince("n1"), downing.DefaultConfig().PollInterval)
		require.Equal(t, stood["n5"], c.provider("n5").Peers().Sure)
		t.Logf("sure for %v after the cut; again after %v", stood["n1"].Sub(cut), time.Since(cut))
		c.Eventually(5*time.Minute, "nobody is removed",
			func() bool { return len(c.provider("n1").Peers().List) == 3 })
	})
}

// A process that stood still is not sure again before it knows its fate, and never of the time in which it
// stood still.
func TestPeers_SureAfterAPause(t *testing.T) {
	var gates clustertest.Gates
	formed(t, 3, gated(&gates), func(t *testing.T, c *cluster) {
		gates.Of("n3").Close()
		time.Sleep(time.Second)
		before := c.provider("n3").Peers().Sure
		time.Sleep(time.Minute)
		require.Equal(t, before, c.provider("n3").Peers().Sure, "it does not run")
		c.Store.View("n3").SetUnavailable(true)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		gates.Of("n3").Open()
		for range 40 {
			time.Sleep(50 * time.Millisecond)
			require.Equal(t, before, c.provider("n3").Peers().Sure, "nobody has told it its fate")
		}
		c.Net.Heal()
		c.Store.View("n3").SetUnavailable(false)
		c.Eventually(10*time.Second, "it is never sure again",
			func() bool { return c.sureSince("n3") <= time.Second })
		require.Equal(t, []string{"n1", "n2", "n3"}, c.Up())
	})
}

// A newcomer that has not found the cluster which the last verdict left is sure of nothing, even where it
// would be armed at once, and what runs on top takes it for a member that is not armed: with a lease it would
// start there, outside of the cluster.
func TestPeers_SureOfANewcomer(t *testing.T) {
	virtual(t, func(_ string, c *downing.Config) { c.Resolver.SettleAfter = 0 }, func(t *testing.T, c *cluster) {
		c.Store.Restore(lease.Record{Token: 3, Verdict: &sbr.Verdict{Token: 3, DecidedBy: "old#u",
			Survivors: []sbr.ID{"old#u"}, Reason: "before"}})
		c.Boot("n1")
		for range 20 {
			time.Sleep(500 * time.Millisecond)
			require.Zero(t, c.provider("n1").Peers().Sure)
			require.Equal(t, sbr.StateArming, c.provider("n1").Peers().State)
		}
		require.Equal(t, sbr.StateSuspended, c.provider("n1").Status().State, "the application is held back")
	})
}

// A member that leaves shows it to what runs on top, is sure of nothing more, and the others see it.
func TestPeers_Leaving(t *testing.T) {
	formed(t, 3, nil, func(t *testing.T, c *cluster) {
		require.NoError(t, c.provider("n3").Offer(t.Context(), "who", true))
		time.Sleep(time.Second)
		began := time.Now()
		leave := make(chan error, 1)
		go func() { leave <- c.Member("n3").Serf.Leave() }()
		seen := make(map[string]time.Duration)
		for len(seen) < 3 {
			time.Sleep(10 * time.Millisecond)
			for _, name := range []string{"n1", "n2", "n3"} {
				p, listed := c.peer(name, "n3")
				require.True(t, listed || name != "n3")
				if _, done := seen[name]; !done && (!listed || p.Status == sbr.Leaving) {
					seen[name] = time.Since(began)
				}
			}
			require.Less(t, time.Since(began), 10*time.Second)
		}
		require.NoError(t, <-leave)
		t.Logf("seen after %v; the leave took %v", seen, time.Since(began))
		require.ErrorIs(t, c.provider("n3").Offer(t.Context(), "other", true), downing.ErrNotMember)
		sure := c.provider("n3").Peers().Sure
		time.Sleep(2 * time.Second)
		require.Equal(t, sure, c.provider("n3").Peers().Sure)
		require.Equal(t, []string{"n1", "n2"}, namesOf(c.provider("n1").Peers()))
	})
}

// Each change is told after it can be read, and in peace nothing is.
func TestFollow_EachChange(t *testing.T) {
	formed(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		time.Sleep(5 * time.Second)
		p := c.provider("n1")
		var calls atomic.Int32
		var last atomic.Pointer[downing.Peers]
		stop := p.Follow(func() {
			calls.Add(1)
			last.Store(new(p.Peers()))
		})
		time.Sleep(time.Minute)
		require.Zero(t, calls.Load(), "nothing changed but Sure")
		require.NoError(t, c.provider("n2").Offer(t.Context(), "who", true))
		synctest.Wait()
		require.Equal(t, []string{"who"}, last.Load().List[1].Serves)

		c.Boot("n4", "n1")
		time.Sleep(10 * time.Second)
		require.Len(t, last.Load().List, 4)
		require.NoError(t, c.Net.Partition([]string{"n1", "n2", "n3"}, []string{"n4"}))
		c.Eventually(2*time.Minute, "the verdict was not told", func() bool { return last.Load().Verdict == 1 })
		c.Eventually(2*time.Minute, "the removal was not told", func() bool { return len(last.Load().List) == 3 })
		require.Equal(t, sbr.StateUp, last.Load().State)

		stop()
		before := calls.Load()
		require.NoError(t, c.provider("n2").Offer(t.Context(), "who", false))
		time.Sleep(10 * time.Second)
		require.Equal(t, before, calls.Load(), "after stop no call begins")
		require.Empty(t, p.Peers().List[1].Serves)
	})
}

// A follower that panics and one that hangs do not keep others from learning that the member is down, nor
// from anything else.
func TestFollow_Downed(t *testing.T) {
	formed(t, 3, clustertest.MajorityFirst, func(t *testing.T, c *cluster) {
		p := c.provider("n3")
		hang := make(chan struct{})
		p.Follow(func() { <-hang })
		p.Follow(func() { panic("on purpose") })
		told := make(chan time.Time, 1)
		p.Follow(func() {
			select {
			case <-p.Downed():
				select {
				case told <- time.Now():
				default:
				}
			default:
			}
		})
		require.NoError(t, c.Net.Partition([]string{"n1", "n2"}, []string{"n3"}))
		<-p.Downed()
		at := time.Now()
		require.Equal(t, at, <-told)
		<-p.Done()
		close(hang)
	})
}

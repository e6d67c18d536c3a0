package downing_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/internal/clustertest"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// disks are the state folders of hosts. A member has the memory of its host.
type disks struct {
	t    *testing.T
	dirs map[string]string
	open map[string]*downing.Memory
}

func (d *disks) attach(name string, c *downing.Config) {
	clustertest.MajorityFirst(name, c)
	if held := d.open[name]; held != nil {
		require.NoError(d.t, held.Close())
	}
	if d.dirs[name] == "" {
		d.dirs[name] = d.t.TempDir()
	}
	d.open[name] = openMemory(d.t, d.dirs[name])
	c.Memory = d.open[name]
}

// file is the state file of a host, and what it holds.
func (d *disks) file(name string) (path string, content []byte) {
	files, err := filepath.Glob(filepath.Join(d.dirs[name], "*.json"))
	require.NoError(d.t, err)
	require.Len(d.t, files, 1)
	content, err = os.ReadFile(files[0])
	require.NoError(d.t, err)
	return files[0], content
}

// lose takes the folders of hosts away: what starts there next remembers nothing.
func (d *disks) lose(names ...string) {
	for _, n := range names {
		d.dirs[n] = ""
	}
}

// onDisks runs a test on a cluster whose hosts have state folders, in virtual time.
func onDisks(t *testing.T, config func(string, *downing.Config), f func(t *testing.T, c *cluster)) {
	t.Helper()
	d := &disks{t: t, dirs: make(map[string]string), open: make(map[string]*downing.Memory)}
	virtual(t, func(name string, c *downing.Config) {
		d.attach(name, c)
		if config != nil {
			config(name, c)
		}
	}, func(t *testing.T, c *cluster) {
		c.disks = d
		f(t, c)
	})
}

// boots starts members one after another, each of which joins those that were started before it.
func (c *cluster) boots(names ...string) {
	for i, n := range names {
		c.Boot(n, names[:i]...)
		time.Sleep(time.Second)
	}
}

// restarts crashes all members, cuts the network, and starts the members of each side again, one side after the
// other.
func (c *cluster) restarts(sides ...[]string) {
	c.t.Helper()
	time.Sleep(time.Minute)
	c.crash(slices.Concat(sides...)...)
	require.NoError(c.t, c.Net.Partition(sides...))
	for _, side := range sides {
		c.boots(side...)
	}
}

// working are those of the members whose application may work.
func (c *cluster) working(names ...string) (up []string) {
	for _, n := range names {
		if s := c.provider(n).Status(); s.State != sbr.StateDown && s.SuspendedSince == nil {
			up = append(up, n)
		}
	}
	return up
}

// requireNeverBoth watches for some time that the members of two sides never work at the same time.
func (c *cluster) requireNeverBoth(a, b []string, d time.Duration) {
	c.t.Helper()
	time.Sleep(settling)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		x, y := c.working(a...), c.working(b...)
		require.False(c.t, len(x) > 0 && len(y) > 0, "%v and %v", x, y)
	}
}

var (
	allFive  = []string{"n1", "n2", "n3", "n4", "n5"}
	upper    = []string{"n1", "n2", "n3"}
	lower    = []string{"n4", "n5"}
	settling = 10 * time.Second // a moment in which both parts of a start may be about to wait
)

// A member that has found its cluster again, and waits for the answers of all, is cut off with the store: it
// decides nothing. Nobody suspects it, so nobody would stand against its verdict.
func TestStart_CutOffWhileItWaits(t *testing.T) {
	long(t)
	onDisks(t, nil, func(t *testing.T, c *cluster) {
		c.Form(5)
		c.crash("n5")
		c.Net.Heal()
		require.NoError(t, c.Net.Cut("n2", "n5"))
		c.Boot("n5", "n1")
		time.Sleep(time.Minute)
		others := allFive[:4]
		waits := func(awaited ...string) {
			require.True(t, c.provider("n5").Status().Newcomer)
			require.Equal(t, awaited, c.provider("n5").Status().Awaiting)
			require.Equal(t, others, c.working(allFive...))
			require.Zero(t, c.verdict().Token)
		}
		waits("n2")
		require.NoError(t, c.Net.Partition(others, []string{"n5"}))
		time.Sleep(5 * time.Minute)
		waits(others...)
		c.Net.Heal()
		require.NoError(t, c.Join(c.Member("n5").Serf, "n1"))
		c.requireWhole(5*time.Minute, allFive...)
		require.Zero(t, c.verdict().Token)
	})
}

// All members restart one after another while the network is cut in halves, before any member is suspected:
// each finds a member that was up all the time, which restarts, too. The halves do not wait for each other:
// the lease decides.
func TestStart_AllInTurnDuringACut(t *testing.T) {
	onDisks(t, nil, func(t *testing.T, c *cluster) {
		c.Form(4)
		halves := [][]string{{"n1", "n2"}, {"n3", "n4"}}
		require.NoError(t, c.Net.Partition(halves...))
		for i := range 2 {
			for _, half := range halves {
				c.crash(half[i])
				require.NoError(t, c.Net.Thaw(half[i]))
				c.Boot(half[i], half[1-i])
			}
			time.Sleep(3 * time.Second)
		}
		for _, n := range allFive[:4] {
			require.True(t, c.provider(n).Status().Newcomer, n)
		}
		time.Sleep(3 * time.Minute)
		require.Contains(t, halves, c.working(allFive[:4]...))
	})
}

// Five that were one cluster lose power and start in a network that is cut: one part is a cluster, the other
// goes down, waits, and joins after the heal. It does not matter whether there is a verdict behind them
// (design rule 22).
func TestStart_InIslands(t *testing.T) {
	long(t)
	for name, decided := range map[string]bool{"no verdict yet": false, "after a verdict": true} {
		t.Run(name, func(t *testing.T) {
			onDisks(t, nil, func(t *testing.T, c *cluster) {
				c.Form(5)
				if decided {
					c.removes(allFive[:4], allFive[4:])
					c.Net.Heal()
					c.Boot("n5", "n1")
					c.requireWhole(5*time.Minute, allFive...)
				}
				c.restarts(upper, lower)
				c.requireNeverBoth(upper, lower, 3*time.Minute)
				require.Equal(t, upper, c.working(upper...))
				require.Equal(t, upper, c.Up())

				for _, n := range lower { // their supervisors start them again
					<-c.provider(n).Done()
				}
				c.boots(lower...)
				c.requireNeverBoth(upper, lower, 3*time.Minute)
				c.Net.Heal()
				c.requireWhole(3*time.Minute, allFive...) // no configuration names members to join
			})
		})
	}
}

// What only one part remembers is enough: the other one has lost its folders, takes itself for a first start,
// and goes down by the verdict.
func TestStart_InIslandsOfWhichOneRemembers(t *testing.T) {
	long(t)
	for name, forgetful := range map[string][]string{"the smaller forgets": lower, "the larger forgets": upper} {
		t.Run(name, func(t *testing.T) {
			onDisks(t, nil, func(t *testing.T, c *cluster) {
				c.Form(5)
				time.Sleep(time.Minute)
				c.crash(allFive...)
				c.disks.lose(forgetful...)
				require.NoError(t, c.Net.Partition(upper, lower))
				c.boots(upper...)
				c.boots(lower...)
				rest := without(allFive, forgetful)
				c.requireOneSide([][]string{rest}, 3*time.Minute)
				c.requireWhole(time.Minute, rest...)
			})
		})
	}
}

// A start that is ended while it waits has not forgotten the members that it waits for.
func TestStart_AgainWhileItWaits(t *testing.T) {
	onDisks(t, nil, func(t *testing.T, c *cluster) {
		c.Form(5)
		time.Sleep(time.Minute)
		c.crash(allFive...)
		require.NoError(t, c.Net.Partition(upper, lower))
		c.boots(lower...)
		time.Sleep(settling)
		c.crash(lower...)
		c.boots(lower...)
		require.Equal(t, upper, c.provider("n4").Status().Awaiting)
		c.boots(upper...)
		c.requireNeverBoth(upper, lower, 3*time.Minute)
	})
}

// The wait for a member that never returns takes no longer than a partition: then the lease decides.
func TestStart_OneDoesNotReturn(t *testing.T) {
	long(t)
	for name, decided := range map[string]bool{"no verdict yet": false, "a survivor of the last verdict": true} {
		t.Run(name, func(t *testing.T) {
			onDisks(t, nil, func(t *testing.T, c *cluster) {
				up := allFive
				if c.Form(5); decided {
					up = allFive[:4]
					c.removes(up, allFive[4:])
				}
				time.Sleep(time.Minute)
				gone := c.Member("n1").Serf.LocalMember().Tags[downing.TagUID]
				c.crash(up...)
				back := up[1:]
				c.boots(back...)
				time.Sleep(settling)
				s := c.provider("n2").Status()
				require.Equal(t, sbr.StateSuspended, s.State)
				require.Equal(t, []string{"n1"}, s.Awaiting)
				require.Contains(t, s.SuspendedBecause, "not here: n1; it looks for them for 35s, then")
				c.requireWhole(2*time.Minute, back...)
				require.Contains(t, c.Store.Snapshot().Record.Verdict.Down, sbr.ID("n1#"+gone))
			})
		})
	}
}

// After a power loss the members that come back are the cluster, even a single one. Later members join it.
func TestStart_WhoeverComesBack(t *testing.T) {
	onDisks(t, nil, func(t *testing.T, c *cluster) {
		c.Form(3)
		time.Sleep(time.Minute)
		c.crash("n1", "n2", "n3")
		c.boots("n3")
		c.requireWhole(2*time.Minute, "n3")
		c.boots("n1", "n2") // they join each other
		c.requireWhole(2*time.Minute, "n1", "n2", "n3")
		require.EqualValues(t, 1, c.Store.Snapshot().Record.Token)
	})
}

// Losers that were started again in the cut, without their folders and with nobody to join, are looked for by
// the winners.
func TestStart_LosersWithoutDisks(t *testing.T) {
	long(t)
	onDisks(t, nil, func(t *testing.T, c *cluster) {
		c.Form(5)
		c.removes(upper, lower)
		c.disks.lose(lower...)
		c.boots(lower...)
		c.requireNeverBoth(upper, lower, 5*time.Minute)
		c.Net.Heal()
		c.requireWhole(3*time.Minute, allFive...)
		require.EqualValues(t, 1, c.Store.Snapshot().Record.Token)
	})
}

// A member that left in peace, and cannot reach the others when it is started again, does not take their
// place: they never missed it.
func TestStart_OneThatLeftWaits(t *testing.T) {
	long(t)
	onDisks(t, nil, func(t *testing.T, c *cluster) {
		c.Form(5)
		time.Sleep(time.Minute)
		require.NoError(t, c.Member("n1").Leave())
		rest := allFive[1:]
		require.NoError(t, c.Net.Partition([]string{"n1"}, rest))
		c.Boot("n1")
		time.Sleep(10 * time.Minute)
		s := c.provider("n1").Status()
		require.Equal(t, sbr.StateSuspended, s.State)
		require.Contains(t, s.SuspendedBecause, "1 of 5 hosts are")
		require.Equal(t, rest, c.working(rest...))
		require.Zero(t, c.Store.Snapshot().Record.Token)
		c.Net.Heal()
		c.requireWhole(time.Minute, allFive...)
		require.Zero(t, c.Store.Snapshot().Record.Token, "nothing had to be decided")
	})
}

// A member that is restarted in a whole cluster joins it at once, also when somebody has left in peace
// meanwhile.
func TestStart_InAWholeCluster(t *testing.T) {
	onDisks(t, nil, func(t *testing.T, c *cluster) {
		c.Form(4)
		time.Sleep(time.Minute)
		require.NoError(t, c.Member("n1").Leave())
		require.NoError(t, c.Member("n4").Leave())
		c.Boot("n1", "n2")
		c.requireWhole(15*time.Second, "n1", "n2", "n3")
		require.Zero(t, c.Store.Snapshot().Record.Token)
	})
}

// Without a lease a start waits until more than half of the members that it remembers are there; two halves
// wait for the heal.
func TestStart_WithoutALease(t *testing.T) {
	long(t)
	keepMajority := func(_ string, c *downing.Config) { c.Strategy = "keep-majority" }
	t.Run("a majority", func(t *testing.T) {
		onDisks(t, keepMajority, func(t *testing.T, c *cluster) {
			c.Form(5)
			c.restarts(upper, lower)
			c.requireNeverBoth(upper, lower, 5*time.Minute)
			require.Equal(t, upper, c.working(upper...))
			c.Net.Heal()
			c.Eventually(5*time.Minute, "one cluster", func() bool { return len(c.working(allFive...)) == 5 })
		})
	})
	t.Run("halves", func(t *testing.T) {
		onDisks(t, keepMajority, func(t *testing.T, c *cluster) {
			c.Form(4)
			four := allFive[:4]
			c.restarts(four[:2], four[2:])
			time.Sleep(10 * time.Minute)
			require.Empty(t, c.working(four...))
			c.Net.Heal()
			c.Eventually(time.Minute, "one cluster", func() bool { return len(c.working(four...)) == 4 })
		})
	})
}

func without(names, those []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(those, n) })
}

// A survivor that starts again on its own side of a cut has found its cluster at once. A member that its host
// could not reach stays a suspect all the same: it must not work while the others of its side are suspended.
func TestStart_InACutOnASideThatIsUndecided(t *testing.T) {
	long(t)
	undecided := func(_ string, c *downing.Config) { c.Resolver.WhenLeaseUnknown = sbr.UnknownSuspend }
	onDisks(t, undecided, func(t *testing.T, c *cluster) {
		c.afterOneVerdict()
		side, others := upper, lower
		c.storeAway(append(slices.Clone(side), "n4")...)
		require.NoError(t, c.Net.Partition(side, others))
		c.Eventually(2*time.Minute, "suspended", func() bool {
			return !slices.ContainsFunc(side,
				func(n string) bool { return c.provider(n).Status().SuspendedSince == nil })
		})
		time.Sleep(15 * time.Second) // Serf calls it failed as well
		for _, n := range side {
			_ = c.Member(n).Serf.RemoveFailedNodePrune("n4") // the first one tells the others
		}
		file, remembered := c.disks.file("n1")
		c.crash("n1")
		// a power loss leaves no time to note that it is over
		require.NoError(t, os.WriteFile(file, remembered, 0o600))
		c.Member("n1").Store.SetUnavailable(false) // it has to read the verdict before it joins
		c.Boot("n1", "n2")
		c.Member("n1").Store.SetUnavailable(true)
		time.Sleep(3 * time.Second) // it joins, which is no suspension yet
		for at := range 60 {
			require.Empty(t, c.working(side...), "n4 may work, after %d s", at)
			time.Sleep(time.Second)
		}
	})
}

package hosts_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

const (
	// wholeAgain is how long a cluster may take to be whole once everything outside of it is repaired.
	wholeAgain = 60 * time.Second
	// troubled is how long an unresolvable state lasts: every deadline is over then.
	troubled = 30 * time.Second
)

// start is one way in which a cluster has to find itself again.
type start struct {
	name string
	// boot starts the cluster; nil: in the ordinary way.
	boot func(t *testing.T, m mode) *rig
	// play makes the trouble and returns once it is repaired, with the members that there must be then. No
	// agent is touched by that repair.
	play func(r *rig) []string
}

// starts are played with the default min-members: a lone member is a cluster.
var starts = []start{
	{name: "power loss", play: powerLoss},
	{name: "rights taken away", play: rightsTakenAway},
	{name: "token expired", play: tokenExpired},
	{name: "lease deleted", play: leaseDeleted},
	{name: "scaled in", play: scaledIn},
	{name: "new names", play: newNames},
	{name: "new names after a crash", play: newNamesAfterACrash},
	{name: "losers without disks", play: losersWithoutDisks},
	{name: "islands", play: islands},
	{name: "first boot with serf.join", boot: bootTold, play: healIslands},
}

// Whatever was wrong, once it is repaired outside of the members there is one cluster, and nobody has touched
// an agent. make e2e plays each start in one of the modes, in turn; make starts plays it in both.
func TestStarts_EndWithOneCluster(t *testing.T) {
	needsRoot(t)
	modes := []mode{besideModule, ownNode}
	for i, s := range starts {
		played := modes
		if os.Getenv(e2eEnv) != everything {
			played = modes[i%len(modes):][:1]
		}
		for _, m := range played {
			t.Run(s.name+" "+m.name, func(t *testing.T) { s.test(t, m) })
		}
	}
}

func (s *start) test(t *testing.T, m mode) {
	t.Parallel()
	boot := s.boot
	if boot == nil {
		boot = func(t *testing.T, m mode) *rig { return newRig(t, m, asDefault()) }
	}
	r := boot(t, m)
	members := s.play(r)
	repaired := time.Now()
	r.waitWhole(wholeAgain, members...)
	t.Logf("whole %.1f s after the repair", time.Since(repaired).Seconds())
	r.verify()
}

// asDefault are members that a unit starts again, with min-members as it is where nobody sets it.
func asDefault() cluster.Options {
	return cluster.Options{Settings: cluster.Fast(), RestartAfter: time.Second, Later: newcomers}
}

// newcomers are hosts that start with nothing.
var newcomers = []string{"n6", "n7", "n8", "n9", "n10"}

var islandSides = [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}

// crash ends everything on hosts, as a power failure.
func (r *rig) crash(names ...string) {
	r.t.Helper()
	for _, name := range names {
		require.NoError(r.t, r.Crash(r.t.Context(), name))
	}
}

// powerOn starts what was ended by crash.
func (r *rig) powerOn(names ...string) {
	for _, name := range names {
		r.Restore(name)
	}
}

// decided cuts the cluster, lets one side win and heals the cut: it has a verdict behind it then. It returns
// the survivors.
func (r *rig) decided() []string {
	r.t.Helper()
	up := r.oneOf(islandSides)
	require.NoError(r.t, r.lab.Heal())
	r.waitWhole(rejoinWithin, five...)
	return up
}

// oneOf cuts the cluster and returns the side that stays.
func (r *rig) oneOf(sides [][]string) []string {
	r.t.Helper()
	require.NoError(r.t, r.lab.Partition(sides...))
	up := r.waitOneSide(resolveWithin)
	require.Contains(r.t, sides, up, "one side, whole")
	return up
}

// neverTwoSides watches that for d no two members are ready that are cut off from each other.
func (r *rig) neverTwoSides(d time.Duration) {
	r.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		require.NoError(r.t, r.TwoSides(r.t.Context()))
	}
}

// powerLoss: everything goes off at once, and the store is the last to be there again; some hosts start while
// it does.
func powerLoss(r *rig) []string {
	r.crash(five...)
	r.api.KillAPIServer()
	r.api.KillEtcd()
	r.powerOn("n1", "n2")
	time.Sleep(troubled / 3)
	require.NoError(r.t, r.api.StartEtcd(r.t.Context()))
	var late sync.WaitGroup
	defer late.Wait()
	late.Go(func() {
		for _, name := range five[2:] {
			time.Sleep(time.Second)
			r.powerOn(name)
		}
	})
	require.NoError(r.t, r.api.StartAPIServer(r.t.Context()))
	return five
}

// rightsTakenAway: the RoleBinding is deleted before a cut, and is there again after it.
func rightsTakenAway(r *rig) []string {
	require.NoError(r.t, r.Account().TakeRights(r.t.Context()))
	return r.cutWithout(r.Account().GiveRights)
}

// tokenExpired: the token runs out before a cut, and is renewed after it.
func tokenExpired(r *rig) []string {
	require.NoError(r.t, r.Account().ExpireToken(r.t.Context()))
	return r.cutWithout(r.Account().RenewToken)
}

// cutWithout cuts and heals the network while the store refuses all, and repairs the store then.
func (r *rig) cutWithout(repair func(ctx context.Context) error) []string {
	r.t.Helper()
	require.NoError(r.t, r.lab.Partition(islandSides...))
	time.Sleep(troubled)
	require.NoError(r.t, r.TwoSides(r.t.Context()))
	require.NoError(r.t, r.lab.Heal())
	time.Sleep(troubled / 6)
	require.NoError(r.t, repair(r.t.Context()))
	return five
}

// leaseDeleted: the record of an earlier verdict is deleted while the cluster is whole; the next cut is
// resolved as any.
func leaseDeleted(r *rig) []string {
	r.decided()
	require.NoError(r.t, r.DeleteRecord(r.t.Context()))
	time.Sleep(troubled / 6)
	r.oneOf([][]string{{"n1", "n4", "n5"}, {"n2", "n3"}})
	require.NoError(r.t, r.lab.Heal())
	return five
}

// scaledIn: a survivor of the last verdict leaves in peace for good, and the rest lose power and start again.
func scaledIn(r *rig) []string {
	up := r.decided()
	gone := up[len(up)-1]
	require.NoError(r.t, r.Member(gone).Leave(r.t.Context()))
	rest := without(five, []string{gone})
	r.waitWhole(wholeAgain, rest...)
	r.crash(rest...)
	time.Sleep(time.Second)
	r.powerOn(rest...)
	return rest
}

// newNames: after a verdict all five leave in peace, and five unknown members start on other hosts.
func newNames(r *rig) []string {
	r.decided()
	for _, name := range five {
		require.NoError(r.t, r.Member(name).Leave(r.t.Context()))
	}
	for _, name := range newcomers {
		_, err := r.Boot(name)
		require.NoError(r.t, err)
	}
	return newcomers
}

// newNamesAfterACrash: everything is lost at once, and five unknown members start on other hosts. They wait,
// and say what to do: one of them is started with --bootstrap and the number of the verdict.
func newNamesAfterACrash(r *rig) []string {
	r.decided()
	r.crash(five...)
	for _, name := range newcomers {
		_, err := r.Boot(name)
		require.NoError(r.t, err)
	}
	var told string
	for _, name := range newcomers {
		require.Eventually(r.t, func() bool {
			s, err := r.Member(name).Status(r.t.Context())
			told = s.SuspendedBecause
			return err == nil && s.Newcomer && strings.Contains(told, "--bootstrap=")
		}, resolveWithin, 100*time.Millisecond, "%s waits", name)
	}
	option := regexp.MustCompile("--bootstrap=[0-9]+").FindString(told)
	m := r.Member(newcomers[1])
	m.SBR.AddArgs(option)
	require.NoError(r.t, m.SBR.Process().Terminate())
	return newcomers
}

// losersWithoutDisks: the hosts that lost are rebooted in the cut and have forgotten everything.
func losersWithoutDisks(r *rig) []string {
	losers := without(five, r.oneOf(islandSides))
	r.crash(losers...)
	for _, name := range losers {
		require.NoError(r.t, r.Member(name).LoseState())
	}
	r.powerOn(losers...)
	r.neverTwoSides(troubled)
	require.NoError(r.t, r.lab.Heal())
	return five
}

// islands: five that were one cluster lose power and start in a network that is cut, and later is not.
func islands(r *rig) []string {
	r.crash(five...)
	require.NoError(r.t, r.lab.Partition(islandSides...))
	r.powerOn(five...)
	time.Sleep(troubled / 3) // on the way to a decision both sides may be ready for a moment, as at any cut
	r.neverTwoSides(troubled)
	require.NoError(r.t, r.lab.Heal())
	return five
}

// bootTold starts five for the first time in a network that is cut, with the addresses of the others in
// sbr.yaml: nothing is remembered, and nothing was decided.
func bootTold(t *testing.T, m mode) *rig {
	o := asDefault()
	o.Join = true
	return bootRig(t, m, o, func(r *rig, _ *cluster.Options) {
		require.NoError(t, r.lab.Partition(islandSides...))
	})
}

// healIslands heals the cut once each island has found its members.
func healIslands(r *rig) []string {
	for _, side := range islandSides {
		for _, name := range side {
			require.Eventually(r.t, func() bool {
				s, err := r.Member(name).Status(r.t.Context())
				return err == nil && len(s.Members) == len(side)
			}, resolveWithin, 100*time.Millisecond, "%s finds its side", name)
		}
	}
	time.Sleep(troubled)
	require.NoError(r.t, r.lab.Heal())
	return five
}

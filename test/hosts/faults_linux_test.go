package hosts_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
	"github.com/serf-sbr/serf-sbr/test/kubetest"
)

// staying is Fast for clusters in which an ended process stays ended.
func staying() cluster.Options { return cluster.Options{Settings: cluster.Fast()} }

// Reachability that is not a clean cut: Serf sees little or nothing of it, own probes do. The largest group
// stays, and never do two members stay that miss each other.
func TestUncleanCuts_TheLargestGroupStays(t *testing.T) {
	oneLink := [][]string{{"n1", "n2", "n3", "n5"}}
	bridge := func(r *rig) error { return r.lab.Partition([]string{"n1", "n2", "n3"}, []string{"n3", "n4", "n5"}) }
	aHalfAndTheBridge := [][]string{{"n1", "n2", "n3"}}
	for _, tc := range []struct {
		name string
		mode mode
		cut  func(r *rig) error
		want [][]string
	}{
		{"one link", besideModule, func(r *rig) error { return r.lab.Cut("n2", "n4") }, oneLink},
		{"one way", ownNode, func(r *rig) error { return r.lab.CutOneWay("n2", "n4") }, oneLink},
		{"bridge", besideDebian, bridge, aHalfAndTheBridge},
		{"bridge", ownNode, bridge, aHalfAndTheBridge},
	} {
		t.Run(tc.name+" "+tc.mode.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tc.mode, staying())
			require.NoError(t, tc.cut(r))
			up := r.waitOneSide(2 * resolveWithin)
			require.Contains(t, tc.want, up)
			require.ElementsMatch(t, without(five, up), r.downed())
			r.verify()
		})
	}
}

// A cut that comes and goes faster than stable-after decides nothing; the last cut stays and is resolved.
func TestFlapping_IsResolvedOnceItStays(t *testing.T) {
	t.Parallel()
	o := staying()
	o.Settings = o.Settings.With("down-all-when-unstable", "off")
	r := newRig(t, besideModule, o)
	cut := func() error { return r.lab.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}) }
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	require.NoError(t, r.lab.Flap(ctx, 3*time.Second, 3*time.Second, cut))
	require.Empty(t, r.downed(), "nothing was ever stable")
	require.NoError(t, cut())
	up := r.waitOneSide(resolveWithin)
	require.Contains(t, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}, up)
	r.requireDoubleActive(reachesStore)
	r.verify()
}

// Packets that are lost now and then are no partition, and do not keep one from being resolved.
func TestLoss_DownsNobodyAndHidesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, ownNode, staying())
	require.NoError(t, r.lab.Loss(5, five...))
	time.Sleep(20 * time.Second)
	require.Empty(t, r.downed())
	require.NoError(t, r.lab.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
	up := r.waitOneSide(resolveWithin)
	require.Contains(t, [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}, up)
	r.verify()
}

// A member that cannot ask the lease store does not win; if no member can, none stays.
func TestStore_CutOffFromSome(t *testing.T) {
	sides := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
	for _, tc := range []struct {
		name    string
		mode    mode
		without []string
		want    []string
	}{
		{"from the larger side", besideModule, sides[0], sides[1]},
		{"from the smaller side", ownNode, sides[1], sides[0]},
		{"from the larger side's leader", besideDebian, []string{"n1"}, nil},
		{"from everybody", ownNode, five, []string{}},
		{"from everybody", besideModule, five, []string{}},
	} {
		t.Run(tc.name+" "+tc.mode.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tc.mode, staying())
			require.NoError(t, r.lab.CutStore(tc.without...))
			require.NoError(t, r.lab.Partition(sides...))
			up := r.waitOneSide(resolveWithin)
			if tc.want == nil {
				require.Contains(t, sides, up)
			} else {
				require.ElementsMatch(t, tc.want, up)
			}
			require.ElementsMatch(t, without(five, up), r.downed())
			r.verify()
		})
	}
}

// The API server and etcd crash in the middle of the race and come back: one side wins in the end, whatever
// the members were told before.
func TestStore_CrashesInTheRace(t *testing.T) {
	type api = kubetest.Cluster
	for _, tc := range []struct {
		name  string
		mode  mode
		hang  func(*api) error
		crash func(*api)
		back  func(*api, context.Context) error
	}{
		{"API server", besideModule, (*api).PauseAPIServer, (*api).KillAPIServer, (*api).StartAPIServer},
		{"etcd", ownNode, (*api).PauseEtcd, (*api).KillEtcd, (*api).StartEtcd},
	} {
		t.Run(tc.name+" "+tc.mode.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tc.mode, staying())
			sides := [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}
			require.NoError(t, r.lab.Partition(sides...))
			require.NoError(t, r.waitState("suspended", time.Minute))
			// a race takes milliseconds: with a store that hangs it can be seen, and its requests are under way
			require.NoError(t, tc.hang(r.api))
			require.NoError(t, r.waitState("waiting-for-lease", time.Minute))
			tc.crash(r.api)
			require.NoError(t, tc.back(r.api, t.Context()))
			require.NoError(t, r.api.WaitReady(r.within(time.Minute)))
			up := r.waitOneSide(resolveWithin)
			// All may have given up meanwhile, for nobody knew; or all but one whose last try had an answer.
			require.True(t, len(without(up, sides[0]))*len(without(up, sides[1])) == 0, "%v are up, of two sides", up)
			require.ElementsMatch(t, without(five, up), r.downed())
			r.verify()
		})
	}
}

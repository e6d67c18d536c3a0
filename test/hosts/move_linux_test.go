package hosts_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
)

// A running cluster takes its lease to another store, by the documented procedure, and is cut in the middle
// of that: while the command runs, or while the members get the new configuration. The operator goes on. At
// no moment are two sides up, one side is in the end, and the chain of verdicts is one over both stores.
func TestMove_WithACutInTheMiddle(t *testing.T) {
	for _, tc := range []struct {
		name     string
		from, to string
		mode     mode
		// before is how many members have the new configuration when the cut comes; below 0: the command
		// runs.
		before int
	}{
		{"while it moves", "kubernetes", "postgres", besideModule, -1},
		{"once it has moved", "postgres", "etcd", ownNode, 0},
		{"after two members", "etcd", "mongodb", besideModule, 2},
		{"after four members", "postgres", "kubernetes", ownNode, 4},
	} {
		t.Run(tc.name+" "+tc.from+" to "+tc.to, func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, lab: newHosts(t, five...)}
			start := func(kind string) *cluster.Store {
				s, err := cluster.StartStore(t.Context(), r.lab, "store", kind, os.Stderr)
				require.NoError(t, err)
				return s
			}
			from, to := start(tc.from), start(tc.to)
			var err error
			r.Cluster, err = cluster.Start(t.Context(), r.lab, from, tc.mode.filled(t, restarting(3)))
			require.NoError(t, err)
			t.Cleanup(r.Stop)
			r.waitWhole(time.Minute)
			twoSides := r.watchSides()
			r.moveAndCut(to, tc.before)
			up := r.waitOneSide(resolveWithin)
			for within := r.within(rejoinWithin); len(up) == 0; { // all were downed, and form a cluster again
				up, err = r.WaitOneSide(within)
				require.NoError(t, err)
			}
			t.Logf("up: %v, downed: %v", up, r.downed())
			require.Contains(t, moveSides, up, "one side, whole")
			require.NoError(t, twoSides())
			require.NoError(t, r.lab.Heal())
			r.waitWhole(rejoinWithin)
			r.verify()
		})
	}
}

// moveSides are those of the cut.
var moveSides = [][]string{{"n1", "n2", "n3"}, {"n4", "n5"}}

// moveAndCut is the procedure, with a cut once so many members have the new configuration. Members of both
// sides get it in turns.
func (r *rig) moveAndCut(to *cluster.Store, before int) {
	r.t.Helper()
	ctx := r.within(2 * time.Minute)
	require.NoError(r.t, r.PrepareMove(ctx, to))
	moved := make(chan error, 1)
	go func() { moved <- r.Move(ctx, r.Member("n1")) }()
	if before < 0 {
		require.NoError(r.t, r.lab.Partition(moveSides...))
	}
	require.NoError(r.t, <-moved)
	for i, name := range []string{"n1", "n4", "n2", "n5", "n3"} {
		if i == before {
			require.NoError(r.t, r.lab.Partition(moveSides...))
		}
		require.NoError(r.t, r.TakeNew(ctx, r.Member(name)))
	}
}

// watchSides looks for two sides that are up, from when the cut has been noticed until it is asked what it
// has seen: all are ready until then.
func (r *rig) watchSides() (seen func() error) {
	ctx, stop := context.WithCancel(r.t.Context())
	r.t.Cleanup(stop)
	found := make(chan error, 1)
	go func() {
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		for noticed := false; ; {
			select {
			case <-ctx.Done():
				found <- nil
				return
			case <-every.C:
			}
			cut := !r.lab.Connected(moveSides[0][0], moveSides[1][0])
			err := r.TwoSides(ctx)
			if err != nil && noticed {
				found <- err
				return
			}
			noticed = cut && err == nil || noticed
		}
	}()
	return func() error {
		stop()
		return <-found
	}
}

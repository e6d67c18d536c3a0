package hosts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/sbr"
)

// waitState waits until a member is in that state.
func (r *rig) waitState(state sbr.State, d time.Duration) error {
	ctx := r.within(d)
	for {
		for _, m := range r.Members() {
			if s, err := m.Status(ctx); err == nil && s.State == state {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody is %s: %w", state, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waitVerdict returns the first verdict.
func (r *rig) waitVerdict(d time.Duration) *sbr.Verdict {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return len(r.Chain().Verdicts()) > 0 }, d, 50*time.Millisecond,
		"there is no verdict")
	return r.Chain().Verdicts()[0].Verdict
}

// A host stands still through all of it and goes on when everything is over: it learns what was decided
// before it works again.
func TestPause_ThroughEverything(t *testing.T) {
	for _, m := range allModes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, m, restarting(3))
			n5 := r.Member("n5")
			n5.SetRestart(false)
			require.NoError(t, n5.Pause(t.Context()))
			r.waitVerdict(resolveWithin)
			require.Equal(t, []string{"n1", "n2", "n3", "n4"}, r.waitOneSide(resolveWithin))

			resumed := time.Now()
			require.NoError(t, n5.Resume())
			exit, err := n5.SBR.WaitExit(r.within(time.Minute), 1)
			require.NoError(t, err)
			require.Equal(t, downing.ExitDowned, exit.Code)
			downs, err := r.Downs()
			require.NoError(t, err)
			require.Len(t, downs, 1)
			t.Logf("down %v after it went on", downs[0].At.Sub(resumed))
			require.Less(t, downs[0].At.Sub(resumed), 10*time.Second)

			n5.SetRestart(true)
			r.waitWhole(rejoinWithin)
			r.verify()
		})
	}
}

// Everything on a host is killed at once. The others resolve it; what is started again under the same name is
// a new incarnation.
func TestKill_ComesBackUnderTheSameName(t *testing.T) {
	for _, m := range allModes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, m, restarting(3))
			before := r.incarnations()
			n5 := r.Member("n5")
			n5.SetRestart(false)
			n5.Kill()
			require.Equal(t, []sbr.ID{sbr.ID(before["n5"])}, r.waitVerdict(resolveWithin).Down)
			require.Equal(t, []string{"n1", "n2", "n3", "n4"}, r.waitOneSide(resolveWithin))

			n5.SetRestart(true)
			r.waitWhole(rejoinWithin)
			require.NotEqual(t, before["n5"], r.incarnations()["n5"])
			require.Empty(t, r.downed())
			r.verify()
		})
	}
}

// A host whose processes crash and are back a second later is a member again, and no other goes down.
func TestRestart_WithinASecond(t *testing.T) {
	for _, m := range allModes {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, m, restarting(3))
			before := r.incarnations()
			r.Member("n3").Kill()
			_, err := r.Member("n3").SBR.WaitExit(r.within(time.Minute), 1)
			require.NoError(t, err)
			r.waitWhole(rejoinWithin)
			after := r.incarnations()
			for _, name := range five {
				require.Equal(t, name == "n3", before[name] != after[name], name)
			}
			require.Empty(t, r.downed())
			r.verify()
		})
	}
}

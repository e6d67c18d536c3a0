package hosts_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing"
	"github.com/serf-sbr/serf-sbr/test/hosts/cluster"
	"github.com/serf-sbr/serf-sbr/test/hosts/lab"
	"github.com/serf-sbr/serf-sbr/test/process"
	"github.com/serf-sbr/serf-sbr/test/serftest"
)

const (
	// rpcTimeout is serf.rpc-timeout of cluster.Fast.
	rpcTimeout = 4 * time.Second
	// slack is for what comes on top on a busy machine: the next look, the hook.
	slack = 3 * time.Second
)

// An agent whose stock agent is gone or silent sees nothing any more: it goes down within rpc-timeout, on
// whichever side it is.
func TestStockAgent_GoneOrSilentIsFailSafe(t *testing.T) {
	for _, tc := range []struct {
		name string
		mode mode
		cut  bool
		hurt func(t *testing.T, r *rig)
	}{
		{"dies", besideModule, false, func(_ *testing.T, r *rig) { r.Member("n5").Serf.Process().Kill() }},
		{"hangs", besideDebian, false, func(t *testing.T, r *rig) { require.NoError(t, r.Member("n5").Serf.Process().Pause(t.Context())) }},
		{"dies on the losing side", besideDebian, true, func(_ *testing.T, r *rig) { r.Member("n5").Serf.Process().Kill() }},
		{"hangs on the losing side", besideModule, true, func(t *testing.T, r *rig) { require.NoError(t, r.Member("n5").Serf.Process().Pause(t.Context())) }},
	} {
		t.Run(tc.name+" "+tc.mode.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tc.mode, staying())
			if tc.cut { // nothing of what is decided reaches it
				require.NoError(t, r.lab.CutStore("n5"))
				require.NoError(t, r.lab.Isolate("n5"))
			}
			hurt := time.Now()
			tc.hurt(t, r)
			exit, err := r.Member("n5").SBR.WaitExit(r.within(time.Minute), 1)
			require.NoError(t, err)
			require.Equal(t, downing.ExitDowned, exit.Code)
			downs, err := r.Downs()
			require.NoError(t, err)
			require.Len(t, downs, 1)
			t.Logf("down after %v: %s", downs[0].At.Sub(hurt), downs[0].Reason)
			require.Less(t, downs[0].At.Sub(hurt), rpcTimeout+slack)
			require.Equal(t, []string{"n1", "n2", "n3", "n4"}, r.waitOneSide(resolveWithin))
			r.verify()
		})
	}
}

// A stock agent that is restarted at once costs nothing: the member goes on as the incarnation that it was.
func TestStockAgent_RestartIsNoEvent(t *testing.T) {
	for _, m := range []mode{besideModule, besideDebian} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, m, restarting(3))
			before := r.incarnations()
			r.Member("n5").Serf.Process().Kill()
			_, err := r.Member("n5").Serf.WaitExit(r.within(time.Minute), 1)
			require.NoError(t, err)
			r.waitWhole(rejoinWithin)
			require.Equal(t, before, r.incarnations())
			for _, name := range five {
				require.Empty(t, r.Exits(name))
			}
			r.verify()
		})
	}
}

// All five hosts are restarted one after the other, in good order: no member is downed, and none but the
// restarted ends.
func TestRollingRestart_DownsNobody(t *testing.T) {
	for _, m := range []mode{besideModule, ownNode} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, m, restarting(1))
			for _, name := range five {
				m := r.Member(name)
				m.SBR.SetRestart(false) // it starts when the agent that it stands beside is there again
				require.NoError(t, m.SBR.Process().Terminate())
				exit, err := m.SBR.WaitExit(r.within(time.Minute), 1)
				require.NoError(t, err)
				require.Zero(t, exit.Code, exit.Text)
				if m.Serf != nil {
					require.NoError(t, m.Serf.Process().Interrupt())
					_, err := m.Serf.WaitExit(r.within(time.Minute), 1)
					require.NoError(t, err)
				}
				m.SBR.SetRestart(true)
				r.waitWhole(rejoinWithin)
			}
			require.Empty(t, r.downed())
			require.Empty(t, r.Chain().Verdicts())
			for _, name := range five {
				require.Len(t, r.Exits(name), 1)
			}
			r.verify()
		})
	}
}

// A pod that is killed and comes back under its old name at a new address is a member again at once: with
// serf.unique-node it is in no conflict with its predecessor, which Serf believes in for a while.
func TestNewAddress_SameNameIsAMemberAgain(t *testing.T) {
	t.Parallel()
	o := restarting(3)
	o.Settings.Serf = map[string]any{"unique-node": "on"}
	o.Hosts, o.Later = five, []string{"n5-again"}
	o.Nodes = map[string]string{"n5-again": "n5"}
	needsRoot(t)
	o.SBR, o.Own = sbrPath(t), true
	l, api := newLab(t, five...)
	c, err := cluster.Start(t.Context(), l, cluster.Kubernetes(api), o)
	require.NoError(t, err)
	t.Cleanup(c.Stop)
	r := &rig{Cluster: c, t: t, lab: l, api: api}
	sees := func(name string, n int) func() bool {
		return func() bool {
			s, err := r.Member(name).Status(t.Context())
			if err != nil {
				return false
			}
			reachable := 0
			for _, m := range s.Members {
				if m.Reachable {
					reachable++
				}
			}
			return reachable == n && r.Member(name).Ready(t.Context()) == nil
		}
	}
	for _, name := range five {
		require.Eventually(t, sees(name, 5), time.Minute, 100*time.Millisecond, name)
	}
	r.Member("n5").SetRestart(false)
	r.Member("n5").Kill()
	killed := time.Now()
	_, err = r.Boot("n5-again")
	require.NoError(t, err)
	joined := func() bool {
		s, err := r.Member("n1").Status(t.Context())
		if err != nil {
			return false
		}
		again, err := r.Member("n5-again").Status(t.Context())
		if err != nil {
			return false
		}
		for _, m := range s.Members {
			if m.Incarnation == again.Incarnation {
				return m.Reachable
			}
		}
		return false
	}
	require.Eventually(t, joined, 10*time.Second, 50*time.Millisecond)
	t.Logf("a member after %v", time.Since(killed))
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5-again"} {
		require.Eventually(t, sees(name, 5), resolveWithin, 100*time.Millisecond,
			"%s: once its predecessor is downed all five work", name)
	}
	require.Empty(t, r.downed())
	r.verify()
}

// Without a resolver both sides of a cut stay, each convinced that the other is dead: that is what all this
// is for, and it shows that the lab cuts what Serf sees.
func TestStockAgents_BothSidesStay(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	l, err := lab.New(t.Context(), lab.Options{Hosts: five})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	serf, err := serftest.Ensure(t.Context(), serftest.Module, os.Stderr)
	require.NoError(t, err)
	for _, name := range five {
		h := l.Host(name)
		o := serftest.Options{Node: name, Bind: h.At(7946), RPC: "127.0.0.1:7373",
			RetryJoin: []string{l.Host("n1").At(7946)}, Profile: "local"}
		args, err := o.CommandLine(l.Dir())
		require.NoError(t, err)
		_, err = h.Start(process.Command{Name: "serf", Program: serf, Args: args})
		require.NoError(t, err)
	}
	alive := func(name string) string {
		said, _ := l.Host(name).Output(t.Context(), serf, "members", "-status=alive")
		var names []string
		for line := range strings.Lines(said) {
			names = append(names, strings.Fields(line)[0])
		}
		return strings.Join(names, " ")
	}
	see := func(want map[string]string) func() bool {
		return func() bool {
			for name, others := range want {
				if len(strings.Fields(alive(name))) != len(strings.Fields(others)) {
					return false
				}
			}
			return true
		}
	}
	require.Eventually(t, see(map[string]string{"n1": "n1 n2 n3 n4 n5", "n5": "n1 n2 n3 n4 n5"}), time.Minute,
		100*time.Millisecond)
	require.NoError(t, l.Partition([]string{"n1", "n2", "n3"}, []string{"n4", "n5"}))
	require.Eventually(t, see(map[string]string{"n1": "n1 n2 n3", "n3": "n1 n2 n3", "n4": "n4 n5",
		"n5": "n4 n5"}), 2*time.Minute, 100*time.Millisecond)
	require.NoError(t, l.Heal())
	require.Eventually(t, see(map[string]string{"n1": "n1 n2 n3 n4 n5", "n5": "n1 n2 n3 n4 n5"}), 2*time.Minute,
		100*time.Millisecond)
}

package strategies_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// says checks the kind that a strategy answers to the view of one side after a clean cut.
func says(t *testing.T, want sbr.Kind, s sbr.Strategy, p picture, side int) {
	t.Helper()
	v := p.from(side)
	c := s.Decide(&v)
	require.Equal(t, want.String(), c.Kind.String(), c.Reason)
}

func TestConformance_StaticQuorum(t *testing.T) {
	q := func(n int) sbr.Strategy { return strategies.StaticQuorum{QuorumSize: n} }
	t.Run("more than 2q-1 members: down all", func(t *testing.T) {
		says(t, sbr.DownAll, q(3), draw("A B C | D E F"), 0)
		says(t, sbr.DownAll, q(3), draw("A B C | D E F"), 1)
	})
	t.Run("the check for too many comes before indirectly connected", func(t *testing.T) {
		v := draw("A B C D E F").gossip(0, "A<>B")
		require.Equal(t, sbr.DownAll, q(3).Decide(&v).Kind)
	})
	t.Run("then indirectly connected", func(t *testing.T) {
		v := draw("A B C | D").gossip(0, "A<>B")
		require.Equal(t, sbr.DownIndirectlyConnected, q(3).Decide(&v).Kind)
	})
	t.Run("then N-U >= q: down unreachable", func(t *testing.T) { says(t, sbr.DownUnreachable, q(3), draw("A B C | D E"), 0) })
	t.Run("else down reachable", func(t *testing.T) { says(t, sbr.DownReachable, q(3), draw("A B C | D E"), 1) })
	t.Run("too many counts members with the role only", func(t *testing.T) {
		says(t, sbr.DownUnreachable, strategies.StaticQuorum{QuorumSize: 1, Role: "r"}, draw("A* B C | D E"), 0)
	})
	t.Run("joining is not counted, leaving is, exiting is not", func(t *testing.T) {
		says(t, sbr.DownReachable, q(2), draw("A Bj | C"), 0)
		says(t, sbr.DownUnreachable, q(2), draw("A Bl | C"), 0)
		says(t, sbr.DownReachable, q(2), draw("A Bx | C"), 0)
	})
}

func TestConformance_KeepMajority(t *testing.T) {
	all, role := strategies.KeepMajority{}, strategies.KeepMajority{Role: "r"}
	t.Run("first indirectly connected", func(t *testing.T) {
		v := draw("A B | C").gossip(0, "A<>B")
		require.Equal(t, sbr.DownIndirectlyConnected, role.Decide(&v).Kind)
	})
	t.Run("no member with the role: down all", func(t *testing.T) { says(t, sbr.DownAll, role, draw("A B | C"), 0) })
	t.Run("R > U: down unreachable", func(t *testing.T) { says(t, sbr.DownUnreachable, all, draw("B C | A"), 0) })
	t.Run("R < U: down reachable", func(t *testing.T) { says(t, sbr.DownReachable, all, draw("B C | A"), 1) })
	t.Run("a tie: down reachable if the lowest address is unreachable, else down unreachable", func(t *testing.T) {
		says(t, sbr.DownReachable, all, draw("A | B"), 1)
		says(t, sbr.DownUnreachable, all, draw("A | B"), 0)
	})
	t.Run("pessimistic: this side without the leaving ones", func(t *testing.T) { says(t, sbr.DownAll, all, draw("A Bl Cl | D E"), 0) })
	t.Run("pessimistic: the other side with leaving, joining and weakly-up", func(t *testing.T) {
		says(t, sbr.DownUnreachable, all, draw("A B C | Dl"), 0)
		says(t, sbr.DownAll, all, draw("B C D | Al E Fj Gw"), 0)
	})
	t.Run("pessimistic: only members with the role", func(t *testing.T) {
		says(t, sbr.DownUnreachable, role, draw("A* B* | C* Dj Ej Fj"), 0)
	})
	t.Run("pessimistic: a tie goes by the lowest up address of both sides", func(t *testing.T) {
		says(t, sbr.DownAll, all, draw("Al C D | B E"), 0)
		says(t, sbr.DownUnreachable, all, draw("Al B D | C E"), 0)
	})
	t.Run("pessimistic: nobody is up: down all", func(t *testing.T) { says(t, sbr.DownAll, all, draw("Al Bl | Cl"), 0) })
	t.Run("down reachable is never checked again", func(t *testing.T) { says(t, sbr.DownReachable, all, draw("Al Bj | C D"), 0) })
	t.Run("more than two parts without a majority: each downs itself", func(t *testing.T) {
		for side := range 3 {
			says(t, sbr.DownReachable, all, draw("A B | C D | E F"), side)
		}
	})
}

func TestConformance_KeepOldest(t *testing.T) {
	on, off := strategies.KeepOldest{DownIfAlone: true}, strategies.KeepOldest{}
	t.Run("first indirectly connected", func(t *testing.T) {
		v := draw("A B | C").gossip(0, "A<>B")
		require.Equal(t, sbr.DownIndirectlyConnected, on.Decide(&v).Kind)
	})
	t.Run("no member with the role: down all", func(t *testing.T) {
		says(t, sbr.DownAll, strategies.KeepOldest{Role: "r"}, draw("A B | C"), 0)
	})
	t.Run("the oldest is here: down unreachable", func(t *testing.T) { says(t, sbr.DownUnreachable, on, draw("A B | C D E"), 0) })
	t.Run("the oldest is there: down reachable", func(t *testing.T) { says(t, sbr.DownReachable, on, draw("A B | C D E"), 1) })
	t.Run("alone here against two: down reachable", func(t *testing.T) { says(t, sbr.DownReachable, on, draw("A | B C"), 0) })
	t.Run("alone there against two: down unreachable", func(t *testing.T) { says(t, sbr.DownUnreachable, on, draw("A | B C"), 1) })
	t.Run("without down-if-alone it may be alone", func(t *testing.T) {
		says(t, sbr.DownUnreachable, off, draw("A | B C"), 0)
		says(t, sbr.DownReachable, off, draw("A | B C"), 1)
	})
	t.Run("of two members the oldest stays even alone", func(t *testing.T) {
		says(t, sbr.DownUnreachable, on, draw("A | B"), 0)
		says(t, sbr.DownReachable, on, draw("A | B"), 1)
	})
	t.Run("a single remaining oldest is never downed", func(t *testing.T) {
		says(t, sbr.None, on, draw("A"), 0)
		says(t, sbr.DownUnreachable, on, draw("A | Bx"), 0)
	})
	t.Run("re-evaluated: the oldest is chosen among up members only", func(t *testing.T) { says(t, sbr.DownAll, off, draw("Al D | B C"), 0) })
	t.Run("re-evaluated: leaving members are left out on both sides", func(t *testing.T) {
		says(t, sbr.DownAll, on, draw("A Bl | C D"), 0)
		says(t, sbr.DownUnreachable, on, draw("A Bl | C Dl"), 0)
	})
	t.Run("re-evaluated: joining members are counted only with down-if-alone", func(t *testing.T) {
		says(t, sbr.DownAll, on, draw("A | B Cj"), 0)
		says(t, sbr.DownUnreachable, off, draw("A | B Cj"), 0)
	})
	t.Run("re-evaluated: another answer means down all", func(t *testing.T) { says(t, sbr.DownAll, on, draw("A Bj | C D"), 1) })
}

func TestConformance_DownAll(t *testing.T) {
	says(t, sbr.DownAll, strategies.DownAll{}, draw("A B C | D"), 0)
	v := draw("A B C").gossip(0, "A<>B")
	require.Equal(t, sbr.DownAll, strategies.DownAll{}.Decide(&v).Kind, "there is no step for indirectly connected members")
}

func TestConformance_LeaseMajority(t *testing.T) {
	s := strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	role := strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second, Role: "r"}
	delay := func(s sbr.Strategy, p picture, side int) time.Duration {
		v := p.from(side)
		c := s.Decide(&v)
		require.Equal(t, sbr.AcquireLeaseAndDownUnreachable, c.Kind)
		require.Equal(t, c.Delay > 0, c.Minority)
		return c.Delay
	}
	t.Run("indirectly connected: the lease is asked for at once, also on the minority side", func(t *testing.T) {
		v := draw("A B C | D E F G").gossip(0, "B<>C")
		c := s.Decide(&v)
		require.Equal(t, sbr.AcquireLeaseAndDownIndirectlyConnected, c.Kind)
		require.Zero(t, c.Delay)
	})
	t.Run("the majority asks at once", func(t *testing.T) { require.Zero(t, delay(s, draw("A B C | D E"), 0)) })
	t.Run("the minority waits", func(t *testing.T) { require.Equal(t, 2*time.Second, delay(s, draw("A B C | D E"), 1)) })
	t.Run("no member with the role: not a minority", func(t *testing.T) { require.Zero(t, delay(role, draw("A | B C"), 0)) })
	t.Run("2U = N: minority if the lowest counted address is unreachable", func(t *testing.T) {
		require.Zero(t, delay(s, draw("A B | C D"), 0))
		require.Equal(t, 2*time.Second, delay(s, draw("A B | C D"), 1))
		require.Equal(t, 2*time.Second, delay(role, draw("A D* | B C*"), 0))
	})
	t.Run("no re-check of membership changes", func(t *testing.T) { require.Zero(t, delay(s, draw("Al Bl C | D Ej Fj"), 0)) })
	t.Run("a minority that gets the lease survives", func(t *testing.T) {
		v := draw("A | B C").from(0)
		d := sbr.Decide(s, &v, sbr.Off)
		require.Equal(t, sbr.DownUnreachable, d.Final.Granted())
		require.Equal(t, "B C", names(d.Down))
	})
}

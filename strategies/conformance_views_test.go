package strategies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// The conformance tests have one test for each sentence of the reference resolver's documentation and code on member views and down sets
// (here), on the strategies (conformance_test.go) and on indirectly connected members (conformance_indirect_test.go).
// Each name is the sentence.

const everyStatus = "A Bj Cw Dl Ex Fd"

func TestConformance_MemberViews(t *testing.T) {
	cut := draw(everyStatus + " | G Hj Iw Jl Kx Ld").from(0)

	t.Run("the base members are up and leaving, never joining, weakly-up, exiting or downed", func(t *testing.T) {
		here, there := cut.Count("")
		require.Equal(t, [2]int{2, 2}, [2]int{here.Base(), there.Base()})
	})
	t.Run("a role limits who is counted", func(t *testing.T) {
		v := draw("A* B Cl* Dj* | E* F").from(0)
		here, there := v.Count("r")
		require.Equal(t, [2]int{2, 1}, [2]int{here.Base(), there.Base()})
	})
	t.Run("an unreachable member may have any status", func(t *testing.T) {
		for _, m := range []string{"B", "Bj", "Bw", "Bl", "Bx", "Bd"} {
			v := draw("A | " + m).from(0)
			require.NotEqual(t, sbr.None, strategies.KeepMajority{}.Decide(&v).Kind, m)
		}
	})
	t.Run("the order is host, then port as a number", func(t *testing.T) {
		members := []sbr.Member{
			{ID: "c", Addr: "10.0.0.1:10000", Status: sbr.Up}, {ID: "b", Addr: "10.0.0.1:9000", Status: sbr.Up}, {ID: "a", Addr: "10.0.0.2:1", Status: sbr.Up},
		}
		v := sbr.NewView("a", members, nil, nil)
		require.Equal(t, sbr.ID("b"), v.Lowest("").ID)
		require.Equal(t, []sbr.ID{"b", "c", "a"}, []sbr.ID{v.Members[0].ID, v.Members[1].ID, v.Members[2].ID})
	})
	t.Run("the lowest address is the first of the counted members with the role, not of all and not of the joining ones", func(t *testing.T) {
		v := draw("Aj* Bx* C D* E*").from(0)
		require.Equal(t, sbr.ID("D"), v.Lowest("r").ID)
		require.Equal(t, sbr.ID("C"), v.Lowest("").ID)
	})
	t.Run("the oldest is the first by age, a tie goes by address", func(t *testing.T) {
		v := draw("A B C").oldest("C").from(0)
		require.Equal(t, sbr.ID("C"), v.Oldest("").ID)
		v = sameAge(draw("C B A")).from(0)
		require.Equal(t, sbr.ID("A"), v.Oldest("").ID)
	})
	t.Run("joining and weakly-up members are the youngest", func(t *testing.T) {
		v := draw("Aj Bw C").oldest("A B").from(0)
		require.Equal(t, sbr.ID("C"), v.Oldest("").ID)
	})
}

func TestConformance_DownSets(t *testing.T) {
	sides := draw(everyStatus + " | G Hj Iw Jl Kx Ld")
	down := func(kind sbr.Kind) string {
		v := sides.from(0)
		return names(sbr.Decide(always(kind), &v, sbr.Off).Down)
	}
	t.Run("downable are the base members and the joining ones, without the role", func(t *testing.T) {
		require.Equal(t, "A B C D G H I J", down(sbr.DownAll))
		v := draw("A Bj | C* Dj").from(0)
		require.Equal(t, "A B", names(sbr.Decide(strategies.KeepMajority{Role: "r"}, &v, sbr.Off).Down))
	})
	t.Run("exiting and downed members are never downed again, joining ones always are", func(t *testing.T) {
		for _, k := range []sbr.Kind{sbr.DownAll, sbr.DownReachable, sbr.DownUnreachable} {
			require.NotContains(t, down(k), "E")
			require.NotContains(t, down(k), "K")
		}
		require.Contains(t, down(sbr.DownReachable), "B C")
	})
	t.Run("down-unreachable downs what is downable and unreachable", func(t *testing.T) {
		require.Equal(t, "G H I J", down(sbr.DownUnreachable))
		require.Equal(t, "G H I J", down(sbr.AcquireLeaseAndDownUnreachable))
	})
	t.Run("down-reachable downs the own side with self", func(t *testing.T) {
		require.Equal(t, "A B C D", down(sbr.DownReachable))
	})
	t.Run("none downs nobody", func(t *testing.T) { require.Empty(t, down(sbr.None)) })

	t.Run("down-indirectly-connected downs the downable of them", func(t *testing.T) {
		v := draw("A Bx C").gossip(0, "A<>B C>A")
		d := sbr.Decide(strategies.KeepMajority{}, &v, sbr.Off)
		require.Equal(t, []sbr.ID{"A", "B", "C"}, v.IndirectlyConnected())
		require.Equal(t, "A C", names(d.Down))
	})
	t.Run("a denied lease turns down-unreachable into down-reachable", func(t *testing.T) {
		v := sides.from(0)
		r := sbr.Decide(strategies.LeaseMajority{}, &v, sbr.Off).Reversed(&v, sbr.Off)
		require.Equal(t, sbr.DownReachable, r.Final)
		require.Equal(t, "A B C D", names(r.Down))
	})
	t.Run("a denied lease turns down-indirectly-connected into its reverse: them and everything reachable, not the other side", func(t *testing.T) {
		v := draw("A B C | D E").gossip(0, "B<>C")
		d := sbr.Decide(strategies.LeaseMajority{}, &v, sbr.Off)
		require.Equal(t, "B C D E", names(d.Down))
		r := d.Reversed(&v, sbr.Off)
		require.Equal(t, sbr.ReverseDownIndirectlyConnected, r.Final)
		require.Equal(t, "A B C", names(r.Down))
	})
	t.Run("a decision without a lease has no reverse", func(t *testing.T) {
		v := sides.from(0)
		d := sbr.Decide(strategies.DownAll{}, &v, sbr.Off)
		require.Equal(t, d, d.Reversed(&v, sbr.Off))
	})
}

func TestConformance_Defaults(t *testing.T) {
	d := strategies.DefaultSettings()
	require.True(t, d.KeepOldest.DownIfAlone, "keep-oldest.down-if-alone is on")
	require.Equal(t, 2*time.Second, d.LeaseMajority.AcquireLeaseDelayForMinority)
	require.Equal(t, 1, d.KeepReferee.DownAllIfLessThanNodes)
	require.Zero(t, d.StaticQuorum.QuorumSize, "static-quorum.quorum-size has no default: it must be set")
	for _, role := range []string{d.StaticQuorum.Role, d.KeepMajority.Role, d.KeepOldest.Role, d.LeaseMajority.Role} {
		require.Empty(t, role, "a role counts all members unless it is set")
	}
	require.True(t, slices.IsSorted(strategies.Keys()))
}

// always is a strategy that gives one answer.
type always sbr.Kind

func (a always) Decide(*sbr.View) sbr.Choice {
	return sbr.Choice{Kind: sbr.Kind(a), Reason: "a test says so"}
}

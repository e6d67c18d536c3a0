package strategies_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestConformance_StaticQuorum(t *testing.T) {
	three := strategies.StaticQuorum{QuorumSize: 3}
	two := strategies.StaticQuorum{QuorumSize: 2}
	role := strategies.StaticQuorum{QuorumSize: 2, Role: "r"}
	checkRules(t, []rule{
		{name: "a side with the quorum stays", strategy: three, picture: draw("A C E | B D"), want: sbr.DownUnreachable, down: "B D",
			reason: "3 of 5 counted members are reachable, the quorum is 3"},
		{name: "a side without the quorum goes down", strategy: three, picture: draw("A C E | B D"), side: 1, want: sbr.DownReachable, down: "B D",
			reason: "2 of 5 counted members are reachable, fewer than the quorum of 3"},
		{name: "neither side has the quorum, first", strategy: three, picture: draw("A B | C D"), want: sbr.DownReachable, down: "A B"},
		{name: "neither side has the quorum, second", strategy: three, picture: draw("A B | C D"), side: 1, want: sbr.DownReachable, down: "C D"},
		{name: "more than the quorum is as good", strategy: three, picture: draw("A B C D | E"), want: sbr.DownUnreachable, down: "E"},
		{name: "nobody is unreachable", strategy: three, picture: draw("A B C"), want: sbr.None, reason: "nobody is unreachable"},
		{name: "nobody is unreachable, too few members", strategy: three, picture: draw("A B"), want: sbr.None},
		{name: "nobody is unreachable, too many members", strategy: two, picture: draw("A B C D"), want: sbr.None},

		{name: "2q-1 members are not too many", strategy: three, picture: draw("A B C D E |"), side: 1, want: sbr.DownReachable},
		{name: "more than 2q-1 members: all go down", strategy: three, picture: draw("A B C | D E F"), want: sbr.DownAll, down: "A B C D E F",
			reason: "6 counted members are more than 5, the most that a quorum of 3 can decide between"},
		{name: "more than 2q-1 members: all go down, other side", strategy: three, picture: draw("A B C D E | F"), side: 1, want: sbr.DownAll, down: "A B C D E F"},
		{name: "too many is asked before indirectly connected", strategy: two, picture: draw("A B C D"), reports: "A<>B", want: sbr.DownAll, down: "A B C D"},
		{name: "indirectly connected is asked before the quorum", strategy: three, picture: draw("A B C D E"), reports: "A<>B", want: sbr.DownIndirectlyConnected, down: "A B"},

		{name: "only members with the role make the quorum, all of the side go down", strategy: role, picture: draw("A* B* C | D E*"), want: sbr.DownUnreachable, down: "D E",
			reason: `2 of 3 counted members with role "r" are reachable, the quorum is 2`},
		{name: "only members with the role make the quorum, other side", strategy: role, picture: draw("A* | B C* D"), side: 1, want: sbr.DownReachable, down: "B C D"},
		{name: "too many counts members with the role only", strategy: role, picture: draw("A* B* C D | E F G*"), want: sbr.DownUnreachable, down: "E F G"},
		{name: "too many with the role", strategy: role, picture: draw("A* B* | C* D*"), want: sbr.DownAll, down: "A B C D"},
		{name: "nobody has the role", strategy: role, picture: draw("A B | C"), want: sbr.DownReachable, down: "A B"},

		{name: "joining is not counted, first", strategy: three, picture: draw("A B Cj | D E Fj"), want: sbr.DownReachable, down: "A B C"},
		{name: "joining is not counted, second", strategy: three, picture: draw("A B Cj | D E Fj"), side: 1, want: sbr.DownReachable, down: "D E F"},
		{name: "joining became up here", strategy: three, picture: draw("A B C | D E Fj"), want: sbr.DownUnreachable, down: "D E F"},
		{name: "joining became up there", strategy: three, picture: draw("A B Cj | D E F"), want: sbr.DownReachable, down: "A B C"},
		{name: "joining became up on both sides: too many", strategy: three, picture: draw("A B C | D E F"), side: 1, want: sbr.DownAll, down: "A B C D E F"},
		{name: "weakly-up is not counted", strategy: three, picture: draw("A B Cw | D E"), want: sbr.DownReachable, down: "A B C"},
		{name: "leaving is counted", strategy: three, picture: draw("A B Cl | D E"), want: sbr.DownUnreachable, down: "D E"},
		{name: "exiting is not counted", strategy: three, picture: draw("A B Cx | D E"), want: sbr.DownReachable, down: "A B"},
		{name: "downed is not counted", strategy: three, picture: draw("A B Cd | D E"), want: sbr.DownReachable, down: "A B"},
		{name: "exiting does not make too many", strategy: three, picture: draw("A B C | D E Fx"), want: sbr.DownUnreachable, down: "D E"},
	})
}

func TestStaticQuorum_AnyQuorumSizeIsAnswered(t *testing.T) {
	p := draw("A B | C")
	v := p.from(0)
	for q, want := range map[int]sbr.Kind{
		math.MinInt: sbr.DownAll, -1: sbr.DownAll, 0: sbr.DownAll, 1: sbr.DownAll, 2: sbr.DownUnreachable,
		3: sbr.DownReachable, math.MaxInt: sbr.DownReachable,
	} {
		if q == math.MinInt {
			want = strategies.StaticQuorum{QuorumSize: q}.Decide(&v).Kind // any answer will do: it does not validate
		}
		require.Equal(t, want, strategies.StaticQuorum{QuorumSize: q}.Decide(&v).Kind, "quorum %d", q)
	}
}

// The reference warns as soon as the cluster has grown too large, not only once it is cut.
func TestStaticQuorum_WarnsOfTooManyMembers(t *testing.T) {
	two := strategies.StaticQuorum{QuorumSize: 2}
	four, three, joining := draw("A B C D").from(0), draw("A B C").from(0), draw("A B C Dj Ex").from(0)
	require.Equal(t, "4 counted members are more than 3, the most that a quorum of 2 can decide between",
		two.Warning(&four))
	require.Empty(t, two.Warning(&three))
	require.Empty(t, two.Warning(&joining))
	require.Empty(t, strategies.StaticQuorum{QuorumSize: 2, Role: "r"}.Warning(&four))
}

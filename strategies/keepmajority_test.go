package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestConformance_KeepMajority(t *testing.T) {
	all, role := strategies.KeepMajority{}, strategies.KeepMajority{Role: "r"}
	checkRules(t, []rule{
		{name: "the larger side stays", strategy: all, picture: draw("A C E | B D"), want: sbr.DownUnreachable, down: "B D",
			reason: "3 of 5 counted members are reachable, a majority"},
		{name: "the smaller side goes down", strategy: all, picture: draw("A C E | B D"), side: 1, want: sbr.DownReachable, down: "B D",
			reason: "2 of 5 counted members are reachable, a minority"},
		{name: "the lowest address does not help a smaller side", strategy: all, picture: draw("A B | C D E"), want: sbr.DownReachable, down: "A B"},
		{name: "a lone member goes down", strategy: all, picture: draw("B | A C"), want: sbr.DownReachable, down: "B",
			reason: "1 of 3 counted members is reachable, a minority"},
		{name: "of two halves the one with the lowest address stays", strategy: all, picture: draw("A D | B C"), want: sbr.DownUnreachable, down: "B C",
			reason: "2 of 4 counted members are reachable, a tie, and the lowest address (A) is on this side"},
		{name: "of two halves the other one goes down", strategy: all, picture: draw("A D | B C"), side: 1, want: sbr.DownReachable, down: "B C",
			reason: "2 of 4 counted members are reachable, a tie, and the lowest address (A) is on the other side"},
		{name: "of two members the one with the lowest address stays", strategy: all, picture: draw("A | B"), want: sbr.DownUnreachable, down: "B"},
		{name: "of two members the other one goes down", strategy: all, picture: draw("A | B"), side: 1, want: sbr.DownReachable, down: "B"},
		{name: "in three parts without a majority each part downs itself, first", strategy: all, picture: draw("A B | C D | E"), want: sbr.DownReachable, down: "A B"},
		{name: "in three parts without a majority each part downs itself, second", strategy: all, picture: draw("A B | C D | E"), side: 1, want: sbr.DownReachable, down: "C D"},
		{name: "in three parts without a majority each part downs itself, third", strategy: all, picture: draw("A B | C D | E"), side: 2, want: sbr.DownReachable, down: "E"},
		{name: "nobody is unreachable", strategy: all, picture: draw("A B C"), want: sbr.None, reason: "nobody is unreachable"},
		{name: "an empty view", strategy: all, picture: draw(""), want: sbr.None},

		{name: "only members with the role are counted, all of the side go down", strategy: role, picture: draw("A* B* | C D* E"), want: sbr.DownUnreachable, down: "C D E",
			reason: `2 of 3 counted members with role "r" are reachable, a majority`},
		{name: "without the role a larger side goes down", strategy: role, picture: draw("A* B* | C D* E"), side: 1, want: sbr.DownReachable, down: "C D E"},
		{name: "a tie goes to the lowest address with the role", strategy: role, picture: draw("A D* E | B C*"), want: sbr.DownReachable, down: "A D E"},
		{name: "a tie goes to the lowest address with the role, other side", strategy: role, picture: draw("A D* E | B C*"), side: 1, want: sbr.DownUnreachable, down: "A D E"},
		{name: "nobody has the role", strategy: role, picture: draw("C | E"), want: sbr.DownAll, down: "C E",
			reason: `no member with role "r" is up or leaving, so no side can be told from the other`},
		{name: "only a joining member has the role", strategy: role, picture: draw("C Aj* | E"), want: sbr.DownAll, down: "A C E"},
		{name: "nobody is counted", strategy: all, picture: draw("Aj | Bw"), want: sbr.DownAll, down: "A B",
			reason: "no member is up or leaving, so no side can be told from the other"},

		{name: "a joining member is not counted but goes down", strategy: all, picture: draw("B D | Aj C"), side: 1, want: sbr.DownReachable, down: "A C"},
		{name: "a joining member is not the lowest address", strategy: all, picture: draw("Aj C | B"), side: 1, want: sbr.DownAll, down: "A B C"},
		{name: "a joining member on the losing side goes down with it", strategy: all, picture: draw("A Bj | C D E"), want: sbr.DownReachable, down: "A B"},
		{name: "joining members here do not make this side larger", strategy: all, picture: draw("A B Cj Dw | E F G"), want: sbr.DownReachable, down: "A B C D"},
		{name: "a leaving member is counted", strategy: all, picture: draw("A Bl | C"), side: 1, want: sbr.DownReachable, down: "C"},
		{name: "an exiting member is neither counted nor downed", strategy: all, picture: draw("A B | C Dx"), want: sbr.DownUnreachable, down: "C"},
		{name: "a downed member is neither counted nor downed", strategy: all, picture: draw("A B | C Dd"), side: 1, want: sbr.DownReachable, down: "C"},

		{name: "recheck: joining members over there may make it larger", strategy: all, picture: draw("A B Fj Gj | C D E"), side: 1, want: sbr.DownAll, down: "A B C D E F G",
			reason: "3 of 5 counted members are reachable, a majority, but not for sure: 0 leaving on this side may be gone and 2 joining on the other may be up"},
		{name: "recheck: weakly-up members over there count as joining ones", strategy: all, picture: draw("A B Fw Gw | C D E"), side: 1, want: sbr.DownAll, down: "A B C D E F G"},
		{name: "recheck: joining members over there may make it a tie that we lose", strategy: all, picture: draw("A B Fj | C D E"), side: 1, want: sbr.DownAll, down: "A B C D E F"},
		{name: "recheck: a tie with the lowest address here is won", strategy: all, picture: draw("A B C | D E Fj"), want: sbr.DownUnreachable, down: "D E F"},
		{name: "recheck: joining members here are no danger", strategy: all, picture: draw("C D E Fj | A B"), want: sbr.DownUnreachable, down: "A B"},
		{name: "recheck: leaving members here may be gone", strategy: all, picture: draw("Al B Ej | C D"), want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: leaving members over there still count", strategy: all, picture: draw("A B C | Dl El"), want: sbr.DownUnreachable, down: "D E"},
		{name: "recheck: leaving members may be gone here and may be there still", strategy: all, picture: draw("A Bl Cl | Dl E"), want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: the lowest address is looked for among the up members", strategy: all, picture: draw("Al C D | B E"), want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: the lowest address among the up members is on this side", strategy: all, picture: draw("Al B D | C E"), want: sbr.DownUnreachable, down: "C E"},
		{name: "recheck: nobody is up", strategy: all, picture: draw("Al Bl | Cl"), want: sbr.DownAll, down: "A B C"},
		{name: "recheck: only members with the role", strategy: role, picture: draw("A* B* | C* Dj Ej"), want: sbr.DownUnreachable, down: "C D E"},
		{name: "recheck: a joining member with the role", strategy: role, picture: draw("B* C* | A* Dj* E"), want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: a side that goes down is not asked again", strategy: all, picture: draw("A B Fj | C D E"), want: sbr.DownReachable, down: "A B F"},

		{name: "indirectly connected members go down, the others stay", strategy: all, picture: draw("A B C"), reports: "A<>B", want: sbr.DownIndirectlyConnected, down: "A B",
			reason: "2 members are indirectly connected: some members reach them and some do not"},
		{name: "of the indirectly connected those on their way out are not downed", strategy: all, picture: draw("A Bx C"), reports: "A<>B C>A",
			want: sbr.DownIndirectlyConnected, down: "A C"},
		{name: "indirectly connected comes before nobody has the role", strategy: role, picture: draw("A B C"), reports: "A<>B", want: sbr.DownIndirectlyConnected, down: "A B"},
	})
}

func TestKeepMajority_SaysWhoIsSmaller(t *testing.T) {
	p := draw("A C E | B D")
	larger, smaller := p.from(0), p.from(1)
	require.False(t, strategies.KeepMajority{}.Decide(&larger).Minority)
	require.True(t, strategies.KeepMajority{}.Decide(&smaller).Minority)
}

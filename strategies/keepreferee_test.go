package strategies_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestConformance_KeepReferee(t *testing.T) {
	byName := strategies.KeepReferee{Address: "C", DownAllIfLessThanNodes: 1}
	byAddr := strategies.KeepReferee{Address: "10.0.0.103:7946", DownAllIfLessThanNodes: 1}
	three := strategies.KeepReferee{Address: "C", DownAllIfLessThanNodes: 3}
	checkRules(t, []rule{
		{name: "the side of the referee stays", strategy: byName, picture: draw("A B | C"), side: 1, want: sbr.DownUnreachable, down: "A B",
			reason: "the referee (C) is on this side; 1 of 3 counted members is reachable"},
		{name: "the side without the referee goes down", strategy: byName, picture: draw("A B | C"), want: sbr.DownReachable, down: "A B",
			reason: "the referee (C) is not on this side; 2 of 3 counted members are reachable"},
		{name: "the referee is found by address", strategy: byAddr, picture: draw("A B | C D"), side: 1, want: sbr.DownUnreachable, down: "A B"},
		{name: "the referee is found by address, other side", strategy: byAddr, picture: draw("A B | C D"), want: sbr.DownReachable, down: "A B"},
		{name: "the referee is not a member", strategy: byName, picture: draw("A B | D"), want: sbr.DownReachable, down: "A B"},
		{name: "the referee is not a member, other side", strategy: byName, picture: draw("A B | D"), side: 1, want: sbr.DownReachable, down: "D"},
		{name: "an empty address is nobody", strategy: strategies.KeepReferee{}, picture: nameless(draw("A | B")), want: sbr.DownReachable, down: "A"},
		{name: "nobody is unreachable", strategy: byName, picture: draw("A B"), want: sbr.None, reason: "nobody is unreachable"},

		{name: "too few members with the referee: all go down", strategy: three, picture: draw("A B | C D"), side: 1, want: sbr.DownAll, down: "A B C D"},
		{name: "enough members with the referee", strategy: three, picture: draw("A B | C D E"), side: 1, want: sbr.DownUnreachable, down: "A B"},
		{name: "joining members do not count for the limit", strategy: three, picture: draw("A B | C D Ej"), side: 1, want: sbr.DownAll, down: "A B C D E",
			reason: "the referee (C) is on this side, but 2 of 4 counted members are reachable, fewer than the limit of 3"},
		{name: "leaving members count for the limit", strategy: three, picture: draw("A B | C D El"), side: 1, want: sbr.DownUnreachable, down: "A B"},
		{name: "the limit does not matter to the side without the referee", strategy: three, picture: draw("A B | C D"), want: sbr.DownReachable, down: "A B"},
		{name: "no limit", strategy: strategies.KeepReferee{Address: "C"}, picture: draw("A B | C"), side: 1, want: sbr.DownUnreachable, down: "A B"},

		{name: "a leaving referee counts", strategy: byName, picture: draw("A B | Cl"), side: 1, want: sbr.DownUnreachable, down: "A B"},
		{name: "a joining referee is not one yet", strategy: byName, picture: draw("A B | Cj D"), side: 1, want: sbr.DownReachable, down: "C D"},
		{name: "an exiting referee is none any more", strategy: byName, picture: draw("A B | Cx D"), side: 1, want: sbr.DownReachable, down: "D"},
		{name: "indirectly connected comes first, the referee is no exception", strategy: byName, picture: draw("A B C"), reports: "B<>C", want: sbr.DownIndirectlyConnected, down: "B C"},
		{name: "indirectly connected comes before the missing referee", strategy: byName, picture: draw("A B D"), reports: "A<>B", want: sbr.DownIndirectlyConnected, down: "A B"},
	})
}

func nameless(p picture) picture {
	for i := range p.members {
		p.members[i].Name = ""
	}
	return p
}

// A name may be used again while its older incarnation is still listed. Both sides must mean the same one, or
// both would stay.
func TestKeepReferee_TheYoungestIncarnationIsMeant(t *testing.T) {
	p := draw("A C | B D")
	p.members[3].Name = "C" // D is the younger C
	s := strategies.KeepReferee{Address: "C"}
	first, second := p.from(0), p.from(1)
	require.Equal(t, sbr.DownReachable, s.Decide(&first).Kind)
	require.Equal(t, sbr.DownUnreachable, s.Decide(&second).Kind)
}

package strategies_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestConformance_KeepOldest(t *testing.T) {
	on, off := strategies.KeepOldest{DownIfAlone: true}, strategies.KeepOldest{}
	role := strategies.KeepOldest{DownIfAlone: true, Role: "r"}
	e := func(text string) picture { return draw(text).oldest("E D") }
	checkRules(t, []rule{
		{name: "the side of the oldest stays", strategy: on, picture: e("A E | B C D"), want: sbr.DownUnreachable, down: "B C D",
			reason: "the oldest member (E) is on this side; 2 of 5 counted members are reachable"},
		{name: "the side without the oldest goes down", strategy: on, picture: e("A E | B C D"), side: 1, want: sbr.DownReachable, down: "B C D",
			reason: "the oldest member (E) is on the other side; 3 of 5 counted members are reachable"},
		{name: "nobody is unreachable", strategy: on, picture: e("A E"), want: sbr.None, reason: "nobody is unreachable"},
		{name: "the only member is never downed", strategy: on, picture: e("A"), want: sbr.None},
		{name: "the only member is never downed, whoever is on its way out", strategy: on, picture: e("A | Bx"), want: sbr.DownUnreachable},
		{name: "the oldest with the role counts", strategy: role, picture: e("A E | B C* D*"), want: sbr.DownReachable, down: "A E"},
		{name: "the oldest with the role counts, other side", strategy: role, picture: e("A E | B C* D*"), side: 1, want: sbr.DownUnreachable, down: "A E"},
		{name: "nobody has the role", strategy: role, picture: e("A E | B"), want: sbr.DownAll, down: "A B E"},
		{name: "nobody is counted", strategy: on, picture: e("Aj | Bx"), want: sbr.DownAll, down: "A"},
		{name: "of one age the lowest address is the oldest", strategy: off, picture: sameAge(draw("C B | A D")), side: 1, want: sbr.DownUnreachable, down: "B C"},
		{name: "without an age a member is the youngest", strategy: off, picture: ageless(draw("A | B"), "A"), want: sbr.DownReachable, down: "A"},

		{name: "down-if-alone: the lone oldest goes down", strategy: on, picture: e("E | A B C D"), want: sbr.DownReachable, down: "E",
			reason: "the oldest member (E) is on this side, but alone; 1 of 5 counted members is reachable"},
		{name: "down-if-alone: the others stay", strategy: on, picture: e("E | A B C D"), side: 1, want: sbr.DownUnreachable, down: "E",
			reason: "the oldest member (E) is on the other side, but alone; 4 of 5 counted members are reachable"},
		{name: "down-if-alone: against two it goes down", strategy: on, picture: e("E | A B"), want: sbr.DownReachable, down: "E"},
		{name: "down-if-alone: of two members the oldest stays", strategy: on, picture: e("E | A"), want: sbr.DownUnreachable, down: "A"},
		{name: "down-if-alone: of two members the other goes down", strategy: on, picture: e("E | A"), side: 1, want: sbr.DownReachable, down: "A"},
		{name: "down-if-alone: alone with its role against one", strategy: role, picture: e("E* A B | C*"), want: sbr.DownUnreachable, down: "C"},
		{name: "down-if-alone: alone with its role against two", strategy: role, picture: e("E* A B | C* D*"), want: sbr.DownReachable, down: "A B E"},
		{name: "down-if-alone off: the lone oldest stays", strategy: off, picture: e("E | A B C D"), want: sbr.DownUnreachable, down: "A B C D"},
		{name: "down-if-alone off: the others go down", strategy: off, picture: e("E | A B C D"), side: 1, want: sbr.DownReachable, down: "A B C D"},

		{name: "an exiting member is not the oldest", strategy: on, picture: e("A B D | C Ex"), want: sbr.DownUnreachable, down: "C"},
		{name: "a joining member is not the oldest", strategy: off, picture: e("A Ej | B"), want: sbr.DownUnreachable, down: "B"},
		{name: "recheck: the oldest may have left there", strategy: on, picture: e("A B D | C El"), side: 1, want: sbr.DownAll, down: "A B C D E",
			reason: "the oldest member (E) is on this side; 2 of 5 counted members are reachable, but the other side may see it otherwise: 1 leaving may be gone and 0 joining may be up"},
		{name: "recheck: the oldest leaves", strategy: on, picture: e("A El | B C D"), want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: a side that goes down is not asked again", strategy: on, picture: e("A El | B C D"), side: 1, want: sbr.DownReachable, down: "B C D"},
		{name: "recheck: others that leave do not matter to the side that goes down", strategy: on, picture: e("A E | Bl Cl D"), side: 1, want: sbr.DownReachable, down: "B C D"},
		{name: "recheck: the side of the oldest stays while others leave", strategy: on, picture: e("A E | Bl Cl D"), want: sbr.DownUnreachable, down: "B C D"},
		{name: "recheck: the oldest may be alone once the other has left", strategy: on, picture: e("Dl E | A B C"), want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: alone against one once others have left on both sides", strategy: on, picture: e("Dl E | A Bl"), want: sbr.DownUnreachable, down: "A B"},
		{name: "recheck: alone against members of whom enough stay", strategy: on, picture: e("E | A B Cl"), side: 1, want: sbr.DownUnreachable, down: "E"},
		{name: "recheck: alone against members that leave", strategy: on, picture: e("E | A Bl Cl Dl"), side: 1, want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: the last one over there leaves", strategy: on, picture: e("A | El"), side: 1, want: sbr.DownAll, down: "A E"},
		{name: "recheck: nobody is up", strategy: off, picture: e("El | Al"), want: sbr.DownAll, down: "A E"},
		{name: "recheck: the next oldest is on this side too", strategy: off, picture: e("D El | A B"), want: sbr.DownUnreachable, down: "A B"},
		{name: "recheck: joining there, the lone oldest may have company", strategy: on, picture: e("Aj E | B C D"), side: 1, want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: joining here does not help a lone oldest", strategy: on, picture: e("Aj E | B C D"), want: sbr.DownReachable, down: "A E"},
		{name: "recheck: weakly-up counts as joining", strategy: on, picture: e("Aw E | B C D"), side: 1, want: sbr.DownAll, down: "A B C D E"},
		{name: "recheck: joining without the role does not count", strategy: role, picture: e("Aj E* | B* C*"), side: 1, want: sbr.DownUnreachable, down: "A E"},
		{name: "recheck: one against one may become one against two", strategy: on, picture: e("E | A Bj"), want: sbr.DownAll, down: "A B E"},
		{name: "recheck, down-if-alone off: joining does not matter", strategy: off, picture: e("Aj E | B C D"), want: sbr.DownUnreachable, down: "B C D"},
		{name: "recheck, down-if-alone off: joining does not matter, other side", strategy: off, picture: e("Aj E | B C D"), side: 1, want: sbr.DownReachable, down: "B C D"},
		{name: "recheck, down-if-alone off: one against two to be", strategy: off, picture: e("E | A Bj"), want: sbr.DownUnreachable, down: "A B"},

		{name: "indirectly connected members go down, the others stay", strategy: on, picture: e("A B C"), reports: "A<>B", want: sbr.DownIndirectlyConnected, down: "A B"},
	})
}

func sameAge(p picture) picture {
	for i := range p.members {
		p.members[i].Born = 7
	}
	return p
}

func ageless(p picture, name string) picture {
	for i := range p.members {
		if p.members[i].Name == name {
			p.members[i].Born = 0
		}
	}
	return p
}

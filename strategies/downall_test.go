package strategies_test

import (
	"testing"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestConformance_DownAll(t *testing.T) {
	s := strategies.DownAll{}
	checkRules(t, []rule{
		{name: "the larger side goes down", strategy: s, picture: draw("A B C | D E"), want: sbr.DownAll, down: "A B C D E",
			reason: "3 of 5 counted members are reachable, and this strategy keeps no part of a partition"},
		{name: "the smaller side goes down", strategy: s, picture: draw("A B C | D E"), side: 1, want: sbr.DownAll, down: "A B C D E"},
		{name: "joining members go down, exiting and downed ones are on their way", strategy: s, picture: draw("A Bj Cw Dl | Ex Fd"), want: sbr.DownAll, down: "A B C D"},
		{name: "indirectly connected members make no difference", strategy: s, picture: draw("A B C"), reports: "A<>B", want: sbr.DownAll, down: "A B C"},
		{name: "nobody is unreachable", strategy: s, picture: draw("A B C"), want: sbr.None, reason: "nobody is unreachable"},
	})
}

package strategies_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestConformance_LeaseMajority(t *testing.T) {
	all := strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second}
	role := strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second, Role: "r"}
	const clean, indirect = sbr.AcquireLeaseAndDownUnreachable, sbr.AcquireLeaseAndDownIndirectlyConnected
	for _, r := range []struct {
		rule
		delay    time.Duration
		minority bool
		reversed string
	}{
		{rule: rule{name: "the larger side asks at once", strategy: all, picture: draw("A C E | B D"), want: clean, down: "B D",
			reason: "3 of 5 counted members are reachable, a majority"}, reversed: "A C E"},
		{rule: rule{name: "the smaller side waits", strategy: all, picture: draw("A C E | B D"), side: 1, want: clean, down: "A C E",
			reason: "2 of 5 counted members are reachable, a minority, so this side waits 2s before it asks for the lease"},
			delay: 2 * time.Second, minority: true, reversed: "B D"},
		{rule: rule{name: "half with the lowest address asks at once", strategy: all, picture: draw("A B | C D"), want: clean, down: "C D"}, reversed: "A B"},
		{rule: rule{name: "half without the lowest address waits", strategy: all, picture: draw("A B | C D"), side: 1, want: clean, down: "A B"},
			delay: 2 * time.Second, minority: true, reversed: "C D"},
		{rule: rule{name: "the lowest address has the role", strategy: role, picture: draw("A D* E | B C*"), want: clean, down: "B C"},
			delay: 2 * time.Second, minority: true, reversed: "A D E"},
		{rule: rule{name: "the lowest address has the role, other side", strategy: role, picture: draw("A D* E | B C*"), side: 1, want: clean, down: "A D E"}, reversed: "B C"},
		{rule: rule{name: "nobody has the role: neither side is smaller", strategy: role, picture: draw("A | B C"), want: clean, down: "B C",
			reason: `no member with role "r" is up or leaving, so no side can be told from the other`}, reversed: "A"},
		{rule: rule{name: "joining members are not counted but go down", strategy: all, picture: draw("A Bj Cj | D E"), want: clean, down: "D E"},
			delay: 2 * time.Second, minority: true, reversed: "A B C"},
		{rule: rule{name: "leaving members are counted", strategy: all, picture: draw("A Bl | C"), want: clean, down: "C"}, reversed: "A B"},
		{rule: rule{name: "exiting members are neither counted nor downed", strategy: all, picture: draw("A Bx | C"), side: 1, want: clean, down: "A"},
			delay: 2 * time.Second, minority: true, reversed: "C"},
		{rule: rule{name: "members that join or leave start no recheck", strategy: all, picture: draw("C D E | A B Fj Gj"), want: clean, down: "A B F G"}, reversed: "C D E"},
		{rule: rule{name: "nobody is unreachable", strategy: all, picture: draw("A B"), want: sbr.None, reason: "nobody is unreachable"}},
		{rule: rule{name: "indirectly connected: at once", strategy: all, picture: draw("A B C D E"), reports: "A<>B", want: indirect, down: "A B"}, reversed: "A B C D E"},
		{rule: rule{name: "indirectly connected on the smaller side: still at once", strategy: all, picture: draw("A B C D | E F G H I"), reports: "A<>B", want: indirect,
			down: "A B E F G H I"}, minority: true, reversed: "A B C D"},
	} {
		checkRules(t, []rule{r.rule})
		t.Run(r.name+", delay", func(t *testing.T) {
			v := r.picture.from(r.side)
			if r.reports != "" {
				v = r.picture.gossip(r.side, r.reports)
			}
			d := sbr.Decide(r.strategy, &v, sbr.Off)
			require.Equal(t, r.delay, d.Delay)
			require.Equal(t, r.minority, d.Minority)
			require.Equal(t, r.reversed, names(d.Reversed(&v, sbr.Off).Down), "when the lease is denied")
		})
	}
}

// Where a cut is not clean the largest group of members that all reach each other stays (design rule 17).
func TestLeaseMajority_KeepsTheLargestGroup(t *testing.T) {
	t.Parallel()
	all := strategies.LeaseMajority{AcquireLeaseDelayForMinority: 2 * time.Second,
		IndirectlyConnected: strategies.KeepLargestGroup}
	role := all
	role.Role = "r"
	const clean, indirect = sbr.AcquireLeaseAndDownUnreachable, sbr.AcquireLeaseAndDownIndirectlyConnected
	for name, r := range map[string]struct {
		strategy strategies.LeaseMajority
		members  string
		gone     string // members that nobody hears
		broken   string
		kind     sbr.Kind
		down     string
		reversed string
		delay    time.Duration
		minority bool
		reason   string
	}{
		"a clean cut is decided as ever": {all, "A B C D E", "D E", "", clean, "D E", "A B C", 0, false,
			"3 of 5 counted members are reachable, a majority"},
		"one broken link costs the end with the higher address": {all, "A B C D E", "", "B-C", indirect, "C", "A B C D E", 0, false,
			"1 broken link between members that are heard: of those 5, the largest group that all reach each other has 4"},
		"two links with one end in common cost that end": {all, "A B C D E", "", "A-B A-C", indirect, "A", "A B C D E", 0, false, ""},
		"a bridge keeps a half and the bridge":           {all, "A B C D E", "", "A-D A-E B-D B-E", indirect, "D E", "A B C D E", 0, false, ""},
		"a ring keeps two that are neighbours":           {all, "A B C D E", "", "A-C A-D B-D B-E C-E", indirect, "C D E", "A B C D E", 0, false, ""},
		"members that are not heard are left out":        {all, "A B C D E", "E", "A-B", indirect, "B E", "A B C D", 0, false, ""},
		"a group that is smaller than those that are not heard waits": {all, "A B C D E F G", "D E F G", "A-B", indirect, "B D E F G", "A B C",
			3 * time.Second, true, ""},
		"a lone member of five waits twice as long": {all, "A B C D E", "B C D E", "", clean, "B C D E", "A", 4 * time.Second, true, ""},
		"the largest minority waits what is set":    {all, "A B C D E", "C D E", "", clean, "C D E", "A B", 2 * time.Second, true, ""},
		"no minority waits more than four times":    {all, "A B C D E F G H I J K L", "B C D E F G H I J K L", "", clean, "B C D E F G H I J K L", "A", 8 * time.Second, true, ""},
		"members with the role are worth more":      {role, "A B C* D E", "", "A-C B-C C-D", indirect, "A B D", "A B C D E", 0, false, ""},
		"members that join are worth less":          {all, "Aj Bj C D E", "", "A-C B-C", indirect, "A B", "A B C D E", 0, false, ""},
		"downed members break no link":              {all, "A Bd C D E", "", "A-B", clean, "", "", 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := draw(r.members)
			var reports []sbr.Report
			for link := range strings.FieldsSeq(r.broken) {
				a, b, _ := strings.Cut(link, "-")
				reports = append(reports, sbr.Report{Observer: sbr.ID(a), Subject: sbr.ID(b)},
					sbr.Report{Observer: sbr.ID(b), Subject: sbr.ID(a)})
			}
			slices.SortFunc(reports, func(x, y sbr.Report) int { return cmp.Compare(x.Observer, y.Observer) })
			for i := range p.members {
				m := &p.members[i]
				m.Unreachable = m.ID != "A" && (strings.Contains(r.gone, m.Name) || strings.Contains(r.broken, m.Name))
			}
			v := sbr.NewView("A", p.members, reports, nil)
			d := sbr.Decide(r.strategy, &v, 0) // down-all-when-indirectly-connected: on has no effect
			require.Equal(t, r.kind, d.Kind)
			require.Equal(t, r.down, names(d.Down))
			require.Equal(t, r.delay, d.Delay)
			require.Equal(t, r.minority, d.Minority)
			if r.reason != "" {
				require.Equal(t, r.reason, d.Reason)
			}
			if r.reversed != "" {
				require.Equal(t, r.reversed, names(d.Reversed(&v, 0).Down), "when the store stays unknown")
			}
		})
	}
}

func TestLeaseMajority_NeedsTheLease(t *testing.T) {
	require.True(t, sbr.NeedsLease(strategies.LeaseMajority{}))
	for _, s := range []sbr.Strategy{strategies.KeepMajority{}, strategies.StaticQuorum{},
		strategies.KeepOldest{}, strategies.KeepReferee{}, strategies.DownAll{}} {
		require.False(t, sbr.NeedsLease(s))
	}
}

package strategies_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func TestLeaseMajority_Rules(t *testing.T) {
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

func TestLeaseMajority_NeedsTheLease(t *testing.T) {
	require.True(t, sbr.NeedsLease(strategies.LeaseMajority{}))
	for _, s := range []sbr.Strategy{strategies.KeepMajority{}, strategies.StaticQuorum{}, strategies.KeepOldest{}, strategies.KeepReferee{}, strategies.DownAll{}} {
		require.False(t, sbr.NeedsLease(s))
	}
}

func TestLeaseMajority_Validate(t *testing.T) {
	require.NoError(t, strategies.LeaseMajority{}.Validate())
	require.EqualError(t, strategies.LeaseMajority{AcquireLeaseDelayForMinority: -time.Second, Role: " "}.Validate(),
		"lease-majority.acquire-lease-delay-for-minority is -1s: it must not be negative\nlease-majority.role is \" \": it must not begin or end with a space")
}

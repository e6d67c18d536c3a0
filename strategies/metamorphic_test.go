package strategies_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

// Metamorphic tests: how the answer must, or must not, change when the question is put in another way.

func TestMetamorphic_TheSameQuestionHasTheSameAnswer(t *testing.T) {
	everySeed(t, 5_000, func(t *testing.T, r source) {
		s, v, threshold := r.strategy(), r.view(), r.threshold()
		before := show(v)
		first := sbr.Decide(s, &v, threshold)
		assert.Equal(t, first, sbr.Decide(s, &v, threshold))
		assert.Equal(t, before, show(v), "a decision changes nothing in the view")
	})
}

// mirror is a clean cut of one membership as two sides see it.
func mirror(v sbr.View) (here, there sbr.View) {
	members := slices.Clone(v.Members)
	for i := range members {
		members[i].Unreachable = !members[i].Unreachable
	}
	return sbr.View{Self: v.Self, Members: v.Members}, sbr.View{Self: v.Self, Members: members}
}

// keeps says that the decision of a side lets somebody on that side go on.
func keeps(d sbr.Decision, v sbr.View) bool {
	return slices.ContainsFunc(v.Members, func(m sbr.Member) bool {
		return m.Downable() && !m.Unreachable && !slices.Contains(d.Down, m.ID)
	})
}

// bothKeep plays both sides of a clean cut with one membership; with a lease, either side may be the one that
// gets it.
func bothKeep(s sbr.Strategy, here, there sbr.View) bool {
	a, b := sbr.Decide(s, &here, sbr.Off), sbr.Decide(s, &there, sbr.Off)
	if !sbr.NeedsLease(s) {
		return keeps(a, here) && keeps(b, there)
	}
	return keeps(a, here) && keeps(b.Reversed(&there, sbr.Off), there) ||
		keeps(a.Reversed(&here, sbr.Off), here) && keeps(b, there)
}

// Both sides know of the same members with the same statuses: they never both go on, whatever the strategy.
// Every clean view of up to four members.
func TestMetamorphic_TwoSidesNeverBothStay(t *testing.T) {
	played := 0
	for n := range 5 {
		everyCleanView(n, func(v sbr.View) {
			here, there := mirror(v)
			if !slices.ContainsFunc(here.Members, unreachable) || !slices.ContainsFunc(there.Members, unreachable) {
				return
			}
			played++
			for _, s := range all {
				if bothKeep(s, here, there) {
					t.Fatalf("both sides stay: %#v\n%s", s, show(v))
				}
			}
		})
	}
	require.Positive(t, played)
}

func unreachable(m sbr.Member) bool { return m.Unreachable }

// With everybody up one of the two sides does go on (static-quorum: if one has the quorum), so that the test
// above is not met by downing all.
func TestMetamorphic_OneOfTwoSidesStays(t *testing.T) {
	everyCleanView(4, func(v sbr.View) {
		here, there := mirror(v)
		if slices.ContainsFunc(v.Members, func(m sbr.Member) bool { return m.Status != sbr.Up }) ||
			!slices.ContainsFunc(here.Members, unreachable) || !slices.ContainsFunc(there.Members, unreachable) {
			return
		}
		for _, s := range []sbr.Strategy{strategies.KeepMajority{}, strategies.KeepOldest{},
			strategies.KeepOldest{DownIfAlone: true}, strategies.KeepReferee{Address: "B"}} {
			a, b := sbr.Decide(s, &here, sbr.Off), sbr.Decide(s, &there, sbr.Off)
			require.NotEqual(t, keeps(a, here), keeps(b, there), "%#v\n%s", s, show(v))
		}
		reached, _ := here.Count("")
		three := sbr.Decide(strategies.StaticQuorum{QuorumSize: 3}, &here, sbr.Off)
		require.Equal(t, reached.Base() >= 3, keeps(three, here))
	})
}

// One membership change that only one side has seen is what the re-checks are for: a member that the other
// side made up while it was joining here, or exiting while it was leaving here. keep-majority and keep-oldest
// then do not let both sides stay, but for one gap, shown below.
func TestMetamorphic_OneUnseenMembershipChange(t *testing.T) {
	changes := map[sbr.Status]sbr.Status{sbr.Joining: sbr.Up, sbr.WeaklyUp: sbr.Up, sbr.Leaving: sbr.Exiting}
	changed := 0
	everyCleanView(4, func(v sbr.View) {
		here, there := mirror(youngestJoin(v))
		if !slices.ContainsFunc(here.Members, unreachable) || !slices.ContainsFunc(there.Members, unreachable) {
			return
		}
		for i, m := range there.Members {
			to, ok := changes[m.Status]
			if !ok {
				continue
			}
			changed++
			there := sbr.View{Self: there.Self, Members: slices.Clone(there.Members)}
			there.Members[i].Status = to
			for _, s := range []sbr.Strategy{strategies.KeepMajority{}, strategies.KeepOldest{},
				strategies.KeepOldest{DownIfAlone: true}} {
				_, majority := s.(strategies.KeepMajority)
				gap := majority && to == sbr.Up && there.Lowest("").ID == m.ID
				if !gap && final(s, here) == sbr.DownUnreachable && final(s, there) == sbr.DownUnreachable {
					t.Errorf("both sides stay: %#v, unseen here: %s is %s\n%s", s, m.ID, to, show(here))
				}
			}
		}
	})
	require.Positive(t, changed)
}

// youngestJoin gives joining members the highest ages, as in a cluster where ages grow.
func youngestJoin(v sbr.View) sbr.View {
	for i := range v.Members {
		if m := &v.Members[i]; m.Status <= sbr.WeaklyUp {
			m.Born += 100
		}
	}
	return v
}

func final(s sbr.Strategy, v sbr.View) sbr.Kind { return sbr.Decide(s, &v, sbr.Off).Final }

// The gap is the reference's: on a tie it asks for the lowest address among the up members, and a joining
// member that has the lowest address of all is none of them here, but may be one there. Only lease-majority
// is safe then.
func TestKeepMajority_GapOfTheReference(t *testing.T) {
	here, there := draw("B C | Aj D").from(0), draw("B C | A D").from(1)
	require.Equal(t, sbr.DownUnreachable, final(strategies.KeepMajority{}, here))
	require.Equal(t, sbr.DownUnreachable, final(strategies.KeepMajority{}, there))
	require.False(t, bothKeep(strategies.LeaseMajority{}, here, there))
}

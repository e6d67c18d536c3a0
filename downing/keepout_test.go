package downing

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/serf/serf"
	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/downing/wire"
	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func tagged(name, uid, seen string) *serf.Member {
	return &serf.Member{Name: name, Tags: map[string]string{TagUID: uid, TagSeen: seen}}
}

func deniedBy(d denyList) (*keepOut, *[]string) {
	refused := &[]string{}
	k := &keepOut{refused: func(m *serf.Member) { *refused = append(*refused, m.Name) }}
	d.self = "me#u"
	k.list.Store(&d)
	return k, refused
}

// The members that stay out, and those that are welcome.
func TestKeepOut_Denies(t *testing.T) {
	verdict := sbr.Verdict{Token: 5, Survivors: []sbr.ID{"me#u", "won#u"}, Down: []sbr.ID{"lost#u"}}
	partial := sbr.Verdict{Token: 5, Down: []sbr.ID{"lost#u"}, Partial: true}
	ordered := map[sbr.ID]struct{}{"ordered#u": {}, "?plain": {}}
	for _, tc := range []struct {
		name    string
		verdict sbr.Verdict
		member  *serf.Member
		refused bool
	}{
		{"a loser under its old incarnation", verdict, tagged("lost", "u", "0"), true},
		{"the same node in its next life, which read the verdict", verdict, tagged("lost", "v", "5"), false},
		{"the same node in its next life, which read an older one", verdict, tagged("lost", "v", "4"), true},
		{"a node that joined the losing side and was not known to the winner", verdict, tagged("late", "u", "4"), true},
		{"a survivor", verdict, tagged("won", "u", "0"), false},
		{"a member downed by an order", verdict, tagged("ordered", "u", "9"), true},
		{"this member itself, whatever is said", sbr.Verdict{Token: 5, Down: []sbr.ID{"me#u"}}, tagged("me", "u", "0"), false},
		{"a member that runs no resolver", verdict, &serf.Member{Name: "plain"}, false},
		{"no number where a token should be: older than any verdict", verdict, tagged("late", "v", "!"), true},
		{"somebody of whom a part of a verdict does not speak", partial, tagged("late", "u", "0"), false},
		{"somebody whom a part of a verdict downs", partial, tagged("lost", "u", "0"), true},
		{"anybody, before there was a verdict", sbr.Verdict{}, tagged("late", "u", "0"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, refused := deniedBy(denyList{verdict: tc.verdict, orders: ordered})
			err := k.NotifyMerge([]*serf.Member{tc.member})
			if tc.refused {
				require.ErrorContains(t, err, tc.member.Name+" was downed")
				require.Equal(t, []string{tc.member.Name}, *refused)
				return
			}
			require.NoError(t, err)
			require.Empty(t, *refused)
		})
	}
}

// One refused member in a list would reject a whole join; Serf asks again for each.
func TestKeepOut_ListsAreLetThrough(t *testing.T) {
	k, refused := deniedBy(denyList{orders: map[sbr.ID]struct{}{"lost#u": {}}})
	require.NoError(t, k.NotifyMerge([]*serf.Member{tagged("lost", "u", ""), tagged("won", "u", "")}))
	require.NoError(t, k.NotifyMerge(nil))
	require.Empty(t, *refused)
}

// Serf knocks again and again; people hear of each incarnation once.
func TestKeepOut_ReportsOnce(t *testing.T) {
	k, refused := deniedBy(denyList{orders: map[sbr.ID]struct{}{"lost#u": {}, "lost#v": {}}})
	for range 3 {
		require.Error(t, k.NotifyMerge([]*serf.Member{tagged("lost", "u", "")}))
	}
	require.Error(t, k.NotifyMerge([]*serf.Member{tagged("lost", "v", "")}))
	require.Equal(t, []string{"lost", "lost"}, *refused)
}

// An incarnation that still tries to rejoin after a while does not know that it was downed: it is let in
// once, so that it gets the decision, and is refused again.
func TestKeepOut_LetsInToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, refused := deniedBy(denyList{orders: map[sbr.ID]struct{}{"lost#u": {}}})
		lost := []*serf.Member{tagged("lost", "u", "")}
		require.Error(t, k.NotifyMerge(lost))
		time.Sleep(wire.RefuseFor - 1)
		require.Error(t, k.NotifyMerge(lost))
		time.Sleep(time.Nanosecond)
		require.NoError(t, k.NotifyMerge(lost))
		require.Error(t, k.NotifyMerge(lost))
		require.Equal(t, []string{"lost", "lost"}, *refused)
	})
}

// Serf asks about the node itself when it creates it. That is how Start knows that it is asked at all.
func TestKeepOut_NoticesItsOwnNode(t *testing.T) {
	k, _ := deniedBy(denyList{})
	require.NoError(t, k.NotifyMerge([]*serf.Member{tagged("other", "u", "")}))
	require.False(t, k.created.Load())
	require.NoError(t, k.NotifyMerge([]*serf.Member{tagged("me", "u", "")}))
	require.True(t, k.created.Load())
}

// A store that lost a verdict may hold another one with its token, which keeps as many members: the list is
// that of the verdict which stands in the lease.
func TestForgets_TheDenyListFollowsTheVerdictThatCounts(t *testing.T) {
	t.Parallel()
	cfg := sbr.DefaultConfig()
	cfg.Watched = true
	r, err := sbr.New(cfg, strategies.LeaseMajority{}, sbr.Member{ID: "n5#a", Name: "n5"}, 0)
	require.NoError(t, err)
	e := &engine{resolver: r, keepOut: newKeepOut(nil, "n5#a", nil)}
	for _, v := range []sbr.Verdict{
		{Token: 5, DecidedBy: "n1#a", Survivors: []sbr.ID{"n1#a", "n2#a", "n5#a"}, Down: []sbr.ID{"n3#a", "n4#a"}},
		{Token: 5, DecidedBy: "n3#a", Survivors: []sbr.ID{"n3#a", "n4#a", "n5#a"}, Down: []sbr.ID{"n1#a", "n2#a"}},
	} {
		rec := sbr.Record{Token: 5, Verdict: &v}
		for _, effect := range r.Step(0, sbr.LeaseObserved{Record: rec}) {
			if read, ok := effect.(sbr.ReadLease); ok { // the store has to show it once more
				r.Step(0, sbr.LeaseRead{Attempt: read.Attempt, Record: rec})
			}
		}
		require.Equal(t, v.DecidedBy, r.Verdict().DecidedBy)
		e.refreshDenyList()
		for _, id := range v.Down {
			require.True(t, e.keepOut.list.Load().isOut(id, 0), "%s after %s", id, v.DecidedBy)
		}
		require.False(t, e.keepOut.list.Load().isOut(v.DecidedBy, 0))
	}
}

package sbr_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

func TestIndirectlyConnected(t *testing.T) {
	for _, c := range []struct {
		name    string
		reports []sbr.Report
		seenBy  []sbr.ID
		want    []sbr.ID
	}{
		{name: "no reports", seenBy: []sbr.ID{"a", "b"}},
		{name: "a clean cut", reports: []sbr.Report{report("a", "d"), report("b", "d"), report("a", "c")}, seenBy: []sbr.ID{"a", "b"}},
		{name: "each reports the other", reports: []sbr.Report{report("b", "a"), report("a", "b")}, want: []sbr.ID{"a", "b"}},
		{name: "the middle of a chain", reports: []sbr.Report{report("a", "b"), report("b", "c")}, want: []sbr.ID{"b"}},
		{name: "a cycle", reports: []sbr.Report{report("a", "b"), report("b", "c"), report("c", "a")}, want: []sbr.ID{"a", "b", "c"}},
		{name: "the subject shares our view", reports: []sbr.Report{report("d", "a")}, seenBy: []sbr.ID{"a"}, want: []sbr.ID{"a", "d"}},
		{name: "only the observer shares our view", reports: []sbr.Report{report("d", "a")}, seenBy: []sbr.ID{"d"}},
		{name: "both rules", reports: []sbr.Report{report("a", "b"), report("b", "c"), report("d", "c")}, seenBy: []sbr.ID{"c", "stranger"}, want: []sbr.ID{"a", "b", "c", "d"}[1:]},
		{name: "strangers do not count", reports: []sbr.Report{report("z", "a"), report("a", "z"), report("y", "z")}, seenBy: []sbr.ID{"z"}},
		{name: "strangers do not hide others", reports: []sbr.Report{report("z", "c"), report("a", "b"), report("b", "a")}, want: []sbr.ID{"a", "b"}},
		{name: "nobody reports itself", reports: []sbr.Report{report("a", "a"), report("b", "a")}, seenBy: nil},
		{name: "a report listed twice counts once", reports: []sbr.Report{report("a", "b"), report("a", "b")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := viewFrom("a b c d", c.reports...)
			v.SeenBy = c.seenBy
			require.Equal(t, c.want, v.IndirectlyConnected())
		})
	}
}

func TestIndirectlyConnected_AllocatesNothingWithoutReports(t *testing.T) {
	v := viewFrom("a b c d")
	require.Zero(t, testing.AllocsPerRun(100, func() { v.IndirectlyConnected() }))
}

// spy answers what its script says, once for each time it is asked, and keeps what it was shown.
type spy struct {
	answers []sbr.Kind
	views   []sbr.View
}

func (s *spy) Decide(v *sbr.View) sbr.Choice {
	k := s.answers[min(len(s.views), len(s.answers)-1)]
	s.views = append(s.views, sbr.View{Self: v.Self, Members: slices.Clone(v.Members),
		Reports: slices.Clone(v.Reports), SeenBy: v.SeenBy})
	return sbr.Choice{Kind: k, Reason: "the test says so"}
}

func (s *spy) unreachable(i int) (ids []sbr.ID) {
	for _, m := range s.views[i].Members {
		if m.Unreachable {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// secondLook lets a spy decide first about indirectly connected members and then about what is left.
func secondLook(t *testing.T, v sbr.View) (*spy, sbr.Decision) {
	t.Helper()
	s := &spy{answers: []sbr.Kind{sbr.DownIndirectlyConnected, sbr.DownUnreachable}}
	return s, sbr.Decide(s, &v, sbr.Off)
}

func TestSecondPass(t *testing.T) {
	t.Run("is left out when nobody is unreachable beside the indirectly connected", func(t *testing.T) {
		s, d := secondLook(t, viewFrom("a b! c!", report("b", "c"), report("c", "b")))
		require.Len(t, s.views, 1)
		require.Equal(t, []sbr.ID{"b", "c"}, d.Down)
	})
	t.Run("sees the subjects of clean reports only", func(t *testing.T) {
		s, d := secondLook(t, viewFrom("a b! c! d! e", report("b", "c"), report("c", "b"), report("a", "d")))
		require.Equal(t, []sbr.ID{"d"}, s.unreachable(1))
		require.Equal(t, []sbr.Report{report("a", "d")}, s.views[1].Reports)
		require.Equal(t, []sbr.ID{"b", "c", "d"}, d.Down)
		require.Equal(t, sbr.DownIndirectlyConnected, d.Final)
	})
	t.Run("makes a subject unreachable again that the first view calls reachable", func(t *testing.T) {
		s, _ := secondLook(t, viewFrom("a b! c! d! e", report("b", "c"), report("c", "b"), report("a", "d"),
			report("a", "e")))
		require.Equal(t, []sbr.ID{"d", "e"}, s.unreachable(1))
	})
	t.Run("takes our own word for a member that nobody reports", func(t *testing.T) {
		s, d := secondLook(t, viewFrom("a b! c! d! e:exiting! f", report("b", "c"), report("c", "b")))
		require.Equal(t, []sbr.ID{"d"}, s.unreachable(1))
		require.Equal(t, []sbr.ID{"b", "c", "d"}, d.Down)
	})
	t.Run("drops reports with an end on its way out", func(t *testing.T) {
		s, _ := secondLook(t, viewFrom("a b! c! d:exiting! e! f:down", report("b", "c"), report("c", "b"),
			report("a", "d"), report("f", "e")))
		require.Empty(t, s.unreachable(1))
		require.Empty(t, s.views[1].Reports)
	})
	t.Run("keeps a report with one end in the intersection", func(t *testing.T) {
		s, _ := secondLook(t, viewFrom("a b! c! d!", report("b", "c"), report("c", "b"), report("b", "d")))
		require.Equal(t, []sbr.ID{"d"}, s.unreachable(1))
	})
	t.Run("drops reports whose ends are both indirectly connected by the seen-by rule", func(t *testing.T) {
		v := viewFrom("a b c! d!", report("c", "b"), report("a", "d"))
		v.SeenBy = []sbr.ID{"a", "b"} // c does not share our view, and still its report about b goes
		s, d := secondLook(t, v)
		require.Equal(t, []sbr.Report{report("a", "d")}, s.views[1].Reports)
		require.Equal(t, []sbr.ID{"b", "c", "d"}, d.Down)
	})
	t.Run("keeps a report between one end of each rule", func(t *testing.T) {
		v := viewFrom("a b! c! d e!", report("b", "c"), report("c", "b"), report("a", "d"), report("a", "b"),
			report("a", "e"))
		v.SeenBy = []sbr.ID{"d"}
		s, _ := secondLook(t, v)
		require.Equal(t, []sbr.Report{report("a", "b"), report("a", "e")}, s.views[1].Reports)
	})
	t.Run("is not asked about members that are not there", func(t *testing.T) {
		s, _ := secondLook(t, viewFrom("a b! c! d!", report("b", "c"), report("c", "b"), report("z", "d"),
			report("a", "y")))
		require.Equal(t, []sbr.ID{"d"}, s.unreachable(1), "a stranger's report is none: our own word stands")
		require.Empty(t, s.views[1].Reports)
	})
	t.Run("leaves the first view as it was", func(t *testing.T) {
		v := viewFrom("a b! c! d!", report("b", "c"), report("c", "b"))
		before := slices.Clone(v.Members)
		secondLook(t, v)
		require.Equal(t, before, v.Members)
	})
}

// Design deviation 11: the word of an observer that every reachable member calls unreachable is history.
func TestSecondPass_ObserversThatAreAgreedToBeGone(t *testing.T) {
	kept := func(v sbr.View) []sbr.Report {
		s, _ := secondLook(t, v)
		return s.views[1].Reports
	}
	// c is indirectly connected: it reports d and is reported
	cross := []sbr.Report{report("c", "d"), report("a", "c"), report("b", "c")}
	t.Run("all reachable members report it", func(t *testing.T) {
		require.Equal(t, cross[1:], kept(viewFrom("a b c! d!", cross...)))
	})
	t.Run("one reachable member does not", func(t *testing.T) {
		require.Equal(t, cross, kept(viewFrom("a b c! d! e", cross...)))
	})
	t.Run("a report listed twice is one voice", func(t *testing.T) {
		twice := []sbr.Report{cross[0], cross[1], cross[1]}
		require.Equal(t, twice, kept(viewFrom("a b c! d!", twice...)))
	})
	t.Run("an unreachable member has no voice", func(t *testing.T) {
		require.Equal(t, append(cross, report("e", "c")),
			kept(viewFrom("a b f c! d! e!", append(cross, report("e", "c"))...)))
	})
	t.Run("a reachable observer is not gone, whatever is reported", func(t *testing.T) {
		require.Equal(t, cross, kept(viewFrom("a b c d!", cross...)))
	})
	t.Run("nobody is reachable", func(t *testing.T) {
		require.Equal(t, cross, kept(viewFrom("a! b! c! d!", cross...)))
	})
}

// narrow is a strategy that asks another one about a part of the view, as a strategy of one's own may.
type narrow struct{ s sbr.Strategy }

func (n narrow) Decide(v *sbr.View) sbr.Choice {
	w := *v
	w.Members = w.Members[:2]
	w.IndirectlyConnected()
	return n.s.Decide(&w)
}

// The reports are read once for a decision. A strategy that looks at a view of its own must not be given what
// was read for another.
func TestDecide_AStrategyMayChangeItsCopyOfTheView(t *testing.T) {
	v := viewFrom("a b c! d!", report("c", "d"), report("d", "c"))
	s := &spy{answers: []sbr.Kind{sbr.None}}
	sbr.Decide(narrow{s}, &v, sbr.Off)
	require.Equal(t, []sbr.ID{"a", "b"}, idsOf(s.views[0].Members))
	require.Empty(t, s.views[0].IndirectlyConnected())
	require.Equal(t, []sbr.ID{"c", "d"}, v.IndirectlyConnected())
}

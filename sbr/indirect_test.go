package sbr_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
)

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
	s.views = append(s.views, sbr.View{Self: v.Self, Members: slices.Clone(v.Members), Reports: slices.Clone(v.Reports), SeenBy: v.SeenBy})
	return sbr.Choice{Kind: k, Reason: "the test says so"}
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

package walktest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

type (
	packet  = walktest.Packet[string]
	packets = walktest.Packets[string]
)

func textKey(b []byte, l *packet) []byte { return append(b, l.Body...) }

func sent(packets ...packet) (m packets) {
	for _, l := range packets {
		m.Send(l)
	}
	return m
}

func key(m packets) string { return string(m.AppendKey(nil, textKey)) }

func texts(m packets) (all []string) {
	for k := range m.Len() {
		all = append(all, m.At(k).Body)
	}
	return all
}

func TestPackets_KeyMergesWhatIsTheSame(t *testing.T) {
	x, y := packet{To: 1, Body: "x"}, packet{From: 1, Body: "y"}
	late, back := x, x
	late.Late = true
	back.From, back.To = x.To, x.From
	require.Equal(t, key(sent(x, y)), key(sent(y, x)), "in whatever order they were sent")
	for name, m := range map[string]packets{"one is missing": sent(x), "one is late": sent(late, y), "the other way": sent(back, y), "one twice": sent(x, x, y)} {
		require.NotEqual(t, key(sent(x, y)), key(m), name)
	}
	require.NotEqual(t, key(sent(packet{Body: "ab"}, packet{Body: "c"})), key(sent(packet{Body: "a"}, packet{Body: "bc"})))
}

func TestPackets_CopiesShareNothingThatChanges(t *testing.T) {
	m := sent(packet{Body: "x"}, packet{Body: "y"})
	other := m
	other.Drop(func(l *packet) bool { return l.Body == "x" })
	other.Send(packet{Body: "z"})
	c := walktest.NewCluster(&walktest.Options{Members: 1})
	third := m
	third.Do(walktest.Move{Kind: walktest.Delays, At: 1}, &c)
	require.Equal(t, []string{"x", "y"}, texts(m))
	require.False(t, m.At(1).Late)
	require.Equal(t, []string{"y", "z"}, texts(other))
}

// What can happen to a packet depends on what may still happen at all, and on its way.
func TestPackets_MovesWithinTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		packet  packet
		budget  walktest.Budget
		moves   []walktest.Kind
		prompt  int
		toPause bool
	}{
		"nothing goes wrong":            {packet{To: 1}, walktest.Budget{}, []walktest.Kind{walktest.Delivers}, 1, false},
		"lost":                          {packet{To: 1}, walktest.Budget{Lost: 1}, []walktest.Kind{walktest.Delivers, walktest.Drops}, 1, false},
		"twice":                         {packet{To: 1}, walktest.Budget{Twice: 1}, []walktest.Kind{walktest.Delivers, walktest.Copies}, 1, false},
		"late":                          {packet{To: 1}, walktest.Budget{Late: 1}, []walktest.Kind{walktest.Delivers, walktest.Delays}, 1, false},
		"late already":                  {packet{To: 1, Late: true}, walktest.Budget{Late: 1, Lost: 1, Twice: 1}, []walktest.Kind{walktest.Delivers}, 0, false},
		"to itself":                     {packet{Way: walktest.Within}, walktest.Budget{Late: 1, Lost: 1, Twice: 1, Slow: 1}, []walktest.Kind{walktest.Delivers}, 1, false},
		"the end of a run":              {packet{Way: walktest.Ending}, walktest.Budget{Late: 1, Lost: 1, Twice: 1}, []walktest.Kind{walktest.Delivers}, 1, false},
		"the end of a run, slow":        {packet{Way: walktest.Ending}, walktest.Budget{Slow: 1}, []walktest.Kind{walktest.Delivers, walktest.Delays}, 1, false},
		"to a member that stands still": {packet{To: 1}, walktest.Budget{Lost: 1}, nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := walktest.Default()
			cluster := walktest.NewCluster(&o)
			cluster.Budget = c.budget
			cluster.Members[1].Paused = c.toPause
			m := sent(c.packet)
			moves, prompt := m.Moves(nil, &cluster, m.Sorted(textKey))
			var kinds []walktest.Kind
			for _, mv := range moves {
				kinds = append(kinds, mv.Kind)
			}
			require.Equal(t, c.moves, kinds)
			require.Equal(t, c.prompt, prompt)
			for _, mv := range moves {
				m, after := m, cluster
				_, delivered := m.Do(mv, &after)
				require.Equal(t, mv.Kind == walktest.Delivers || mv.Kind == walktest.Copies, delivered)
				require.Equal(t, mv.Kind == walktest.Copies || mv.Kind == walktest.Delays, m.Len() == 1, "it comes again, or later")
				require.Equal(t, mv.Kind == walktest.Delivers, after.Budget == cluster.Budget, "whatever goes wrong is paid for")
			}
		})
	}
}

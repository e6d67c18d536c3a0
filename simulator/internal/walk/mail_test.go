package walk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walk"
)

type (
	letter = walk.Letter[string]
	mail   = walk.Mail[string]
)

func textKey(b []byte, l *letter) []byte { return append(b, l.Body...) }

func post(letters ...letter) (m mail) {
	for _, l := range letters {
		m.Post(l)
	}
	return m
}

func key(m mail) string { return string(m.AppendKey(nil, textKey)) }

func texts(m mail) (all []string) {
	for k := range m.Len() {
		all = append(all, m.At(k).Body)
	}
	return all
}

func TestMail_KeyMergesWhatIsTheSame(t *testing.T) {
	x, y := letter{To: 1, Body: "x"}, letter{From: 1, Body: "y"}
	late, back := x, x
	late.Late = true
	back.From, back.To = x.To, x.From
	require.Equal(t, key(post(x, y)), key(post(y, x)), "in whatever order they were posted")
	for name, m := range map[string]mail{"one is missing": post(x), "one is late": post(late, y), "the other way": post(back, y), "one twice": post(x, x, y)} {
		require.NotEqual(t, key(post(x, y)), key(m), name)
	}
	require.NotEqual(t, key(post(letter{Body: "ab"}, letter{Body: "c"})), key(post(letter{Body: "a"}, letter{Body: "bc"})))
}

func TestMail_SortedHasEqualLettersOnce(t *testing.T) {
	m := post(letter{Body: "y"}, letter{Body: "x"}, letter{Body: "y"})
	require.Equal(t, []int{1, 0}, m.Sorted(textKey))
	require.Equal(t, []int{1, 0, 2}, m.Order(textKey))
}

func TestMail_CopiesShareNothingThatChanges(t *testing.T) {
	m := post(letter{Body: "x"}, letter{Body: "y"})
	other := m
	other.Drop(func(l *letter) bool { return l.Body == "x" })
	other.Post(letter{Body: "z"})
	c := walk.NewCluster(&walk.Options{Members: 1})
	third := m
	third.Do(walk.Move{Kind: walk.Delays, At: 1}, &c)
	require.Equal(t, []string{"x", "y"}, texts(m))
	require.False(t, m.At(1).Late)
	require.Equal(t, []string{"y", "z"}, texts(other))
}

func TestMail_ACutDropsWhatIsOnTheWay(t *testing.T) {
	m := post(letter{From: 0, To: 1, Body: "within"}, letter{From: 0, To: 2, Body: "across"}, letter{From: 2, To: 0, Late: true, Body: "late"})
	m.Split(walk.One(2))
	require.Equal(t, []string{"within", "late"}, texts(m))
	m.End(1)
	require.Equal(t, []string{"late"}, texts(m))
}

func TestMail_PanicsAtMoreThanAMoveCanTellApart(t *testing.T) {
	var m mail
	require.PanicsWithValue(t, "walk: letters pile up", func() {
		for range 300 {
			m.Post(letter{})
		}
	})
}

// What can happen to a letter depends on what may still happen at all, and on its way.
func TestMail_MovesWithinTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		letter  letter
		budget  walk.Budget
		moves   []walk.Kind
		prompt  int
		toPause bool
	}{
		"nothing goes wrong":            {letter{To: 1}, walk.Budget{}, []walk.Kind{walk.Delivers}, 1, false},
		"lost":                          {letter{To: 1}, walk.Budget{Lost: 1}, []walk.Kind{walk.Delivers, walk.Drops}, 1, false},
		"twice":                         {letter{To: 1}, walk.Budget{Twice: 1}, []walk.Kind{walk.Delivers, walk.Copies}, 1, false},
		"late":                          {letter{To: 1}, walk.Budget{Late: 1}, []walk.Kind{walk.Delivers, walk.Delays}, 1, false},
		"late already":                  {letter{To: 1, Late: true}, walk.Budget{Late: 1, Lost: 1, Twice: 1}, []walk.Kind{walk.Delivers}, 0, false},
		"to itself":                     {letter{Way: walk.Within}, walk.Budget{Late: 1, Lost: 1, Twice: 1, Slow: 1}, []walk.Kind{walk.Delivers}, 1, false},
		"the end of a run":              {letter{Way: walk.Ending}, walk.Budget{Late: 1, Lost: 1, Twice: 1}, []walk.Kind{walk.Delivers}, 1, false},
		"the end of a run, slow":        {letter{Way: walk.Ending}, walk.Budget{Slow: 1}, []walk.Kind{walk.Delivers, walk.Delays}, 1, false},
		"to a member that stands still": {letter{To: 1}, walk.Budget{Lost: 1}, nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := walk.Default()
			cluster := walk.NewCluster(&o)
			cluster.Budget = c.budget
			cluster.Members[1].Paused = c.toPause
			m := post(c.letter)
			moves, prompt := m.Moves(nil, &cluster, m.Sorted(textKey))
			var kinds []walk.Kind
			for _, mv := range moves {
				kinds = append(kinds, mv.Kind)
			}
			require.Equal(t, c.moves, kinds)
			require.Equal(t, c.prompt, prompt)
			for _, mv := range moves {
				m, after := m, cluster
				_, delivered := m.Do(mv, &after)
				require.Equal(t, mv.Kind == walk.Delivers || mv.Kind == walk.Copies, delivered)
				require.Equal(t, mv.Kind == walk.Copies || mv.Kind == walk.Delays, m.Len() == 1, "it comes again, or later")
				require.Equal(t, mv.Kind == walk.Delivers, after.Budget == cluster.Budget, "whatever goes wrong is paid for")
			}
		})
	}
}

func TestLetter_Describe(t *testing.T) {
	l := letter{To: 1, Body: "x"}
	for kind, text := range map[walk.Kind]string{walk.Delivers: "to b: x", walk.Copies: "to b: x; it will come AGAIN", walk.Delays: "LATE from now on: to b: x", walk.Drops: "LOST: to b: x"} {
		require.Equal(t, text, l.Describe(walk.Move{Kind: kind}, l.Body))
	}
	l.Late = true
	require.Equal(t, "to b: x (late)", l.Describe(walk.Move{Kind: walk.Delivers}, l.Body))
}

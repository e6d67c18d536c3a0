package world

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/sbr"
	"github.com/serf-sbr/serf-sbr/strategies"
)

func coverTwo(t *testing.T, c *Coverage) *World {
	t.Helper()
	o := DefaultOptions()
	o.Nodes, o.Strategy, o.Coverage = 2,
		strategies.LeaseMajority{AcquireLeaseDelayForMinority: 10 * time.Second}, c
	o.Resolver.Watched = true
	w, err := New(o)
	require.NoError(t, err)
	w.At(10*time.Second, func() { w.Partition([]int{0}, []int{1}) })
	w.Run(2 * time.Minute)
	return w
}

// The whole life of two members, one of which loses: every step of both is counted, in the resolver's own
// words.
func TestCoverage_CountsWhatResolversDo(t *testing.T) {
	var c Coverage
	w := coverTwo(t, &c)
	require.Equal(t, []string{"n1"}, w.Survivors())
	require.Equal(t, map[string]uint64{
		"arming + Deadline -> up: Explain(armed)":                                          2,
		"arming + LeaseObserved -> arming":                                                 2,
		"arming + MemberSeen -> arming":                                                    2,
		"suspended + Deadline -> suspended: ReadLease":                                     10,
		"suspended + Deadline -> waiting-for-lease: AcquireLease, Explain(decision)":       1,
		"suspended + LeaseObserved -> down: DownSelf, Explain(verdict)":                    1,
		"suspended + LeaseRead -> suspended":                                               10,
		"up + Deadline -> up: ReleaseLease":                                                1,
		"up + LeaseObserved -> up":                                                         1,
		"up + LeaseReleased -> up":                                                         1,
		"up + Observations -> up":                                                          2,
		"up + Reachability(unreachable) -> suspended: Suspend":                             2,
		"waiting-for-lease + LeaseAnswer(granted) -> up":                                   1,
		"waiting-for-lease + LeaseObserved -> waiting-for-lease: Resume, Explain(verdict)": 1,
		"waiting-for-lease + MemberGone -> waiting-for-lease":                              1,
		"waiting-for-lease + Observations -> waiting-for-lease":                            1,
	}, c.Counts())
}

// Every effect and every topic that package sbr declares has a word, and each its own place.
func TestCoverage_KnowsAllEffectsAndTopics(t *testing.T) {
	source, err := os.ReadFile("../../../sbr/effect.go")
	require.NoError(t, err)
	var words []string
	var declared []sbr.Topic
	for _, m := range regexp.MustCompile(`\((\w+)\) effect\(\)|Topic += "(.+)"`).FindAllSubmatch(source, -1) {
		if topic := string(m[2]); topic != "" {
			declared = append(declared, sbr.Topic(topic))
		} else if word := string(m[1]); word != "Explain" { // it has those of its topics
			words = append(words, word)
		}
	}
	require.ElementsMatch(t, words, effectWords)
	require.ElementsMatch(t, declared, topics)
	require.NotZero(t, doings(1)<<(len(words)+len(declared)-1), "more than a doings has room for")
}

func TestCoverage_ChangesNothing(t *testing.T) {
	var c Coverage
	require.Equal(t, coverTwo(t, nil).Hash(), coverTwo(t, &c).Hash())
}

// Telling, removing and releasing make a transition of their own only where nothing else was done.
func TestCoverage_ChoresAreLeftOut(t *testing.T) {
	p := &process{r: newResolver(t)}
	counted := func(effects ...sbr.Effect) string {
		var c Coverage
		cover := covered{to: &c}
		cover.took(nil, p, sbr.Left{})
		cover.stepped(nil, p, effects)
		require.Equal(t, 1, c.Len())
		return strings.TrimPrefix(slices.Collect(maps.Keys(c.Counts()))[0], "arming + Left -> arming")
	}
	require.Equal(t, ": Suspend", counted(sbr.TellVerdict{}, sbr.Remove{}, sbr.Suspend{}, sbr.ReleaseLease{},
		sbr.TellOrder{}))
	require.Equal(t, ": TellVerdict, Remove", counted(sbr.Remove{}, sbr.TellVerdict{}))
	require.Equal(t, "", counted())
}

// Every effect and every topic has a word, and no two share one.
func TestCoverage_EveryEffectHasAWord(t *testing.T) {
	effects := []sbr.Effect{
		sbr.ReadLease{}, sbr.AcquireLease{}, sbr.ReleaseLease{}, sbr.TellVerdict{}, sbr.TellOrder{},
		sbr.AskToRace{}, sbr.AskStanding{},
		sbr.Remove{}, sbr.Suspend{}, sbr.Resume{}, sbr.DownSelf{}, sbr.AnswerDownRequest{}, sbr.RestoreVerdict{},
		sbr.RecordLeave{},
	}
	for _, what := range topics {
		effects = append(effects, sbr.Explain{What: what})
	}
	seen := make(map[doings]bool)
	for _, e := range effects {
		d := doing(e)
		require.False(t, seen[d], "%#v", e)
		seen[d] = true
	}
	require.Panics(t, func() { doing(sbr.Explain{What: "weather"}) })
}

// A deadline at which nothing was due is no transition.
func TestCoverage_IdleDeadlineIsNone(t *testing.T) {
	var c Coverage
	cover := covered{to: &c}
	cover.stepped(nil, &process{r: newResolver(t)}, nil)
	require.Zero(t, c.Len())
}

func newResolver(t *testing.T) *sbr.Resolver {
	t.Helper()
	r, err := sbr.New(sbr.DefaultConfig(), strategies.KeepMajority{}, sbr.Member{ID: "a"}, 0)
	require.NoError(t, err)
	return r
}

package walktest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/serf-sbr/serf-sbr/simulator/internal/walktest"
)

// crew is what runs on the members of a cluster: it notes what it hears.
type crew struct{ heard []string }

func (c *crew) note(what string, i int) { c.heard = append(c.heard, what+" "+string(walktest.Name(i))) }
func (c *crew) Shown(i int)             { c.note("shown", i) }
func (c *crew) Everyone()               { c.heard = append(c.heard, "everyone") }
func (c *crew) Resumed(i int)           { c.note("resumed", i) }
func (c *crew) Ended(i int)             { c.note("ended", i) }
func (c *crew) Split()                  { c.heard = append(c.heard, "split") }
func (c *crew) Downed(i int)            { c.note("downed", i) }
func (c *crew) Resigned(i int)          { c.note("resigned", i) }
func (c *crew) Returned(i int)          { c.note("returned", i) }

// formed is a cluster of armed members to which happens what the change allows.
func formed(change func(*walktest.Options)) *walktest.Cluster {
	o := walktest.Default()
	change(&o)
	c := walktest.NewCluster(&o)
	for i := range o.Members - o.Joins {
		c.Members[i].Armed = true
	}
	c.Endanger()
	return &c
}

// can are the texts of what can happen.
func can(c *walktest.Cluster) (all []string) {
	finished := func(i int) bool { return c.Members[i].Resigns }
	for _, mv := range c.Faults(c.Views(c.Duties(nil, finished))) {
		all = append(all, c.Describe(mv))
	}
	return all
}

// does lets what has this text happen.
func does(t *testing.T, c *walktest.Cluster, text string) []string {
	t.Helper()
	finished := func(i int) bool { return c.Members[i].Resigns }
	for _, mv := range c.Faults(c.Views(c.Duties(nil, finished))) {
		if c.Describe(mv) == text {
			var on crew
			c.Do(mv, &on)
			return on.heard
		}
	}
	require.FailNow(t, text+" is not possible", "only %q", can(c))
	return nil
}

func TestCluster_NothingHappensWithoutABudget(t *testing.T) {
	require.Empty(t, can(formed(func(*walktest.Options) {})))
}

func TestCluster_KeyMergesWhatGoesOnAlike(t *testing.T) {
	key := func(c *walktest.Cluster) string { return string(c.AppendKey(nil, 10*time.Second, 10*time.Second)) }
	first := func() *walktest.Cluster { return formed(func(o *walktest.Options) { o.Pauses, o.Cuts = 1, 1 }) }
	later := first()
	later.Now += time.Hour
	for i := range later.Members {
		later.Members[i].Sure += time.Hour
	}
	require.Equal(t, key(first()), key(later), "at another time")
	long, longer := first(), first()
	long.Now, longer.Now = time.Hour, 2*time.Hour
	require.Equal(t, key(long), key(longer), "what is longer ago than matters")
	for name, change := range map[string]func(c *walktest.Cluster){
		"another budget":   func(c *walktest.Cluster) { c.Budget.Cuts-- },
		"not sure lately":  func(c *walktest.Cluster) { c.Members[1].Sure = -time.Second },
		"another view":     func(c *walktest.Cluster) { c.Members[1].Unreachable = walktest.One(2) },
		"a member is away": func(c *walktest.Cluster) { c.Members[3].Up = false },
		"a manager less":   func(c *walktest.Cluster) { c.Members[3].Closed = true },
		"cut":              func(c *walktest.Cluster) { c.Cut = walktest.One(1) },
	} {
		c := first()
		change(c)
		require.NotEqual(t, key(first()), key(c), name)
	}
}

func TestCluster_AVerdictGoesToEitherSideOnceThingsAreStable(t *testing.T) {
	c := formed(func(o *walktest.Options) { o.Members, o.Cuts = 2, 1 })
	require.Equal(t, []string{"split"}, does(t, c, "the network is CUT: b from the others"))
	require.False(t, c.Talk(0, 1))
	does(t, c, "a notices whom it reaches")
	does(t, c, "b notices whom it reaches")
	verdicts := func() (all []string) {
		return slices.DeleteFunc(can(c), func(text string) bool { return !strings.Contains(text, "VERDICT") })
	}
	c.Now = c.StableAfter - 1
	require.Empty(t, verdicts())
	c.Now++
	require.Equal(t, []string{"a VERDICT: a stay", "a VERDICT: b stay"}, verdicts())
	does(t, c, "a VERDICT: b stay")
	require.Equal(t, "a", c.Losers.String())
	require.NotContains(t, can(c), "the network HEALS", "a cut does not heal after its verdict")
	require.Equal(t, []string{"downed a"}, does(t, c, "a hears that it is DOWN"))
	does(t, c, "b sees the losers as down")
	require.True(t, c.View(1)[0].Down)
	require.True(t, c.Whole())
}

func TestCluster_WhatIsDueKeepsTheClockFromMoving(t *testing.T) {
	c := formed(func(o *walktest.Options) { o.Pauses = 1 })
	does(t, c, "d is PAUSED")
	require.False(t, c.Overdue())
	require.Equal(t, c.Notice, c.Pass(false))
	require.Equal(t, c.Step, c.Pass(true), "a step while anything may happen")
	c.Now += c.Notice
	require.True(t, c.Overdue())
	for _, name := range []string{"a", "b", "c"} {
		does(t, c, name+" notices whom it reaches")
	}
	require.False(t, c.Overdue())
}

func TestCluster_AManagerIsClosedAndOpenedAgain(t *testing.T) {
	c := formed(func(o *walktest.Options) { o.Resigns, o.Returns = 1, 1 })
	require.NotContains(t, can(c), "b has a manager AGAIN")
	require.Equal(t, []string{"resigned b"}, does(t, c, "b RESIGNS"))
	does(t, c, "b has no manager any more")
	require.False(t, c.View(0)[1].Candidate)
	require.Equal(t, []string{"returned b", "everyone"}, does(t, c, "b has a manager AGAIN"))
	require.True(t, c.View(0)[1].Candidate)
	require.Empty(t, can(c))
	require.Equal(t, walktest.Budget{}, c.Budget, "both are paid for")
}

func TestCluster_ANewcomerIsKnownBeforeItIsArmed(t *testing.T) {
	c := formed(func(o *walktest.Options) { o.Joins = 1 })
	does(t, c, "d joins")
	require.NotContains(t, can(c), "d is armed")
	for _, name := range []string{"a", "b", "c"} {
		does(t, c, name+" learns of d")
	}
	does(t, c, "d is armed")
	require.Empty(t, can(c))
}

func TestOptions_EveryProblemIsReported(t *testing.T) {
	o := walktest.Default()
	require.NoError(t, o.Validate(nil))
	o.Members, o.Shards, o.Joins, o.Returns, o.Whims, o.Losses, o.Notice, o.Margin = 5, 3, 7, -1, 16, 1, o.Step/2, 1
	err := o.Validate(errors.New("what the machines say"))
	require.Len(t, strings.Split(err.Error(), "\n"), 9, "%v", err)
	o.Step = 0
	require.ErrorContains(t, o.Validate(), "walk: Step is 0s: it must be positive")
}

func TestPlan_AllowsWhatIsNamed(t *testing.T) {
	o := walktest.Default()
	o.Name, o.Formed, o.UseLease, o.Members = "two, a cut, a cut, a return, with leases", true, true, 2
	o.Budget = walktest.Budget{Cuts: 2, Returns: 1}
	require.Equal(t, []walktest.Options{o}, walktest.Plan(true, "two, a cut, a cut, a return"))
	require.PanicsWithValue(t, `walk: there is no "a flood"`, func() { walktest.Plan(false, "a cut, a flood") })
}
